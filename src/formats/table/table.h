// The sorted string table of LevelDB, which holds the index of a tensor bundle.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "formats/file/byte_source.h"

namespace openrnn::formats {

inline constexpr std::uint64_t kTableMagic = 0xdb4775248b80fb57u;
inline constexpr std::size_t kTableFooterBytes = 48;

/// Place of a block in the file, without its trailer.
struct BlockHandle {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

/// `offset` is that of the block in the file, for error messages.
using TableVisitor =
    std::function<void(std::string_view key, std::string_view value, std::uint64_t offset)>;

/// Visits all entries in the order of their keys. Reads every block, raw or snappy; memory is
/// bounded by a small multiple of the file's size.
/// Throws: FormatError, IoError.
void read_table(const ByteSource& file, bool verify_checksums, const TableVisitor& visit);

/// The bytes of a table, as TensorFlow writes it. `block_size` is TensorFlow's; LevelDB's own is
/// 4096.
std::string build_table(const std::map<std::string, std::string>& entries,
                        std::size_t block_size = 262144);

}  // namespace openrnn::formats
