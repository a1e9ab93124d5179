// An HDF5 file of the oldest form, which everything reads: superblock 0, groups as symbol tables,
// contiguous datasets.
#pragma once

#include <functional>
#include <vector>

#include "openrnn/formats_model_file.h"

namespace openrnn::formats {

/// Elements may be mapped by programs that compute on whole vectors.
inline constexpr std::uint64_t kHdf5ElementAlignment = 64;

/// All of a file but the elements, which are borrowed.
struct Hdf5Image {
  struct Elements {
    std::uint64_t offset = 0;
    ConstArrayView values;
  };
  std::string superblock;
  /// By offset, behind the superblock.
  std::vector<Elements> elements;
  /// Behind them.
  std::uint64_t metadata_offset = 0;
  std::string metadata;

  std::uint64_t bytes() const { return metadata_offset + metadata.size(); }
  /// The whole file in order.
  void write(const std::function<void(const void*, std::size_t)>& put) const;
};

/// Datasets by their paths, and attributes by those of their groups or datasets and '/', as
/// ModelFile has them; groups are made of the paths. A bfloat16 has the attribute Keras gives it.
/// Throws: ArgumentError naming `call` for a path that is none, is there twice or goes through a
/// dataset, and for values that are too large for an attribute.
Hdf5Image make_hdf5_image(std::string_view call, std::span<const NamedView> tensors,
                          std::span<const NamedValue> values);

}  // namespace openrnn::formats
