// Partitioned variables: geometry of slices.

#include <cstring>

#include "formats/bundle/bundle.h"

namespace openrnn::formats {

namespace {

std::int64_t length_of(const Shape& full, const TensorSlice& slice, std::size_t dim) {
  return slice[dim].length < 0 ? full[dim] : slice[dim].length;
}

bool inside(const Shape& full, const TensorSlice& slice) {
  if (slice.size() != full.size()) return false;
  for (std::size_t d = 0; d < full.size(); ++d) {
    const auto [start, length] = slice[d];
    if (start < 0 || length < -1 || start > full[d]) return false;
    if (length < 0 ? start != 0 : length > full[d] - start) return false;
  }
  return true;
}

bool overlap(const Shape& full, const TensorSlice& a, const TensorSlice& b) {
  for (std::size_t d = 0; d < full.size(); ++d) {
    if (a[d].start >= b[d].start + length_of(full, b, d)) return false;
    if (b[d].start >= a[d].start + length_of(full, a, d)) return false;
  }
  return true;
}

}  // namespace

Shape slice_shape(const Shape& full, const TensorSlice& slice) {
  Shape shape;
  for (std::size_t d = 0; d < full.size(); ++d) shape.push_back(length_of(full, slice, d));
  return shape;
}

bool slices_cover(const Shape& full, const std::vector<TensorSlice>& slices) {
  // Disjoint parts whose sizes add up to the whole cover it.
  std::int64_t covered = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (!inside(full, slices[i])) return false;
    for (std::size_t j = 0; j < i; ++j) {
      if (overlap(full, slices[i], slices[j])) return false;
    }
    covered += shape_size(slice_shape(full, slices[i]));
  }
  return covered == shape_size(full);
}

void place_slice(const Shape& full, const TensorSlice& slice, std::size_t element_bytes,
                 const void* from, void* to) {
  const Shape part = slice_shape(full, slice);
  if (shape_size(part) == 0) return;
  const std::size_t rank = full.size();
  const std::int64_t width = rank ? part[rank - 1] : 1;
  const std::size_t row_bytes = static_cast<std::size_t>(width) * element_bytes;
  const auto* source = static_cast<const char*>(from);
  Shape at(rank, 0);
  const std::int64_t rows = shape_size(part) / width;
  for (std::int64_t row = 0; row < rows; ++row, source += row_bytes) {
    std::int64_t index = 0;
    for (std::size_t d = 0; d < rank; ++d) index = index * full[d] + slice[d].start + at[d];
    std::memcpy(static_cast<char*>(to) + static_cast<std::size_t>(index) * element_bytes, source,
                row_bytes);
    for (std::size_t d = rank; d-- > 1;) {  // the next row: count up all but the last dimension
      if (++at[d - 1] < part[d - 1]) break;
      at[d - 1] = 0;
    }
  }
}

}  // namespace openrnn::formats
