// The functions of the reference's equations, at their kinks and between them: values, slopes, and
// what numbers with a derivative make of both.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "reference/dual.h"

namespace openrnn::reference {
namespace {

struct At {
  double argument, value, slope;
};

TEST(ReferenceFunctions, HaveTheSlopesOfTheirKinks) {
  const struct {
    const char* function;
    std::vector<At> at;
  } cases[] = {
      {"relu", {{-1, 0, 0}, {0, 0, 0}, {2, 2, 1}}},
      {"affine(0.75, -0.5)", {{-2, -2, 0.75}, {0, -0.5, 0.75}, {2, 1, 0.75}}},
      {"leaky_relu(0.25)", {{-2, -0.5, 0.25}, {0, 0, 0.25}, {2, 2, 1}}},
      {"thresholded_relu(0.5)", {{-1, 0, 0}, {0.25, 0, 0}, {0.5, 0, 0}, {0.75, 0.75, 1}}},
      {"thresholded_relu(-0.5)", {{-1, 0, 0}, {-0.5, 0, 0}, {-0.25, -0.25, 1}, {1, 1, 1}}},
      {"hard_sigmoid(0.25, 0.5)",
       {{-3, 0, 0}, {-2, 0, 0}, {-1, 0.25, 0.25}, {0, 0.5, 0.25}, {2, 1, 0}, {3, 1, 0}}},
      {"elu(0.5)", {{0, 0, 0.5}, {2, 2, 1}}},
      {"softsign", {{-1, -0.5, 0.25}, {0, 0, 1}, {3, 0.75, 0.0625}}},
      {"sigmoid", {{0, 0.5, 0.25}}},
      {"tanh", {{0, 0, 1}}},
      {"scaled_tanh(1.5, 0.5)", {{0, 0, 0.75}}},
      {"softplus", {{0, std::log(2.0), 0.5}}},
  };
  for (const auto& one : cases) {
    const CellActivation f = parse_cell_activation(one.function);
    for (const At& at : one.at) {
      const double y = activate(f, at.argument);
      EXPECT_DOUBLE_EQ(y, at.value) << one.function << " at " << at.argument;
      EXPECT_DOUBLE_EQ(slope_of(f, at.argument, y), at.slope)
          << one.function << " at " << at.argument;
    }
  }
}

double difference(const std::function<double(double)>& f, double at) {
  constexpr double kStep = 1e-5;
  return (f(at + kStep) - f(at - kStep)) / (2 * kStep);
}

// The slope is that of the values, and a derivative moves both as far as they move.
TEST(ReferenceFunctions, DerivativesAreDifferences) {
  for (const char* const text :
       {"sigmoid", "tanh", "relu", "affine(0.75, -0.5)", "leaky_relu(0.3)", "thresholded_relu(0.4)",
        "scaled_tanh(1.7, 0.6)", "hard_sigmoid(0.2, 0.4)", "elu(0.7)", "softsign", "softplus"}) {
    const CellActivation f = parse_cell_activation(text);
    const auto value = [&f](double a) { return activate(f, a); };
    const auto slope = [&](double a) { return slope_of(f, a, value(a)); };
    for (const double a : {-4.1, -1.3, -0.6, 0.2, 0.9, 2.3}) {
      EXPECT_NEAR(slope(a), difference(value, a), 1e-8) << text << " at " << a;
      const Dual moved(a, 0.75), y = activate(f, moved), s = slope_of(f, moved, y);
      EXPECT_EQ(y.value, value(a)) << text << " at " << a;
      EXPECT_NEAR(y.d, 0.75 * slope(a), 1e-14) << text << " at " << a;
      EXPECT_EQ(s.value, slope(a)) << text << " at " << a;
      EXPECT_NEAR(s.d, 0.75 * difference(slope, a), 1e-8) << text << " at " << a;
    }
  }
}

TEST(ReferenceFunctions, OfTwoNumbersMoveWithBoth) {
  const Dual a(1.25, 0.5), b(-0.75, 2.0);
  const auto expect = [](const Dual& found, double value, double d) {
    EXPECT_DOUBLE_EQ(found.value, value);
    EXPECT_DOUBLE_EQ(found.d, d);
  };
  expect(a + b, 0.5, 2.5);
  expect(a - b, 2.0, -1.5);
  expect(a * b, -0.9375, 1.25 * 2.0 - 0.75 * 0.5);
  Dual sum = a;
  sum += b;
  expect(sum, 0.5, 2.5);
  expect(Dual(3.0), 3.0, 0.0);
  expect(times_mask(a, 4.0), 5.0, 2.0);
  expect(times_mask(a, 0.0), 0.0, 0.0);
  // y = (0.16)^-1/2 = 2.5 and -y^3 / 2 each.
  expect(inverse_root(Dual(0.15, 2.0), 0.01), 2.5, -15.625);
}

TEST(ReferenceFunctions, AClampPassesBetweenItsEndsAndAtThem) {
  const struct {
    double argument, value, slope;
  } cases[] = {{-0.5, -0.25, 0}, {-0.25, -0.25, 1}, {0.125, 0.125, 1}, {0.5, 0.5, 1}, {1, 0.5, 0}};
  for (const auto& one : cases) {
    EXPECT_EQ(clamp_to(one.argument, -0.25, 0.5), one.value) << one.argument;
    EXPECT_EQ(clamp_slope(one.argument, -0.25, 0.5), one.slope) << one.argument;
    const Dual moved = clamp_to(Dual(one.argument, 3.0), -0.25, 0.5);
    EXPECT_EQ(moved.value, one.value) << one.argument;
    EXPECT_EQ(moved.d, 3.0 * one.slope) << one.argument;
    const Dual passed = clamp_slope(Dual(one.argument, 3.0), -0.25, 0.5);
    EXPECT_EQ(passed.value, one.slope) << one.argument;
    EXPECT_EQ(passed.d, 0.0) << one.argument;
  }
}

// What a clip holds has no slope, whatever the function.
TEST(ReferenceFunctions, OfAClippedArgumentHaveItsSlope) {
  const CellActivation f = parse_cell_activation("affine(0.5, 0.25)");
  Function<double> result;
  const std::array<double, 2> clip{-1.0, 2.0};
  for (const double a : {-3.0, -1.0, 1.0, 2.0, 5.0}) apply(f, a, {clip}, result);
  apply(f, 5.0, std::nullopt, result);
  EXPECT_EQ(result.argument, (std::vector<double>{-3, -1, 1, 2, 5, 5}));
  EXPECT_EQ(result.value, (std::vector<double>{-0.25, -0.25, 0.75, 1.25, 1.25, 2.75}));
  EXPECT_EQ(result.slope, (std::vector<double>{0, 0.5, 0.5, 0.5, 0, 0.5}));
}

TEST(ReferenceFunctions, KeepStatesAsTheyAreStored) {
  // 1 + 2^-8 is a float16, and half way between two bfloat16, of which 1 is the even one.
  EXPECT_EQ(kept_as(1.00390625, DType::kFloat16), 1.00390625);
  EXPECT_EQ(kept_as(1.00390625, DType::kBfloat16), 1.0);
  EXPECT_EQ(kept_as(1.00390625 + 0x1p-20, DType::kFloat16), 1.00390625);
  EXPECT_EQ(kept_as(0.1, DType::kFloat32), 0.1);
  EXPECT_EQ(kept_as(0.1, DType::kFloat64), 0.1);
}

}  // namespace
}  // namespace openrnn::reference
