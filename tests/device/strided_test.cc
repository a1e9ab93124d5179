// Comparisons, choices and copies with strides, and the functions of base/power.h.
#include <cmath>

#include "device/support.h"

namespace openrnn::testing {
namespace {

TEST(Strided, TransposesRepeatsAndReverses) {
  for (const DType dtype : floating()) {
    const DeviceArray x = random_array(dtype, {5, 7, 3}, 1);
    DeviceArray y(tested(), dtype, {3, 2, 7, 5});
    // y[c, r, b, a] = x[4 - a, b, c].
    tested().copy_strided(
        {.element = dtype_size(dtype),
         .shape = y.shape(),
         .from = static_cast<const std::byte*>(x.data()) + std::size_t{4} * 21 * dtype_size(dtype),
         .from_strides = {1, 0, 3, -21},
         .to = y.mutable_data(),
         .to_strides = {70, 35, 5, 1}});
    for (std::int64_t c = 0; c < 3; ++c) {
      for (std::int64_t r = 0; r < 2; ++r) {
        for (std::int64_t b = 0; b < 7; ++b) {
          for (std::int64_t a = 0; a < 5; ++a) {
            ASSERT_EQ(at(y, c * 70 + r * 35 + b * 5 + a), at(x, (4 - a) * 21 + b * 3 + c));
          }
        }
      }
    }
  }
}

// Lines whose elements lie side by side, in dimensions that have common factors.
TEST(Strided, SwapsOuterDimensions) {
  for (const DType dtype : floating()) {
    const DeviceArray x = random_array(dtype, {6, 4, 2, 3}, 1);
    DeviceArray y(tested(), dtype, {2, 4, 6, 3});
    tested().copy_strided({.element = dtype_size(dtype),
                           .shape = y.shape(),
                           .from = x.data(),
                           .from_strides = {3, 6, 24, 1},
                           .to = y.mutable_data(),
                           .to_strides = {72, 18, 3, 1}});
    for (std::int64_t i = 0; i < 144; ++i) {
      const std::int64_t a = i / 72, b = i / 18 % 4, c = i / 3 % 6, d = i % 3;
      ASSERT_EQ(at(y, i), at(x, c * 24 + b * 6 + a * 3 + d)) << i;
    }
  }
}

TEST(Strided, NothingIsWrittenBehindTheEnd) {
  constexpr std::int64_t kSize = 70;
  const std::vector<float> sevens(80, 7.0F);
  const DeviceArray a = random_array(DType::kFloat32, {80}, 1),
                    b = random_array(DType::kFloat32, {80}, 2);
  auto mask = array_of<std::uint8_t>({80}, std::vector<std::uint8_t>(80, 7));
  auto* const bits = static_cast<std::uint8_t*>(mask.mutable_data());
  tested().compare(CompareOp::kLess, DType::kFloat32, kSize, a.data(), b.data(), bits);
  auto chosen = array_of<float>({80}, sevens), copied = chosen, spread = chosen, sums = chosen,
       curves = chosen;
  for (DeviceArray* each : {&chosen, &copied, &spread, &sums, &curves}) each->make_unique_owner();
  tested().select({.element = 4,
                   .size = kSize,
                   .mask = bits,
                   .a = a.data(),
                   .b = b.data(),
                   .out = chosen.mutable_data()});
  tested().copy_strided({.element = 4,
                         .shape = {kSize},
                         .from = a.data(),
                         .from_strides = {1},
                         .to = copied.mutable_data(),
                         .to_strides = {1}});
  tested().copy_strided({.element = 4,
                         .shape = {kSize / 2},
                         .from = a.data(),
                         .from_strides = {1},
                         .to = spread.mutable_data(),
                         .to_strides = {2}});
  tested().binary(BinaryOp::kAdd, DType::kFloat32, kSize, a.data(), b.data(), sums.mutable_data());
  tested().unary(UnaryOp::kTanh, DType::kFloat32, kSize, a.data(), curves.mutable_data());
  for (const DeviceArray* each : {&chosen, &copied, &spread, &sums, &curves}) {
    EXPECT_NE(at(*each, 0), 7.0);
    for (std::int64_t i = kSize; i < 80; ++i) EXPECT_EQ(at(*each, i), 7.0) << i;
  }
  const Array masks = mask.to_host();
  for (std::size_t i = kSize; i < 80; ++i) EXPECT_EQ(masks.as<std::uint8_t>()[i], 7) << i;
  for (std::int64_t i = 0; i < kSize; ++i) {
    EXPECT_EQ(at(copied, i), at(a, i));
    EXPECT_EQ(at(spread, i), i % 2 == 0 ? at(a, i / 2) : 7.0);
  }
}

// Equal strides and different ones, of lines that lie apart, run backwards or stand still.
TEST(Strided, LinesOfAnyTwoStrides) {
  constexpr std::int64_t kSize = 7;
  for (const DType dtype : floating()) {
    const std::size_t bytes = dtype_size(dtype);
    const DeviceArray x = random_array(dtype, {41}, 1), before = random_array(dtype, {41}, 2);
    for (const std::int64_t from : {-3, -2, -1, 0, 1, 2, 3}) {
      for (const std::int64_t to : {-3, -2, -1, 1, 2, 3}) {
        DeviceArray y(tested(), dtype, {41});
        tested().scale(dtype, 41, 1.0, before.data(), y.mutable_data());
        tested().copy_strided({.element = bytes,
                               .shape = {kSize},
                               .from = static_cast<const std::byte*>(x.data()) + 20 * bytes,
                               .from_strides = {from},
                               .to = static_cast<std::byte*>(y.mutable_data()) + 20 * bytes,
                               .to_strides = {to}});
        for (std::int64_t i = 0; i < 41; ++i) {
          const std::int64_t k = (i - 20) / to;
          const bool written = (i - 20) % to == 0 && k >= 0 && k < kSize;
          ASSERT_EQ(at(y, i), written ? at(x, 20 + k * from) : at(before, i))
              << "from stride " << from << " to " << to << " at " << i;
        }
      }
    }
  }
}

TEST(Strided, FewerDimensions) {
  const StridedCopy plan = collapsed({.element = 4,
                                      .shape = {2, 1, 3, 5, 4},
                                      .from_strides = {60, 7, 20, 4, 1},
                                      .to_strides = {1, 0, 40, 8, 2}});
  EXPECT_EQ(plan.shape, (Shape{2, 60}));
  EXPECT_EQ(plan.from_strides, (std::vector<std::int64_t>{60, 1}));
  EXPECT_EQ(plan.to_strides, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(collapsed({.element = 4, .shape = {1, 1}, .from_strides = {3, 2}, .to_strides = {1, 1}})
                .shape,
            (Shape{1}));
}

TEST(Strided, ComparesAndSelects) {
  for (const DType dtype : floating()) {
    const DeviceArray a = random_array(dtype, {1037}, 1), b = random_array(dtype, {1037}, 2);
    DeviceArray mask(tested(), DType::kBool, {1037}), out(tested(), dtype, {1037});
    auto* const truths = static_cast<std::uint8_t*>(mask.mutable_data());
    tested().compare(CompareOp::kLess, dtype, 1037, a.data(), b.data(), truths);
    for (const bool zeros : {false, true}) {
      tested().select({.element = dtype_size(dtype),
                       .size = 1037,
                       .mask = truths,
                       .a = a.data(),
                       .b = zeros ? nullptr : b.data(),
                       .out = out.mutable_data()});
      for (std::int64_t i = 0; i < 1037; ++i) {
        const bool less = at(a, i) < at(b, i);
        ASSERT_EQ(at(out, i), less ? at(a, i) : zeros ? 0.0 : at(b, i));
      }
    }
  }
}

TEST(Strided, ComparesEveryTwoInEveryWay) {
  const std::vector<double> values{-INFINITY, -2.0, -0.0, 0.0, 0.25, 3.0, INFINITY, NAN};
  std::vector<double> left, right;
  for (const double v : values) {
    for (const double w : values) left.push_back(v), right.push_back(w);
  }
  const auto size = static_cast<std::int64_t>(left.size());
  for (const DType dtype : floating()) {
    const DeviceArray a = numbers(dtype, left), b = numbers(dtype, right);
    const auto run = [&](CompareOp op) {
      DeviceArray mask(tested(), DType::kUInt8, {size});
      tested().compare(op, dtype, size, a.data(), b.data(),
                       static_cast<std::uint8_t*>(mask.mutable_data()));
      return mask.to_host();
    };
    const Array equal = run(CompareOp::kEqual), less = run(CompareOp::kLess),
                most = run(CompareOp::kLessEqual);
    for (std::int64_t i = 0; i < size; ++i) {
      const double v = at(a, i), w = at(b, i);
      EXPECT_EQ(equal.as<std::uint8_t>()[static_cast<std::size_t>(i)], v == w) << v << " and " << w;
      EXPECT_EQ(less.as<std::uint8_t>()[static_cast<std::size_t>(i)], v < w) << v << " and " << w;
      EXPECT_EQ(most.as<std::uint8_t>()[static_cast<std::size_t>(i)], v <= w) << v << " and " << w;
    }
  }
}

// In 16 bits and float the result of double is rounded once.
TEST(Strided, LogSoftplusAndPower) {
  for (const DType dtype : floating()) {
    const DeviceArray x = random_array(dtype, {1037}, 1, 0.1, 4.0),
                      y = random_array(dtype, {1037}, 2);
    DeviceArray log(tested(), dtype, {1037}), plus(tested(), dtype, {1037}),
        power(tested(), dtype, {1037});
    tested().unary(UnaryOp::kLog, dtype, 1037, x.data(), log.mutable_data());
    tested().unary(UnaryOp::kSoftplus, dtype, 1037, y.data(), plus.mutable_data());
    tested().binary(BinaryOp::kPower, dtype, 1037, x.data(), y.data(), power.mutable_data());
    const double ulp = dtype == DType::kBfloat16  ? 0x1p-7
                       : dtype == DType::kFloat16 ? 0x1p-10
                       : dtype == DType::kFloat32 ? 0x1p-23
                                                  : 0x1p-51;
    for (std::int64_t i = 0; i < 1037; ++i) {
      const double logarithm = std::log(at(x, i)), result = std::pow(at(x, i), at(y, i)),
                   sum = std::log1p(std::exp(at(y, i)));
      ASSERT_NEAR(at(log, i), logarithm, ulp * std::abs(logarithm));
      ASSERT_NEAR(at(plus, i), sum, ulp * sum);
      ASSERT_NEAR(at(power, i), result, ulp * result);
    }
  }
}

}  // namespace
}  // namespace openrnn::testing
