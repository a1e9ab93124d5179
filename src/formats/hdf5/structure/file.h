// The bytes of an HDF5 file, as its reader goes through them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "formats/file/byte_source.h"

namespace openrnn::formats {

inline constexpr std::string_view kHdf5Signature{"\x89HDF\r\n\x1a\n", 8};
/// The address of what is not there.
inline constexpr std::uint64_t kNoAddress = ~std::uint64_t{0};
/// The longest name, and the longest path: each tensor has the names of all its groups.
inline constexpr std::size_t kMaxHdf5Name = 1024;

/// Ranges that are taken once.
class Claims {
 public:
  /// False if some of it was taken before. `bytes` has been checked not to overflow.
  bool add(std::uint64_t begin, std::uint64_t bytes);

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;
};

/// Everything is read for one purpose and once. So there are no cycles, no structures that many
/// others share, no overlaps, and what is made of a file is bounded by its size.
class Hdf5File {
 public:
  /// Reads the superblock. `source` outlives it. Throws: FormatError, UnsupportedError.
  explicit Hdf5File(const ByteSource& source);
  Hdf5File(const Hdf5File&) = delete;

  const ByteSource& source() const noexcept { return source_; }
  /// Where the object header of the root group is.
  std::uint64_t root() const noexcept { return root_; }
  /// The range is inside the file and not used yet. Throws: FormatError naming `what`.
  void take(std::uint64_t offset, std::uint64_t bytes, const std::string& what);
  /// Takes and reads.
  std::string read(std::uint64_t offset, std::uint64_t bytes, const std::string& what);
  [[noreturn]] void fail(std::uint64_t offset, const std::string& what) const;
  /// For what is well-formed and not read.
  [[noreturn]] void refuse(std::uint64_t offset, const std::string& what) const;

 private:
  void read_old_superblock(unsigned version);
  void read_new_superblock();
  void check_sizes(std::uint64_t offsets, std::uint64_t lengths, std::uint64_t base,
                   std::uint64_t end) const;

  const ByteSource& source_;
  std::uint64_t root_ = kNoAddress;
  Claims claims_;
};

/// Fields one after another; each read throws FormatError where the bytes end.
class Hdf5Fields {
 public:
  /// `offset` is where the bytes are in the file, `what` they are, for messages. `bytes` stay.
  Hdf5Fields(const Hdf5File& file, std::uint64_t offset, std::string_view bytes, std::string what)
      : file_(&file), end_(offset + bytes.size()), rest_(bytes), what_(std::move(what)) {}

  /// A little-endian number of up to 8 bytes.
  std::uint64_t number(std::size_t bytes);
  std::uint64_t address() { return number(8); }
  std::string_view bytes(std::uint64_t count);
  void skip(std::uint64_t count) { bytes(count); }
  /// Throws FormatError unless these bytes come next.
  void expect(std::string_view signature);
  /// Throws UnsupportedError unless the next byte is one of the versions.
  std::uint64_t version(std::uint64_t least, std::uint64_t most);

  std::uint64_t offset() const noexcept { return end_ - rest_.size(); }
  std::size_t remaining() const noexcept { return rest_.size(); }
  const std::string& what() const noexcept { return what_; }
  [[noreturn]] void fail(const std::string& fault) const;

 private:
  const Hdf5File* file_;
  std::uint64_t end_;
  std::string_view rest_;
  std::string what_;
};

/// Throws: FormatError unless the last four bytes are the checksum of those before.
void check_lookup3(const Hdf5File& file, std::uint64_t offset, std::string_view block,
                   const std::string& what);

}  // namespace openrnn::formats
