#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "openrnn/params.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

Array filled(const Initializer& initializer, Shape shape, DType dtype = DType::kFloat64) {
  Array values(dtype, std::move(shape));
  RandomStream random(9, 4);
  initializer(values.view(), random);
  return values;
}

struct Moments {
  double mean = 0.0, stddev = 0.0, low = HUGE_VAL, high = -HUGE_VAL;
};

Moments moments(const Array& values) {
  Moments m;
  const auto n = static_cast<double>(values.size());
  double squares = 0.0;
  for (std::int64_t i = 0; i < values.size(); ++i) {
    const double v = element(values.view(), i);
    m.mean += v / n;
    squares += v * v / n;
    m.low = std::min(m.low, v);
    m.high = std::max(m.high, v);
  }
  m.stddev = std::sqrt(squares - m.mean * m.mean);
  return m;
}

TEST(Initializers, UniformFillsItsRange) {
  const Moments m = moments(filled(random_uniform_initializer(-0.2, 0.6), {100, 300}));
  EXPECT_GE(m.low, -0.2);
  EXPECT_LT(m.low, -0.199);
  EXPECT_LT(m.high, 0.6);
  EXPECT_GT(m.high, 0.599);
  // Five standard deviations of a mean of 30000.
  EXPECT_NEAR(m.mean, 0.2, 5 * 0.231 / std::sqrt(30000.0));
  EXPECT_NEAR(m.stddev, 0.8 / std::sqrt(12.0), 0.005);
}

TEST(Initializers, NormalHasItsMoments) {
  const Moments m = moments(filled(random_normal_initializer(1.5, 0.25), {100, 300}));
  EXPECT_NEAR(m.mean, 1.5, 5 * 0.25 / std::sqrt(30000.0));
  EXPECT_NEAR(m.stddev, 0.25, 0.006);
  EXPECT_LT(m.low, 1.5 - 3.0 * 0.25);
}

TEST(Initializers, GlorotDependsOnBothSides) {
  const double limit = std::sqrt(6.0 / (100 + 300));
  const Moments uniform = moments(filled(glorot_uniform_initializer(), {100, 300}));
  EXPECT_LE(uniform.high, limit);
  EXPECT_GT(uniform.high, 0.999 * limit);
  EXPECT_GE(uniform.low, -limit);
  EXPECT_LT(uniform.low, -0.999 * limit);
  const Moments normal = moments(filled(glorot_normal_initializer(), {100, 300}));
  EXPECT_NEAR(normal.stddev, std::sqrt(2.0 / 400), 0.002);
  EXPECT_NEAR(normal.mean, 0.0, 5 * 0.0708 / std::sqrt(30000.0));
}

TEST(Initializers, GlorotTakesTheSizeOfAVectorForBothSides) {
  const double limit = std::sqrt(6.0 / (2 * 3000));
  const Moments m = moments(filled(glorot_uniform_initializer(), {3000}));
  EXPECT_LE(m.high, limit);
  EXPECT_GT(m.high, 0.99 * limit);
  EXPECT_GE(m.low, -limit);
  EXPECT_LT(m.low, -0.99 * limit);
}

TEST(Initializers, ConstantIsConstantInEveryType) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    const Moments m = moments(filled(constant_initializer(0.75), {7}, dtype));
    EXPECT_EQ(m.low, 0.75);
    EXPECT_EQ(m.high, 0.75);
  }
}

template <class T>
void expect_held(const std::vector<T>& constants) {
  for (const T value : constants) {
    const Array values = filled(constant_initializer(static_cast<double>(value)), {3}, kDTypeOf<T>);
    for (const T element : values.as<T>()) EXPECT_EQ(element, value) << dtype_name(values.dtype());
  }
}

