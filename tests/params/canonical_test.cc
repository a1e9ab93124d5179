#include <gtest/gtest.h>

#include <cstring>

#include "openrnn/params.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

RnnSpec small(DType dtype = DType::kFloat32) {
  RnnSpec spec;
  spec.num_layers = 2;
  spec.num_units = 3;
  spec.input_size = 2;
  spec.num_proj = 2;
  spec.direction = Direction::kBidirectional;
  spec.dtype = dtype;
  return spec;
}

/// Every byte of it different from the adjacent ones, NaN patterns among them.
Array random_bits(DType dtype, std::int64_t size) {
  Array params(dtype, {size});
  RandomStream random(11);
  auto* bytes = static_cast<unsigned char*>(params.data());
  for (std::size_t i = 0; i < params.size_bytes(); ++i) {
    bytes[i] = static_cast<unsigned char>(random.next_uint32());
  }
  return params;
}

std::vector<ConstArrayView> views(const std::vector<Array>& arrays) {
  std::vector<ConstArrayView> list;
  for (const Array& array : arrays) list.push_back(array.view());
  return list;
}

std::vector<RnnSpec> specs() {
  std::vector<RnnSpec> list;
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    list.push_back(small(dtype));
    RnnSpec skip = small(dtype);
    skip.mode = RnnMode::kGru;
    skip.num_proj = 0;
    skip.input_size = 3;
    skip.input_mode = InputMode::kSkipInput;
    list.push_back(skip);
    skip.mode = RnnMode::kRnnRelu;
    skip.direction = Direction::kUnidirectional;
    skip.input_mode = InputMode::kLinearInput;
    list.push_back(skip);
  }
  return list;
}

TEST(Canonical, RoundTripIsBitExact) {
  for (const RnnSpec& spec : specs()) {
    const ParamsLayout layout(spec);
    const Array params = random_bits(spec.dtype, layout.size());
    const CanonicalParams parts = params_to_canonical(layout, params.view());
    const std::int64_t gates = spec.num_gates(), pseudo = spec.num_pseudo_layers();
    EXPECT_EQ(static_cast<std::int64_t>(parts.biases.size()), pseudo * 2 * gates);
    EXPECT_EQ(static_cast<std::int64_t>(parts.weights.size()),
              pseudo * (2 * gates + (spec.projecting() ? 1 : 0)));
    const Array back = canonical_to_params(layout, views(parts.weights), views(parts.biases));
    ASSERT_EQ(back.shape(), params.shape());
    EXPECT_EQ(std::memcmp(back.data(), params.data(), params.size_bytes()), 0) << describe(spec);
  }
}

TEST(Canonical, PartsAreTheRegions) {
  const ParamsLayout layout(small(DType::kFloat64));
  Array params(DType::kFloat64, {layout.size()});
  for (std::size_t i = 0; i < params.as<double>().size(); ++i) {
    params.as<double>()[i] = static_cast<double>(i);
  }
  const CanonicalParams parts = params_to_canonical(layout, params.view());
  // Pseudo-layer 0: four W [3, 2], four R [3, 2], then Wp [2, 3] at 48.
  EXPECT_EQ(parts.weights[8].shape(), (Shape{2, 3}));
  EXPECT_EQ(parts.weights[8].as<double>()[0], 48.0);
  EXPECT_EQ(parts.weights[5].shape(), (Shape{3, 2}));
  EXPECT_EQ(parts.weights[5].as<double>()[1], 31.0);
  EXPECT_EQ(parts.biases[1].as<double>()[0], parts.biases[0].as<double>()[2] + 1.0);
}

TEST(Canonical, ALongerBufferIsTaken) {
  const ParamsLayout layout(small());
  const Array longer = random_bits(DType::kFloat32, layout.size() + 3);
  const CanonicalParams parts = params_to_canonical(layout, longer.view());
  const Array back = canonical_to_params(layout, views(parts.weights), views(parts.biases));
  EXPECT_EQ(back.size(), layout.size());
  EXPECT_EQ(std::memcmp(back.data(), longer.data(), back.size_bytes()), 0);
}

TEST(Canonical, BuffersOfAnotherShapeAreRefused) {
  const ParamsLayout layout(small());
  const std::string size = std::to_string(layout.size());
  expect_error<ArgumentError>(
      [&] { params_to_canonical(layout, Array(DType::kFloat32, {layout.size() - 1}).view()); },
      "[params_to_canonical] params has " + std::to_string(layout.size() - 1) +
          " elements, expected at least " + size + " for " + describe(layout.spec()));
  expect_error<ArgumentError>(
      [&] {
        params_to_canonical(layout, Array(DType::kFloat32, {1, layout.size()}).view());
      },
      "[params_to_canonical] params has shape [1, " + size + "], expected 1 dimension of " + size);
  expect_error<ArgumentError>(
      [&] { params_to_canonical(layout, Array(DType::kFloat16, {layout.size()}).view()); },
      "[params_to_canonical] params is float16, expected float32");
  expect_error<ArgumentError>(
      [&] {
        params_to_canonical(layout, {nullptr, DType::kFloat32, {layout.size()}});
      },
      "[params_to_canonical] params is null, expected " + size + " elements");
  expect_error<ArgumentError>(
      [&] {
        slots_to_canonical(layout, {nullptr, DType::kFloat64, {layout.size()}});
      },
      "[slots_to_canonical] the slot is null, expected " + size + " elements");
}

