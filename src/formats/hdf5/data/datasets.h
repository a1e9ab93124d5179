// Where the elements of a dataset are: in one piece, or in chunks that may be compressed.
#pragma once

#include <mutex>
#include <vector>

#include "formats/hdf5/data/types.h"

namespace openrnn::formats {

enum class Hdf5Filter : std::uint16_t { kDeflate = 1, kShuffle = 2 };

/// A chunk as stored.
struct Hdf5Chunk {
  /// Of its first element, in elements.
  Shape first;
  std::uint64_t offset = 0, bytes = 0;
  /// Bit i: filter i was left out.
  std::uint64_t skipped_filters = 0;
};

struct Hdf5Chunks {
  Shape shape, chunk;
  std::uint64_t element_bytes = 0;
  /// In the order in which they were applied.
  std::vector<Hdf5Filter> filters = {};
  std::vector<Hdf5Chunk> chunks = {};
};

/// The elements of a dataset; `chunks` is nothing where they are in one piece.
struct Hdf5Dataset {
  Hdf5Type type;
  Shape shape;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;
  std::optional<Hdf5Chunks> chunks = {};
  /// Why the elements cannot be read; empty where they can.
  std::string fault = {};
};

/// All that the file says of a dataset is checked, and that its elements lie inside the file.
/// Throws: FormatError, UnsupportedError.
Hdf5Dataset read_dataset(Hdf5File& file, const Hdf5Object& object);

/// The chunks of the index that a B-tree of version 1, or a version 4 layout message, is.
std::vector<Hdf5Chunk> read_chunk_tree(Hdf5File& file, std::uint64_t address,
                                       const Hdf5Chunks& shape);

/// Elements in row-major order, decompressed when they are read.
class ChunkedSource : public ByteSource {
 public:
  /// `file` outlives it.
  ChunkedSource(const ByteSource& file, Hdf5Chunks chunks, std::uint64_t bytes)
      : file_(file), chunks_(std::move(chunks)), bytes_(bytes) {}
  const std::string& path() const noexcept override { return file_.path(); }
  std::uint64_t size() const noexcept override { return bytes_; }
  /// Throws also: FormatError for a chunk that is no stream of its filter, or of another size.
  void read_at(std::uint64_t offset, void* out, std::size_t count) const override;
  /// All of them at once, which are not kept.
  void visit(std::uint64_t offset, std::uint64_t count, std::uint64_t at_once,
             const std::function<void(std::string_view bytes)>& visit) const override;
  std::string_view mapped() const override;

 private:
  void decode(char* out) const;
  void copy_chunk(const Hdf5Chunk& chunk, const std::string& elements, char* out) const;

  const ByteSource& file_;
  Hdf5Chunks chunks_;
  std::uint64_t bytes_;
  mutable std::mutex mutex_;
  mutable std::string elements_;
};

}  // namespace openrnn::formats
