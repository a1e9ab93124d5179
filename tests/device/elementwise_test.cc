#include <cmath>

#include "device/support.h"

namespace openrnn::testing {
namespace {

DeviceArray run_unary(UnaryOp op, const DeviceArray& x) {
  DeviceArray y(tested(), x.dtype(), x.shape());
  tested().unary(op, x.dtype(), x.size(), x.data(), y.mutable_data());
  return y;
}

DeviceArray run_binary(BinaryOp op, const DeviceArray& a, const DeviceArray& b) {
  DeviceArray c(tested(), a.dtype(), a.shape());
  tested().binary(op, a.dtype(), a.size(), a.data(), b.data(), c.mutable_data());
  return c;
}

// Half a unit in the last place of values of about 2.
double epsilon(DType dtype) {
  if (dtype == DType::kBfloat16) return 0x1p-8;
  return dtype == DType::kFloat16 ? 0x1p-11 : dtype == DType::kFloat32 ? 0x1p-24 : 0x1p-53;
}

TEST(Elementwise, ExactUnaryFunctions) {
  for (const DType dtype : floating()) {
    const DeviceArray x = random_array(dtype, {1037}, 1);
    const DeviceArray relu = run_unary(UnaryOp::kRelu, x), negated = run_unary(UnaryOp::kNegate, x),
                      squared = run_unary(UnaryOp::kSquare, x),
                      absolute = run_unary(UnaryOp::kAbs, x),
                      root = run_unary(UnaryOp::kSqrt, absolute);
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const double v = at(x, i);
      ASSERT_EQ(at(relu, i), std::max(v, 0.0));
      ASSERT_EQ(at(negated, i), -v);
      ASSERT_EQ(at(squared, i), rounded(dtype, v * v));
      ASSERT_EQ(at(absolute, i), std::abs(v));
      // A root that is rounded twice, to float64 first, is the one that is rounded once.
      ASSERT_EQ(at(root, i), rounded(dtype, std::sqrt(std::abs(v))));
    }
  }
}

TEST(Elementwise, KinksHaveNoSlope) {
  for (const DType dtype : floating()) {
    const DeviceArray x = numbers(dtype, {-2.0, -0.0, 0.0, 1.0}),
                      dy = numbers(dtype, {3.0, 3.0, 3.0, 3.0});
    const auto slopes = [&](UnaryOp op) {
      DeviceArray dx(tested(), dtype, {4});
      tested().unary_gradient(op, dtype, 4, x.data(), run_unary(op, x).data(), dy.data(),
                              dx.mutable_data());
      return std::vector<double>{at(dx, 0), at(dx, 1), at(dx, 2), at(dx, 3)};
    };
    EXPECT_EQ(slopes(UnaryOp::kAbs), (std::vector<double>{-3.0, 0.0, 0.0, 3.0}));
    EXPECT_EQ(slopes(UnaryOp::kRelu), (std::vector<double>{0.0, 0.0, 0.0, 3.0}));
  }
}

TEST(Elementwise, ActivationsAreWithinTwoUlp) {
  for (const DType dtype : floating()) {
    const DeviceArray x = random_array(dtype, {1037}, 2);
    const DeviceArray exp = run_unary(UnaryOp::kExp, x), tanh = run_unary(UnaryOp::kTanh, x),
                      sigmoid = run_unary(UnaryOp::kSigmoid, x);
    const double bound = 5 * epsilon(dtype);  // two units, and half a one of this test's own
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const double v = at(x, i);
      ASSERT_NEAR(at(exp, i), std::exp(v), bound * std::exp(v));
      ASSERT_NEAR(at(tanh, i), std::tanh(v), bound * std::abs(std::tanh(v)));
      ASSERT_NEAR(at(sigmoid, i), 1 / (1 + std::exp(-v)), bound);
    }
  }
}

TEST(Elementwise, BinaryRoundsOnce) {
  for (const DType dtype : floating()) {
    const DeviceArray a = random_array(dtype, {519}, 3), b = random_array(dtype, {519}, 4, 0.5, 3);
    const DeviceArray sum = run_binary(BinaryOp::kAdd, a, b),
                      difference = run_binary(BinaryOp::kSubtract, a, b),
                      product = run_binary(BinaryOp::kMultiply, a, b),
                      quotient = run_binary(BinaryOp::kDivide, a, b);
    for (std::int64_t i = 0; i < a.size(); ++i) {
      const double v = at(a, i), w = at(b, i);
      ASSERT_EQ(at(sum, i), rounded(dtype, v + w));
      ASSERT_EQ(at(difference, i), rounded(dtype, v - w));
      ASSERT_EQ(at(product, i), rounded(dtype, v * w));
      // A quotient in double is rounded twice, so the last bit may differ in a tie.
      ASSERT_NEAR(at(quotient, i), v / w, std::abs(v / w) * epsilon(dtype) * 1.001);
    }
  }
}

