#include <cmath>

#include "device/support.h"
#include "support/sum_model.h"

namespace openrnn::testing {
namespace {

template <class C>
double column_of(const DeviceArray& x, std::int64_t rows, std::int64_t columns, std::int64_t c) {
  std::vector<C> terms;
  for (std::int64_t r = 0; r < rows; ++r) terms.push_back(static_cast<C>(at(x, r * columns + c)));
  return static_cast<double>(SumModel{}(std::span<const C>(terms), std::span<const C>{}));
}

TEST(Rows, ColumnSumHasTheOrderOfSums) {
  for (const DType dtype : floating()) {
    for (const std::int64_t rows : {1, 37, 64, 65, 512, 1200}) {
      const DeviceArray x = random_array(dtype, {rows, 131}, 1);
      DeviceArray sums(tested(), dtype, {131});
      tested().column_sum(dtype, rows, 131, x.data(), sums.mutable_data());
      for (std::int64_t c = 0; c<131; c += rows> 64 ? 13 : 1) {
        const double sum = dtype == DType::kFloat64 ? column_of<double>(x, rows, 131, c)
                                                    : column_of<float>(x, rows, 131, c);
        ASSERT_EQ(at(sums, c), rounded(dtype, sum)) << rows;
      }
    }
  }
}

TEST(Rows, AddRow) {
  for (const DType dtype : floating()) {
    const DeviceArray x = random_array(dtype, {5, 33}, 1), row = random_array(dtype, {33}, 2);
    DeviceArray y(tested(), dtype, {5, 33});
    tested().add_row(dtype, 5, 33, x.data(), row.data(), y.mutable_data());
    for (std::int64_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(at(y, i), rounded(dtype, at(x, i) + at(row, i % 33)));
    }
  }
}

TEST(Rows, GatherAndScatter) {
  const std::vector<std::int32_t> places = {4, 0, 4, 2, 4};
  const DeviceArray indices = int_array(places);
  for (const DType dtype : floating()) {
    const DeviceArray table = random_array(dtype, {6, 17}, 1);
    DeviceArray rows(tested(), dtype, {5, 17});
    tested().gather_rows(dtype, 5, 17, table.data(), places_of(indices), rows.mutable_data());
    for (std::int64_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(at(rows, i),
                at(table, std::int64_t{places[static_cast<std::size_t>(i / 17)]} * 17 + i % 17));
    }
    DeviceArray sums = random_array(dtype, {6, 17}, 3);
    const DeviceArray before = DeviceArray::from_host(tested(), sums.to_host().view());
    tested().scatter_add_rows(dtype, 5, 17, rows.data(), places_of(indices), sums.mutable_data());
    for (std::int64_t row = 0; row < 6; ++row) {
      for (std::int64_t c = 0; c < 17; ++c) {
        double chain = at(before, row * 17 + c);
        for (std::int64_t i = 0; i < 5; ++i) {
          if (places[static_cast<std::size_t>(i)] != row) continue;
          chain += at(rows, i * 17 + c);
          if (dtype != DType::kFloat64) chain = static_cast<float>(chain);
        }
        ASSERT_EQ(at(sums, row * 17 + c), rounded(dtype, chain));
      }
    }
  }
}

/// A [rows, C] array; or [before, batch, after, C] of a part of a batch.
void drop(const DeviceArray& x, const DropoutKey& key, double rate, DeviceArray& y,
          std::int64_t before = 1, std::int64_t after = 1) {
  const std::int64_t cols = x.shape().back();
  tested().dropout({.dtype = x.dtype(),
                    .rows = x.size() / cols,
                    .cols = cols,
                    .before = before,
                    .after = after,
                    .key = key,
                    .rate = rate,
                    .x = x.data(),
                    .out = y.mutable_data()});
}

TEST(Rows, DropoutOfAPartHasTheMasksOfTheWhole) {
  // [2, 5, 3, 7]: a batch of 5 along axis 1, of which parts are rows [first, last).
  const DropoutKey key{.seed = 11, .call = 3};
  const DeviceArray all = DeviceArray::full(tested(), DType::kFloat32, {30, 7}, 1.0);
  DeviceArray whole(tested(), DType::kFloat32, all.shape());
  drop(all, key, 0.5, whole);
  for (const auto& [first, last] : {std::pair{0, 2}, {2, 3}, {3, 5}, {0, 5}}) {
    const std::int64_t batch = last - first;
    const DeviceArray x = DeviceArray::full(tested(), DType::kFloat32, {2 * batch * 3, 7}, 1.0);
    DeviceArray y(tested(), DType::kFloat32, x.shape());
    drop(x, {.seed = 11, .call = 3, .first_row = first, .whole_batch = 5}, 0.5, y, 2, 3);
    for (std::int64_t r = 0; r < 2 * batch * 3; ++r) {
      const std::int64_t before = r / (batch * 3), b = r / 3 % batch, after = r % 3;
      const std::int64_t row = (before * 5 + first + b) * 3 + after;
      for (std::int64_t c = 0; c < 7; ++c) ASSERT_EQ(at(y, r * 7 + c), at(whole, row * 7 + c));
    }
  }
}

// Rows of a whole batch are numbered one after another, whatever stands before and after them.
TEST(Rows, DropoutOfAWholeBatchIsThatOfItsRows) {
  const DeviceArray x = random_array(DType::kFloat32, {12, 7}, 1);
  DeviceArray plain(tested(), DType::kFloat32, {12, 7}), inner(tested(), DType::kFloat32, {12, 7});
  drop(x, {.seed = 11, .call = 3}, 0.5, plain);
  drop(x, {.seed = 11, .call = 3}, 0.5, inner, 2, 3);
  expect_same_bits(inner, plain);
  const DeviceArray none(tested(), DType::kFloat32, {0, 7});
  DeviceArray nothing(tested(), DType::kFloat32, {0, 7});
  EXPECT_NO_THROW(drop(none, {.seed = 11, .whole_batch = 5}, 0.5, nothing, 0));
}

TEST(Rows, DropoutIsTheMaskOfTheKey) {
  const DropoutKey key{.seed = 11, .call = 3};
  for (const DType dtype : floating()) {
    const DeviceArray x = random_array(dtype, {9, 21}, 1);
    DeviceArray y(tested(), dtype, {9, 21});
    drop(x, key, 0.3, y);
    int dropped = 0;
    for (std::int64_t r = 0; r < 9; ++r) {
      std::vector<double> mask(21);
      dropout_mask<double>(key, {0xFFFFFFFFu, 0, static_cast<std::uint32_t>(r)}, 0.3, mask);
      for (std::int64_t c = 0; c < 21; ++c) {
        dropped += mask[static_cast<std::size_t>(c)] == 0;
        ASSERT_NEAR(at(y, r * 21 + c), at(x, r * 21 + c) * mask[static_cast<std::size_t>(c)],
                    dtype == DType::kBfloat16  ? 2e-2
                    : dtype == DType::kFloat16 ? 2e-3
                                               : 1e-6);
      }
    }
    EXPECT_GT(dropped, 30);
    EXPECT_LT(dropped, 90);
  }
}

TEST(Rows, DropoutOfEverythingAndOfNothing) {
  const auto x = array_of<float>({3}, {1.5f, NAN, INFINITY});
  auto y = array_of<float>({3}, {7, 7, 7});
  drop(x, {}, 1.0, y);
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(at(y, i), 0.0);
  drop(x, {}, 0.0, y);
  EXPECT_EQ(at(y, 0), 1.5);
  EXPECT_TRUE(std::isnan(at(y, 1)));
}

TEST(Rows, SameBitsForAnyThreads) {
  std::vector<std::int32_t> places(301);
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::int32_t>(i * i % 19);
  const DeviceArray indices = int_array(places);
  for (const DType dtype : floating()) {
    const DeviceArray x = random_array(dtype, {301, 333}, 1), row = random_array(dtype, {333}, 2);
    expect_same_for_threads([&] {
      DeviceArray sums(tested(), dtype, {333});
      tested().column_sum(dtype, 301, 333, x.data(), sums.mutable_data());
      return sums;
    });
    expect_same_for_threads([&] {
      DeviceArray table = DeviceArray::zeros(tested(), dtype, {19, 333});
      tested().scatter_add_rows(dtype, 301, 333, x.data(), places_of(indices),
                                table.mutable_data());
      return table;
    });
    expect_same_for_threads([&] {
      DeviceArray y(tested(), dtype, x.shape());
      drop(x, {.seed = 5, .call = 1}, 0.5, y);
      tested().add_row(dtype, 301, 333, y.data(), row.data(), y.mutable_data());
      return y;
    });
  }
}

TEST(Rows, EmptyShapes) {
  EXPECT_NO_THROW(tested().column_sum(DType::kFloat32, 0, 0, nullptr, nullptr));
  auto sums = array_of<float>({2}, {7, 7});
  tested().column_sum(DType::kFloat32, 0, 2, nullptr, sums.mutable_data());
  EXPECT_EQ(at(sums, 0), 0.0);
  EXPECT_EQ(at(sums, 1), 0.0);
  EXPECT_NO_THROW(tested().gather_rows(DType::kFloat32, 0, 3, nullptr, nullptr, nullptr));
  EXPECT_NO_THROW(tested().scatter_add_rows(DType::kFloat16, 0, 3, nullptr, nullptr, nullptr));
}

}  // namespace
}  // namespace openrnn::testing