TEST(Initializers, ConstantsOfIntegersAreWhatTheDtypeHolds) {
  expect_held<std::int32_t>({0, 1, -3, INT32_MAX, INT32_MIN});
  expect_held<std::int64_t>({0, 1, -3, std::int64_t{1} << 53, INT64_MIN});
  expect_held<std::uint8_t>({0, 1, 255});
  expect_held<bool>({false, true});
  const std::pair<DType, std::vector<double>> refused[] = {
      {DType::kInt32, {0.5, 2147483648.0, -2147483649.0, NAN}},
      {DType::kInt64, {0.5, 0x1p63, -0x1.0000000000001p63, INFINITY}},
      {DType::kUInt8, {0.5, 256, -1}},
      {DType::kBool, {0.5, 2, -1}}};
  for (const auto& [dtype, constants] : refused) {
    for (const double value : constants) {
      EXPECT_THROW(filled(constant_initializer(value), {3}, dtype), ArgumentError)
          << value << ' ' << dtype_name(dtype);
    }
  }
  expect_error<ArgumentError>(
      [&] { filled(constant_initializer(0.5), {3}, DType::kInt32); },
      "[constant_initializer] 0.5 is given for int32, expected a number that it holds");
}

TEST(Initializers, OnlyFloatingValuesAreDrawn) {
  for (const Initializer& initializer :
       {glorot_uniform_initializer(), glorot_normal_initializer(), random_uniform_initializer(),
        random_normal_initializer()}) {
    expect_error<ArgumentError>(
        [&] { filled(initializer, {3}, DType::kInt32); },
        "[initializer] the values are int32, expected a floating dtype, or a constant");
  }
}

/// The largest deviation of the short side's products from gain^2 times the identity.
double orthogonality(const Array& m, std::size_t rows, std::size_t cols, double gain) {
  const auto v = m.as<double>();
  const bool wide = rows <= cols;
  const std::size_t few = wide ? rows : cols, many = wide ? cols : rows;
  double worst = 0.0;
  for (std::size_t i = 0; i < few; ++i) {
    for (std::size_t j = 0; j < few; ++j) {
      double sum = 0.0;
      for (std::size_t k = 0; k < many; ++k) {
        sum += wide ? v[i * cols + k] * v[j * cols + k] : v[k * cols + i] * v[k * cols + j];
      }
      worst = std::max(worst, std::abs(sum - (i == j ? gain * gain : 0.0)));
    }
  }
  return worst;
}

TEST(Initializers, OrthogonalIsOrthogonal) {
  for (const auto& [rows, cols] :
       {std::pair{20, 20}, {7, 33}, {33, 7}, {1, 5}, {1, 1}, {300, 300}}) {
    const Array m = filled(orthogonal_initializer(1.5), {rows, cols});
    EXPECT_LT(orthogonality(m, static_cast<std::size_t>(rows), static_cast<std::size_t>(cols), 1.5),
              1e-13)
        << rows << " x " << cols;
  }
}

// The fans of a stack of matrices are those of its last two sizes; a number's are 1 and 1.
TEST(Initializers, GlorotOfOtherRanks) {
  for (const auto& [shape, fans] :
       {std::pair{Shape{5, 3, 4}, 7.0}, {Shape{3}, 6.0}, {Shape{}, 2.0}, {Shape{0}, 0.0}}) {
    const Array uniform = filled(glorot_uniform_initializer(), shape);
    const Array normal = filled(glorot_normal_initializer(), shape);
    const double limit = std::sqrt(6.0 / fans), stddev = std::sqrt(2.0 / fans);
    const Array plain = filled(random_uniform_initializer(-limit, limit), shape);
    const Array scaled = filled(random_normal_initializer(0.0, stddev), shape);
    for (std::int64_t i = 0; i < uniform.size(); ++i) {
      EXPECT_EQ(element(uniform.view(), i), element(plain.view(), i)) << to_string(shape);
      EXPECT_EQ(element(normal.view(), i), element(scaled.view(), i)) << to_string(shape);
    }
  }
}

