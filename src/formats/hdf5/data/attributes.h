// Attributes of groups and datasets, as values.
#pragma once

#include <unordered_map>
#include <vector>

#include "formats/hdf5/structure/objects.h"
#include "openrnn/formats_model_file.h"

namespace openrnn::formats {

/// Where strings of variable length are: collections of objects, each of which has one place that
/// refers to it.
class GlobalHeap {
 public:
  explicit GlobalHeap(Hdf5File& file) : file_(file) {}
  /// Throws: FormatError if it is not there, or was asked for before.
  std::string take(std::uint64_t address, std::uint64_t index);

 private:
  using Objects = std::unordered_map<std::uint64_t, std::string>;
  Objects& collection(std::uint64_t address);

  Hdf5File& file_;
  std::unordered_map<std::uint64_t, Objects> collections_;
};

/// Strings and numbers, one or several; those of other types are left out. In the order of the
/// messages, or sorted by name where they have an index. Throws: FormatError, UnsupportedError.
std::vector<NamedValue> read_attributes(Hdf5File& file, GlobalHeap* heap, const Hdf5Object& object);

}  // namespace openrnn::formats
