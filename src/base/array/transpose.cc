#include "base/array/transpose.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace openrnn {

namespace {

// A tile reads a cache line of float32 of each row and writes four of each column. It goes through
// memory of its own: with strides of a power of two its lines would push each other out of the
// cache.
constexpr std::size_t kTileRows = 64, kTileCols = 16;

struct Tile {
  const std::byte* from;
  std::size_t from_stride, rows, cols;
  std::byte* to;
  std::size_t to_stride;
};

template <class T>
void transpose_tile(const Tile& tile) {
  T columns[kTileCols][kTileRows];
  for (std::size_t r = 0; r < tile.rows; ++r) {
    const std::byte* const from = tile.from + r * tile.from_stride * sizeof(T);
    T row[kTileCols];
    if (tile.cols == kTileCols) {  // of a length that the compiler knows
      std::memcpy(row, from, sizeof row);
      for (std::size_t c = 0; c < kTileCols; ++c) columns[c][r] = row[c];
    } else {
      std::memcpy(row, from, tile.cols * sizeof(T));
      for (std::size_t c = 0; c < tile.cols; ++c) columns[c][r] = row[c];
    }
  }
  for (std::size_t c = 0; c < tile.cols; ++c) {
    std::memcpy(tile.to + c * tile.to_stride * sizeof(T), columns[c], tile.rows * sizeof(T));
  }
}

template <class T>
void transpose_all(const Tile& all) {
  for (std::size_t c = 0; c < all.cols; c += kTileCols) {
    for (std::size_t r = 0; r < all.rows; r += kTileRows) {
      transpose_tile<T>({all.from + (r * all.from_stride + c) * sizeof(T), all.from_stride,
                         std::min(kTileRows, all.rows - r), std::min(kTileCols, all.cols - c),
                         all.to + (c * all.to_stride + r) * sizeof(T), all.to_stride});
    }
  }
}

}  // namespace

void transpose(const void* from, std::size_t from_stride, std::size_t rows, std::size_t cols,
               std::size_t width, void* to, std::size_t to_stride) {
  const Tile all{static_cast<const std::byte*>(from), from_stride, rows, cols,
                 static_cast<std::byte*>(to),         to_stride};
  switch (width) {
    case 1:
      return transpose_all<std::uint8_t>(all);
    case 2:
      return transpose_all<std::uint16_t>(all);
    case 4:
      return transpose_all<std::uint32_t>(all);
    default:
      return transpose_all<std::uint64_t>(all);
  }
}

}  // namespace openrnn