// Each type has the numbers of float64, rounded.
TEST(Initializers, NumbersAreThoseOfFloat64Rounded) {
  const Initializer all[] = {glorot_uniform_initializer(), glorot_normal_initializer(),
                             random_uniform_initializer(-0.3, 0.7),
                             random_normal_initializer(0.1, 0.6), orthogonal_initializer(0.7)};
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    for (const Initializer& initializer : all) {
      const Array exact = cast(filled(initializer, {4, 3}).view(), dtype);
      const Array given = filled(initializer, {4, 3}, dtype);
      EXPECT_EQ(std::memcmp(given.data(), exact.data(), exact.size_bytes()), 0)
          << dtype_name(dtype);
    }
  }
}

TEST(Initializers, OrthogonalOfNothingAndOfMoreSizes) {
  for (const Shape& shape : {Shape{0, 3}, Shape{3, 0}, Shape{0}}) {
    EXPECT_EQ(filled(orthogonal_initializer(1.0), shape).size(), 0) << to_string(shape);
  }
  // The last size is that of the columns.
  const Array stack = filled(orthogonal_initializer(2.0), {2, 3, 4});
  const Array matrix = filled(orthogonal_initializer(2.0), {6, 4});
  EXPECT_EQ(std::memcmp(stack.data(), matrix.data(), matrix.size_bytes()), 0);
  EXPECT_LT(orthogonality(stack, 6, 4, 2.0), 1e-13);
}

TEST(Initializers, HaveDefaults) {
  const std::pair<Initializer, Initializer> pairs[] = {
      {random_uniform_initializer(), random_uniform_initializer(-0.05, 0.05)},
      {random_normal_initializer(), random_normal_initializer(0.0, 0.05)},
      {orthogonal_initializer(), orthogonal_initializer(1.0)}};
  for (const auto& [by_default, spelled] : pairs) {
    const Array a = filled(by_default, {3, 4}), b = filled(spelled, {3, 4});
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size_bytes()), 0);
  }
}

TEST(InitializeParams, GivesEveryTensorItsOwnNumbers) {
  RnnSpec spec;
  spec.mode = RnnMode::kGru;
  spec.num_layers = 2;
  spec.num_units = spec.input_size = 6;
  spec.direction = Direction::kBidirectional;
  const ParamsLayout layout(spec);
  const Array params = initialize_params(layout, 5);
  ASSERT_EQ(params.size(), layout.size());
  const CanonicalParams parts = params_to_canonical(layout, params.view());
  for (const Array& bias : parts.biases) {
    for (const float v : bias.as<float>()) EXPECT_EQ(v, 0.0f);
  }
  for (std::size_t a = 0; a < parts.weights.size(); ++a) {
    const double limit = std::sqrt(6.0 / static_cast<double>(6 + parts.weights[a].shape()[1]));
    EXPECT_LE(moments(parts.weights[a]).high, limit);
    EXPECT_GT(moments(parts.weights[a]).stddev, 0.3 * limit);
    for (std::size_t b = 0; b < a; ++b) {
      EXPECT_NE(parts.weights[a].as<float>()[0], parts.weights[b].as<float>()[0]) << a << " " << b;
    }
  }
}

// A seed gives the same weights in every version.
TEST(InitializeParams, EveryTensorHasTheStreamOfItsPlace) {
  RnnSpec spec;
  spec.num_units = 5;
  spec.input_size = 3;
  spec.dtype = DType::kFloat64;
  const ParamsLayout layout(spec);
  const Array params =
      initialize_params(layout, 5, random_uniform_initializer(), random_normal_initializer());
  const CanonicalParams parts = params_to_canonical(layout, params.view());
  std::uint64_t stream = 0;
  const auto expect = [&](const std::vector<Array>& tensors, const Initializer& initializer) {
    for (const Array& tensor : tensors) {
      Array expected(tensor.dtype(), tensor.shape());
      RandomStream random(5, ++stream);
      initializer(expected.view(), random);
      EXPECT_EQ(std::memcmp(tensor.data(), expected.data(), expected.size_bytes()), 0) << stream;
    }
  };
  expect(parts.weights, random_uniform_initializer());
  expect(parts.biases, random_normal_initializer());
}

