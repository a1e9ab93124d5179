// Fractal heaps and the second B-trees, in which newer files keep links and attributes of objects
// that have many.
#pragma once

#include <vector>

#include "formats/hdf5/structure/file.h"

namespace openrnn::formats {

/// A heap without filters; all its blocks are read when it is opened. Throws: FormatError,
/// UnsupportedError.
class FractalHeap {
 public:
  struct Object {
    std::uint64_t offset = 0;
    std::string_view bytes;
  };

  FractalHeap(Hdf5File& file, std::uint64_t address);

  /// The object of an identifier, each at most once; valid as long as this heap.
  /// Throws: FormatError; UnsupportedError for an object that is too large for its blocks.
  Object find(std::string_view id);
  std::uint64_t id_bytes() const noexcept { return id_bytes_; }

 private:
  struct Block {
    std::uint64_t first = 0;   // where its bytes begin in the heap
    std::uint64_t offset = 0;  // in the file
    std::string bytes;
  };

  void read_header();
  std::uint64_t row_bytes(std::uint64_t row) const;
  void read_direct(std::uint64_t address, std::uint64_t first, std::uint64_t bytes);
  void read_indirect(std::uint64_t address, std::uint64_t first, std::uint64_t rows);

  Hdf5File& file_;
  std::uint64_t address_;
  std::uint64_t id_bytes_ = 0, max_object_ = 0, table_width_ = 0, start_bytes_ = 0;
  std::uint64_t max_direct_bytes_ = 0, root_address_ = 0, root_rows_ = 0;
  std::size_t offset_bytes_ = 0, length_bytes_ = 0;
  unsigned max_bits_ = 0;
  bool has_checksums_ = false;
  std::vector<Block> blocks_;  // by `first`
  Claims objects_;
};

/// The records of a B-tree of version 2 in its order, each of `record_bytes`.
/// Throws: FormatError, also for a tree of another type.
std::vector<std::string> read_btree2(Hdf5File& file, std::uint64_t address, std::uint64_t type,
                                     std::uint64_t record_bytes);

}  // namespace openrnn::formats