TEST(Canonical, WrongTensorsAreNamed) {
  const ParamsLayout layout(small());
  const CanonicalParams parts =
      params_to_canonical(layout, random_bits(DType::kFloat32, layout.size()).view());
  std::vector<ConstArrayView> weights = views(parts.weights);
  const std::vector<ConstArrayView> biases = views(parts.biases);
  const auto convert = [&] { canonical_to_params(layout, weights, biases); };
  // Any shape with the right number of elements does.
  weights[5].shape = {6};
  convert();
  weights[5].shape = {3, 3};
  expect_error<ArgumentError>(convert,
                              "[canonical_to_params] weights[5] (l0_fwd/R_f) has 9 elements of "
                              "shape [3, 3], expected 6 of shape [3, 2]");
  weights[5].shape = {3, 2};
  weights[8].dtype = DType::kFloat64;
  expect_error<ArgumentError>(
      convert, "[canonical_to_params] weights[8] (l0_fwd/Wp) is float64, expected float32");
  weights.pop_back();
  expect_error<ArgumentError>(convert, "[canonical_to_params] 35 weights, expected 36");
}

TEST(Canonical, EmptyInputMatricesMayBeGivenEitherWay) {
  RnnSpec spec = small();
  spec.num_proj = 0;
  spec.input_size = 3;
  spec.input_mode = InputMode::kSkipInput;
  const ParamsLayout layout(spec);
  const Array params = random_bits(DType::kFloat32, layout.size());
  const CanonicalParams parts = params_to_canonical(layout, params.view());
  std::vector<ConstArrayView> weights = views(parts.weights);
  EXPECT_EQ(weights[0].shape, (Shape{3, 0}));
  weights[0].shape = {0};
  const Array back = canonical_to_params(layout, weights, views(parts.biases));
  EXPECT_EQ(std::memcmp(back.data(), params.data(), params.size_bytes()), 0);
  weights[0] = weights[4];
  expect_error<ArgumentError>([&] { canonical_to_params(layout, weights, views(parts.biases)); },
                              "[canonical_to_params] weights[0] (l0_fwd/W_i) has 9 elements of "
                              "shape [3, 3], expected 0 of shape [3, 0]");
}

// Biases and slots have the errors of weights, each naming its own list.
TEST(Canonical, WrongBiasesAndSlotsAreNamed) {
  const ParamsLayout layout(small(DType::kFloat64));
  const CanonicalParams parts =
      params_to_canonical(layout, random_bits(DType::kFloat64, layout.size()).view());
  const std::vector<ConstArrayView> weights = views(parts.weights);
  std::vector<ConstArrayView> biases = views(parts.biases);
  const auto expect_both = [&](const std::string& text) {
    expect_error<ArgumentError>([&] { canonical_to_params(layout, weights, biases); },
                                "[canonical_to_params] " + text);
    expect_error<ArgumentError>([&] { canonical_to_slots(layout, weights, biases); },
                                "[canonical_to_slots] " + text);
  };
  biases[9].dtype = DType::kFloat32;
  expect_both("biases[9] (l0_bwd/bW_f) is float32, expected float64");
  biases[9].shape = {2, 1};
  expect_both("biases[9] (l0_bwd/bW_f) has 2 elements of shape [2, 1], expected 3 of shape [3]");
  biases.pop_back();
  expect_both("31 biases, expected 32");
  expect_error<ArgumentError>([&] { canonical_to_slots(layout, biases, biases); },
                              "[canonical_to_slots] 31 weights, expected 36");
  expect_error<ArgumentError>([&] { canonical_to_slots(layout, {}, {}); },
                              "[canonical_to_slots] 0 weights, expected 36");
}

// Of a buffer whose length belongs to another network, and of one that is wrong in two ways.
TEST(Canonical, ExactParamsAreNoLonger) {
  const RnnSpec spec = small(DType::kFloat16);
  const auto said = [&](const Shape& shape, DType dtype) {
    return error_of<ArgumentError>(
        [&] { check_exact_params("call", spec, Array(dtype, shape).view(), 5); });
  };
  EXPECT_EQ(said({5}, DType::kFloat16), "");
  for (const std::int64_t size : {4, 6}) {
    EXPECT_EQ(said({size}, DType::kFloat16), "[call] params has " + std::to_string(size) +
                                                 " elements, expected 5 for " + describe(spec));
    EXPECT_EQ(said({size}, DType::kFloat32), "[call] params is float32, expected float16");
  }
  for (const DType dtype : {DType::kFloat16, DType::kFloat32}) {
    EXPECT_EQ(said({2, 5}, dtype), "[call] params has shape [2, 5], expected 1 dimension of 5");
    EXPECT_EQ(said({}, dtype), "[call] params has shape [], expected 1 dimension of 5");
  }
}

}  // namespace
}  // namespace openrnn