// A normalization starts as what it is: gains of 1 and a cell's bias of 0. Peepholes are
// weights.
TEST(InitializeParams, GainsAndTheCellsBiasTakeNoInitializer) {
  RnnSpec spec;
  spec.num_units = 3;
  spec.input_size = 2;
  spec.use_peepholes = true;
  spec.layer_norm_cell = LayerNormCell::kCarried;
  for (const LayerNorm norm : {LayerNorm::kProducts, LayerNorm::kGates}) {
    spec.layer_norm = norm;
    spec.single_bias = norm == LayerNorm::kGates;
    const ParamsLayout layout(spec);
    const Array params =
        initialize_params(layout, 5, constant_initializer(2.0), constant_initializer(3.0));
    for (const auto regions : {layout.weights(), layout.biases()}) {
      for (const ParamRegion& region : regions) {
        const double expected = region.role == ParamRole::kCellBias ? 0.0
                                : region.is_gain()                  ? 1.0
                                : region.is_bias()                  ? 3.0
                                                                    : 2.0;
        const bool is_gain = region.name.find("/g") != std::string::npos;
        EXPECT_EQ(region.is_gain(), is_gain) << region.name;
        for (std::int64_t i = 0; i < region.size(); ++i) {
          EXPECT_EQ(element(params.view(), region.offset + i), expected) << region.name;
        }
      }
    }
    EXPECT_EQ(element(params.view(), layout.bias(0, 0, ParamRole::kPeephole, 3).offset), 2.0);
  }
}

TEST(InitializeParams, RepeatsForASeedAndTakesInitializers) {
  RnnSpec spec;
  spec.num_units = 5;
  spec.input_size = 3;
  spec.dtype = DType::kFloat64;
  const ParamsLayout layout(spec);
  const Array first = initialize_params(layout, 5), again = initialize_params(layout, 5);
  EXPECT_EQ(std::memcmp(first.data(), again.data(), first.size_bytes()), 0);
  const Array other = initialize_params(layout, 6);
  EXPECT_NE(std::memcmp(first.data(), other.data(), first.size_bytes()), 0);
  const Array given =
      initialize_params(layout, 5, constant_initializer(2.0), constant_initializer(3.0));
  const CanonicalParams parts = params_to_canonical(layout, given.view());
  for (const Array& w : parts.weights) EXPECT_EQ(moments(w).low + moments(w).high, 4.0);
  for (const Array& b : parts.biases) EXPECT_EQ(moments(b).low + moments(b).high, 6.0);
}

// The first vector is a draw of normal values of length 1: a row, unless columns are fewer.
TEST(Orthogonal, VectorsAreDrawnInTheirOrder) {
  for (const Shape& shape : {Shape{4, 4}, Shape{1, 1}, Shape{3, 5}, Shape{5, 3}, Shape{2, 2, 4}}) {
    Array values(DType::kFloat64, shape);
    RandomStream random(5, 2), again(5, 2);
    orthogonal_initializer(1.5)(values.view(), random);
    const auto cols = static_cast<std::size_t>(shape.back());
    const std::size_t rows = values.as<double>().size() / cols, length = std::max(rows, cols);
    std::vector<double> first(length);
    double squares = 0.0;
    for (double& value : first) {
      value = again.normal();
      squares += value * value;
    }
    for (std::size_t i = 0; i < length; ++i) {
      const std::size_t at = rows <= cols ? i : i * cols;
      EXPECT_NEAR(values.as<double>()[at], 1.5 * first[i] / std::sqrt(squares), 1e-14)
          << to_string(shape) << " " << i;
    }
  }
}

}  // namespace
}  // namespace openrnn