TEST(Elementwise, NanAndInfinityPass) {
  const auto x = array_of<float>({4}, {NAN, INFINITY, -INFINITY, -0.0f});
  const DeviceArray relu = run_unary(UnaryOp::kRelu, x), tanh = run_unary(UnaryOp::kTanh, x);
  EXPECT_TRUE(std::isnan(at(relu, 0)));
  EXPECT_EQ(at(relu, 1), INFINITY);
  EXPECT_EQ(at(relu, 2), 0.0);
  EXPECT_TRUE(std::isnan(at(tanh, 0)));
  EXPECT_EQ(at(tanh, 1), 1.0);
  EXPECT_EQ(at(tanh, 2), -1.0);
}

constexpr UnaryOp kEveryUnary[] = {
    UnaryOp::kRelu,   UnaryOp::kTanh, UnaryOp::kSigmoid, UnaryOp::kExp, UnaryOp::kNegate,
    UnaryOp::kSquare, UnaryOp::kAbs,  UnaryOp::kSqrt,    UnaryOp::kLog, UnaryOp::kSoftplus};

// By the functions of the C library.
double unary_of(UnaryOp op, double v) {
  switch (op) {
    case UnaryOp::kRelu:
      return v < 0.0 ? 0.0 : v;
    case UnaryOp::kTanh:
      return std::tanh(v);
    case UnaryOp::kSigmoid:
      return 1.0 / (1.0 + std::exp(-v));
    case UnaryOp::kExp:
      return std::exp(v);
    case UnaryOp::kNegate:
      return -v;
    case UnaryOp::kSquare:
      return v * v;
    case UnaryOp::kAbs:
      return std::abs(v);
    case UnaryOp::kSqrt:
      return std::sqrt(v);
    case UnaryOp::kLog:
      return std::log(v);
    case UnaryOp::kSoftplus:
      return v > 40.0 ? v : std::log1p(std::exp(v));
  }
  return NAN;
}

double slope_of(UnaryOp op, double v) {
  const double y = unary_of(op, v);
  switch (op) {
    case UnaryOp::kRelu:
      return v > 0.0 ? 1.0 : 0.0;
    case UnaryOp::kTanh:
      return 1.0 - y * y;
    case UnaryOp::kSigmoid:
      return y * (1.0 - y);
    case UnaryOp::kExp:
      return y;
    case UnaryOp::kNegate:
      return -1.0;
    case UnaryOp::kSquare:
      return 2.0 * v;
    case UnaryOp::kAbs:
      return v > 0.0 ? 1.0 : -1.0;
    case UnaryOp::kSqrt:
      return 0.5 / y;
    case UnaryOp::kLog:
      return 1.0 / v;
    case UnaryOp::kSoftplus:
      return unary_of(UnaryOp::kSigmoid, v);
  }
  return NAN;
}

// From where nothing is left to where nothing fits, and what is no number.
TEST(Elementwise, EveryFunctionOverTheWholeRange) {
  std::vector<double> values{0.0, INFINITY, -INFINITY, NAN};
  for (const double size : {1e-3, 0.3,  0.54, 0.56,  1.05,  1.2,   3.0,   9.5,   15.0,   30.0, 70.0,
                            87.0, 88.5, 95.0, 100.0, 200.0, 700.0, 709.5, 730.0, 1000.0, 3e4}) {
    values.insert(values.end(), {size, -size});
  }
  const auto size = static_cast<std::int64_t>(values.size());
  for (const DType dtype : floating()) {
    const DeviceArray x = numbers(dtype, values);
    // Of the numbers that float and double compute with; below it a function may be 0.
    const double least = dtype == DType::kFloat16   ? 0x1p-24
                         : dtype == DType::kFloat64 ? 0x1p-1022
                                                    : 0x1p-126;
    for (const UnaryOp op : kEveryUnary) {
      const DeviceArray y = run_unary(op, x);
      for (std::int64_t i = 0; i < size; ++i) {
        const double want = rounded(dtype, unary_of(op, at(x, i))), got = at(y, i);
        const bool exact = std::isinf(want) || std::isnan(want);
        // The C library's 1 + exp(-v) has lost the tail of a small sigmoid.
        const double scale = op == UnaryOp::kSigmoid ? 1.0 : std::abs(want);
        EXPECT_TRUE(exact ? got == want || (std::isnan(got) && std::isnan(want))
                          : std::abs(got - want) <= 5 * epsilon(dtype) * scale + least)
            << dtype_name(dtype) << " function " << static_cast<int>(op) << " of " << at(x, i)
            << " is " << got << ", expected " << want;
      }
    }
  }
}

