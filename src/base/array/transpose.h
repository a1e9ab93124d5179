// The transpose of a large matrix, in tiles that fit the cache.
#pragma once

#include <cstddef>

namespace openrnn {

/// to[c * to_stride + r] = from[r * from_stride + c], for `rows` by `cols` elements of `width`
/// bytes (1, 2, 4 or 8) at any alignment. Strides are in elements.
void transpose(const void* from, std::size_t from_stride, std::size_t rows, std::size_t cols,
               std::size_t width, void* to, std::size_t to_stride);

}  // namespace openrnn
