#include "base/array/transpose.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace openrnn {
namespace {

// No two elements are equal as long as their width allows, and what lies outside stays as it was.
template <class T>
void expect_transposed(std::size_t rows, std::size_t cols) {
  SCOPED_TRACE(testing::Message() << rows << " x " << cols << " of " << sizeof(T) << " bytes");
  const std::size_t from_stride = cols + 3, to_stride = rows + 5;
  std::vector<T> from(rows * from_stride);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<T>(i * 7 + 1);
  const T untouched = static_cast<T>(0xA5);
  std::vector<T> to(cols * to_stride, untouched), expected = to;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < cols; ++c) expected[c * to_stride + r] = from[r * from_stride + c];
  }
  transpose(from.data(), from_stride, rows, cols, sizeof(T), to.data(), to_stride);
  EXPECT_EQ(to, expected);
}

TEST(Transpose, AllWidthsAndSizesAroundTheTiles) {
  for (const std::size_t rows : {0, 1, 3, 63, 64, 65, 130}) {
    for (const std::size_t cols : {0, 1, 7, 15, 16, 17, 33}) {
      expect_transposed<std::uint8_t>(rows, cols);
      expect_transposed<std::uint16_t>(rows, cols);
      expect_transposed<std::uint32_t>(rows, cols);
      expect_transposed<std::uint64_t>(rows, cols);
    }
  }
}

}  // namespace
}  // namespace openrnn