TEST(Elementwise, EveryFunctionHasItsSlope) {
  for (const DType dtype : floating()) {
    const DeviceArray x = random_array(dtype, {131}, 11, 0.25, 2.0),
                      dy = random_array(dtype, {131}, 12),
                      negative = run_unary(UnaryOp::kNegate, x);
    for (const UnaryOp op : kEveryUnary) {
      const bool positive = op == UnaryOp::kSqrt || op == UnaryOp::kLog;
      for (const DeviceArray* const from : {&x, positive ? &x : &negative}) {
        const DeviceArray y = run_unary(op, *from);
        DeviceArray dx(tested(), dtype, {131});
        tested().unary_gradient(op, dtype, 131, from->data(), y.data(), dy.data(),
                                dx.mutable_data());
        for (std::int64_t i = 0; i < 131; ++i) {
          const double want = at(dy, i) * slope_of(op, at(*from, i));
          // y is rounded, by a part of itself that counts as often as 1 - y is smaller than 1.
          ASSERT_NEAR(
              at(dx, i), want,
              16 * epsilon(dtype) * std::abs(at(dy, i)) + 4 * epsilon(dtype) * std::abs(want))
              << dtype_name(dtype) << " function " << static_cast<int>(op) << " at "
              << at(*from, i);
        }
      }
    }
  }
}

TEST(Elementwise, TheGreaterAndTheLesserOfEveryTwo) {
  const std::vector<double> values{-INFINITY, -2.0, -0.5, 0.0, 0.25, 3.0, INFINITY, NAN};
  std::vector<double> left, right;
  for (const double v : values) {
    for (const double w : values) left.push_back(v), right.push_back(w);
  }
  for (const DType dtype : floating()) {
    const DeviceArray a = numbers(dtype, left), b = numbers(dtype, right);
    const DeviceArray most = run_binary(BinaryOp::kMaximum, a, b),
                      least = run_binary(BinaryOp::kMinimum, a, b);
    for (std::int64_t i = 0; i < a.size(); ++i) {
      const double v = at(a, i), w = at(b, i);
      if (std::isnan(v) || std::isnan(w)) {
        EXPECT_TRUE(std::isnan(at(most, i)) && std::isnan(at(least, i))) << v << " and " << w;
      } else {
        EXPECT_EQ(at(most, i), std::max(v, w)) << v << " and " << w;
        EXPECT_EQ(at(least, i), std::min(v, w)) << v << " and " << w;
      }
    }
  }
}

TEST(Elementwise, ScaleFillAccumulate) {
  for (const DType dtype : floating()) {
    const DeviceArray x = random_array(dtype, {67}, 5);
    DeviceArray y(tested(), dtype, {67});
    tested().scale(dtype, 67, -0.75, x.data(), y.mutable_data());
    for (std::int64_t i = 0; i < 67; ++i) ASSERT_EQ(at(y, i), rounded(dtype, -0.75 * at(x, i)));
    tested().accumulate(dtype, 67, x.data(), y.mutable_data());
    for (std::int64_t i = 0; i < 67; ++i) {
      ASSERT_EQ(at(y, i), rounded(dtype, rounded(dtype, -0.75 * at(x, i)) + at(x, i)));
    }
    const auto scalar = array_of<double>({1}, {1.5});
    tested().fill(dtype, 67, 2.0, DType::kFloat64, scalar.data(), y.mutable_data());
    for (std::int64_t i = 0; i < 67; ++i) ASSERT_EQ(at(y, i), 3.0);
    tested().fill(dtype, 66, 0.5, dtype, nullptr, y.mutable_data());
    EXPECT_EQ(at(y, 65), 0.5);
    EXPECT_EQ(at(y, 66), 3.0);
  }
}

// 0.3 is 0.30005 in float16, 0.30078 in bfloat16: the bound is that, so the value next below passes
// with its gradient.
TEST(Elementwise, ClipKeepsWhatIsBetweenItsBounds) {
  for (const DType dtype : floating()) {
    const std::vector<double> values{-1e30, -INFINITY, -0.75, -0.7,    -0.0,
                                     0.25,  0.3,       5000,  INFINITY};
    const auto size = static_cast<std::int64_t>(values.size());
    const DeviceArray x = numbers(dtype, values);
    const DeviceArray dy = random_array(dtype, {size}, 8);
    DeviceArray y(tested(), dtype, {size}), dx(tested(), dtype, {size});
    ClipArgs args{.dtype = dtype, .size = size, .low = -0.7, .high = 0.3, .x = x.data()};
    args.out = y.mutable_data();
    tested().clip(args);
    args.dy = dy.data();
    args.out = dx.mutable_data();
    tested().clip(args);
    const double low = rounded(dtype, -0.7), high = rounded(dtype, 0.3);
    for (std::int64_t i = 0; i < size; ++i) {
      ASSERT_EQ(at(y, i), std::clamp(at(x, i), low, high)) << dtype_name(dtype) << " " << i;
      ASSERT_EQ(at(dx, i), i >= 3 && i <= 6 ? at(dy, i) : 0.0) << dtype_name(dtype) << " " << i;
    }
  }
  const auto nan = array_of<float>({1}, {NAN}), one = array_of<float>({1}, {2.0f});
  DeviceArray out(tested(), DType::kFloat32, {1});
  tested().clip({.size = 1, .low = -1, .high = 1, .x = nan.data(), .out = out.mutable_data()});
  EXPECT_TRUE(std::isnan(at(out, 0)));
  tested().clip({.size = 1,
                 .low = -1,
                 .high = 1,
                 .x = nan.data(),
                 .dy = one.data(),
                 .out = out.mutable_data()});
  EXPECT_EQ(at(out, 0), 2.0);
}

TEST(Elementwise, ConvertRoundsOnce) {
  for (const DType from : floating()) {
    const DeviceArray x = random_array(from, {1031}, 6, -70000, 70000);
    for (const DType to : floating()) {
      DeviceArray y(tested(), to, x.shape());
      tested().convert(x.size(), from, x.data(), to, y.mutable_data());
      for (std::int64_t i = 0; i < x.size(); ++i) ASSERT_EQ(at(y, i), rounded(to, at(x, i)));
    }
  }
}

// Its subnormal numbers are those of float32, which arithmetic flushes and a change of storage
// keeps.
TEST(Elementwise, ConvertKeepsSubnormalsOfBfloat16) {
  if (!tests_cpu()) GTEST_SKIP() << "bfloat16 is of the cpu device";
  const auto wide = array_of<float>({3}, {0x1p-133F, -0x1p-127F, 0x1.8p-134F});
  DeviceArray narrow(tested(), DType::kBfloat16, {3}), back(tested(), DType::kFloat32, {3});
  tested().convert(3, DType::kFloat32, wide.data(), DType::kBfloat16, narrow.mutable_data());
  tested().convert(3, DType::kBfloat16, narrow.data(), DType::kFloat32, back.mutable_data());
  EXPECT_EQ(at(back, 0), 0x1p-133);
  EXPECT_EQ(at(back, 1), -0x1p-127);
  EXPECT_EQ(at(back, 2), 0x1p-133);
}

TEST(Elementwise, SameBitsForAnyThreads) {
  for (const DType dtype : floating()) {
    const DeviceArray x = random_array(dtype, {100003}, 7), w = random_array(dtype, {100003}, 8);
    expect_same_for_threads([&] { return run_unary(UnaryOp::kTanh, x); });
    expect_same_for_threads([&] { return run_unary(UnaryOp::kSquare, x); });
    expect_same_for_threads([&] { return run_binary(BinaryOp::kDivide, x, w); });
    expect_same_for_threads([&] {
      DeviceArray y(tested(), DType::kFloat16, x.shape());
      tested().convert(x.size(), dtype, x.data(), DType::kFloat16, y.mutable_data());
      return y;
    });
    if (!tests_cpu()) continue;
    expect_same_for_threads([&] {
      DeviceArray y(tested(), DType::kBfloat16, x.shape());
      tested().convert(x.size(), dtype, x.data(), DType::kBfloat16, y.mutable_data());
      return y;
    });
  }
}

TEST(Elementwise, RefusesIntegers) {
  std::int32_t x = 1;
  try {
    tested().unary(UnaryOp::kRelu, DType::kInt32, 1, &x, &x);
    FAIL() << "no error";
  } catch (const TypeError& error) {
    EXPECT_STREQ(error.what(), "[unary] dtype is int32, expected a floating dtype");
  }
}

}  // namespace
}  // namespace openrnn::testing
