// Gradients, moments and momenta between layouts: bit for bit, nothing summed, nothing halved.
#include "saveables/support.h"

namespace openrnn {
namespace {

using testing::all_specs;
using testing::numbered;
using testing::rnn_spec;
using testing::same_bits;
using testing::thrown;
using testing::views;

// As numbered(), with each recurrent bias equal to its input bias but for a gru's candidate.
Array like_a_gradient(const RnnSpec& spec) {
  const ParamsLayout layout(spec);
  CanonicalParams parts = slots_to_canonical(layout, numbered(spec).view());
  for (std::size_t i = 0; i < parts.biases.size(); ++i) {
    const ParamRegion& region = layout.biases()[i];
    if (region.role != ParamRole::kRecurrentBias) continue;
    if (spec.mode == RnnMode::kGru && region.gate == 2) continue;
    parts.biases[i] = parts.biases[i - static_cast<std::size_t>(spec.num_gates())];
  }
  return canonical_to_slots(layout, views(parts.weights), views(parts.biases));
}

TEST(Slots, CanonicalListsKeepBothBiases) {
  for (const RnnSpec& spec : all_specs()) {
    SCOPED_TRACE(describe(spec));
    const ParamsLayout layout(spec);
    const Array slots = numbered(spec);
    const CanonicalParams parts = slots_to_canonical(layout, slots.view());
    ASSERT_EQ(parts.biases.size(), layout.biases().size());
    for (std::size_t i = 0; i < parts.biases.size(); ++i) {
      for (std::int64_t k = 0; k < parts.biases[i].size(); ++k) {
        EXPECT_EQ(element(parts.biases[i].view(), k),
                  element(slots.view(), layout.biases()[i].offset + k));
      }
    }
    EXPECT_TRUE(
        same_bits(slots, canonical_to_slots(layout, views(parts.weights), views(parts.biases))));
  }
}

// float32 moments beside float16 parameters: the dtype is the slot's own.
TEST(Slots, HaveADtypeOfTheirOwn) {
  RnnSpec spec = rnn_spec(RnnMode::kGru, 2, 3, 4);
  const Array slots = numbered(spec);
  spec.dtype = DType::kFloat16;
  const ParamsLayout layout(spec);
  const CanonicalParams parts = slots_to_canonical(layout, slots.view());
  EXPECT_EQ(parts.weights[0].dtype(), DType::kFloat32);
  EXPECT_TRUE(
      same_bits(slots, canonical_to_slots(layout, views(parts.weights), views(parts.biases))));
  const TfCanonicalFormat format(spec);
  const std::vector<Array> tensors = format.slots_from_opaque("test", slots.view());
  EXPECT_EQ(tensors[0].dtype(), DType::kFloat32);
  EXPECT_TRUE(same_bits(slots, format.slots_to_opaque("test", "", views(tensors))));
}

TEST(Slots, CellFormatAndBack) {
  for (const RnnSpec& spec : all_specs()) {
    SCOPED_TRACE(describe(spec));
    const TfCanonicalFormat format(spec);
    const Array slots = numbered(spec);
    const std::vector<Array> tensors = format.slots_from_opaque("test", slots.view());
    const auto joined = static_cast<std::size_t>(spec.num_pseudo_layers());
    EXPECT_EQ(tensors.size(), format.tensors().size() + joined);
    EXPECT_TRUE(same_bits(slots, format.slots_to_opaque("test", "", views(tensors))));
    // Weights lie where those of parameters do.
    const std::vector<Array> params = format.from_opaque("test", slots.view());
    for (std::size_t i = 0; i < params.size(); ++i) {
      const bool sums = format.tensors()[i].sums_biases();
      EXPECT_EQ(same_bits(params[i], tensors[i]), !sums) << format.tensors()[i].name;
    }
  }
}

// The gradient of a cell's one bias is that of each of the two; the converter for parameters gives
// twice as much.
TEST(Slots, AGradientIsThatOfTheCell) {
  for (const RnnSpec& spec : all_specs()) {
    SCOPED_TRACE(describe(spec));
    const TfCanonicalFormat format(spec);
    const Array gradient = like_a_gradient(spec);
    const std::vector<Array> doubled = format.from_opaque("test", gradient.view());
    const std::vector<Array> tensors = format.slots_from_opaque("test", gradient.view());
    for (std::size_t i = 0; i < doubled.size(); ++i) {
      const double factor = format.tensors()[i].sums_biases() ? 2.0 : 1.0;
      for (std::int64_t k = 0; k < doubled[i].size(); ++k) {
        EXPECT_EQ(element(doubled[i].view(), k), factor * element(tensors[i].view(), k));
      }
    }
    // A cell has nothing else, and both biases get it.
    const std::vector<ConstArrayView> cell = views(tensors);
    EXPECT_TRUE(same_bits(
        gradient, format.slots_to_opaque("test", "", std::span(cell).first(doubled.size()))));
  }
}

TEST(Slots, ByTheConverters) {
  for (const RnnSpec& spec : all_specs()) {
    SCOPED_TRACE(describe(spec));
    const auto check = [&](const CudnnParamsFormatConverter& converter) {
      const Array slots = numbered(spec);
      const TfCanonicalParams split = converter.opaque_slots_to_tf(slots.view());
      EXPECT_EQ(split.recurrent_biases.size(), static_cast<std::size_t>(spec.num_pseudo_layers()));
      std::vector<ConstArrayView> flat = views(split.weights);
      for (const ConstArrayView& bias : views(split.biases)) flat.push_back(bias);
      EXPECT_TRUE(same_bits(slots, converter.tf_slots_to_opaque(flat, views(split.weights_proj),
                                                                views(split.recurrent_biases))));
      const Array gradient = like_a_gradient(spec);
      const TfCanonicalParams of_gradient = converter.opaque_slots_to_tf(gradient.view());
      flat = views(of_gradient.weights);
      for (const ConstArrayView& bias : views(of_gradient.biases)) flat.push_back(bias);
      EXPECT_TRUE(
          same_bits(gradient, converter.tf_slots_to_opaque(flat, views(of_gradient.weights_proj))));
    };
    if (spec.mode == RnnMode::kLstm) check(CudnnParamsFormatConverterLSTM(spec));
    if (spec.mode == RnnMode::kGru) check(CudnnParamsFormatConverterGRU(spec));
    if (spec.mode == RnnMode::kRnnTanh) check(CudnnParamsFormatConverterTanh(spec));
    if (spec.mode == RnnMode::kRnnRelu) check(CudnnParamsFormatConverterRelu(spec));
  }
}

TEST(Slots, OfASaveable) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const RnnSpec spec = rnn_spec(RnnMode::kGru, 2, 3, 4);
  const CudnnGRUSaveable saveable(Variable("raw", numbered(spec)),
                                  {.network = {.num_layers = 2, .num_units = 3, .input_size = 4}});
  const Array moments = cast(numbered(spec).view(), DType::kFloat64);
  const std::vector<Array> tensors = saveable.slot_to_tensors(moments.view());
  EXPECT_TRUE(same_bits(moments, saveable.slot_from_tensors(tensors)));
  EXPECT_EQ(saveable.bias_sums(), (std::vector<bool>{false, false, false, false, false, false, true,
                                                     false, false, true, false, false}));
  EXPECT_EQ(saveable.object_paths()[5],
            (std::vector<ObjectPath>{{"cell-1", "candidate/hidden_projection/kernel"}}));
}

TEST(Slots, WhatIsRefused) {
  const RnnSpec spec = rnn_spec(RnnMode::kRnnTanh, 2, 2, 1);
  const TfCanonicalFormat format(spec);
  const auto from = [&](const Array& array) {
    return thrown<ArgumentError>([&] { format.slots_from_opaque("call", array.view()); });
  };
  EXPECT_EQ(from(Array(DType::kInt64, {22})),
            "[call] the slot is int64, expected float16, bfloat16, float32 or float64");
  EXPECT_EQ(from(Array(DType::kFloat32, {21})),
            "[call] the slot has 21 elements, expected at least 22 for rnn_tanh, 2 layers, 2 units,"
            " input size 1, unidirectional, float32");
  EXPECT_EQ(from(Array(DType::kFloat32, {1, 22})),
            "[call] the slot has shape [1, 22], expected 1 dimension of 22");

  std::vector<Array> tensors = format.slots_from_opaque("call", numbered(spec).view());
  const auto to = [&] {
    return thrown<ArgumentError>([&] { format.slots_to_opaque("call", "m1/", views(tensors)); });
  };
  EXPECT_EQ(to(), "");
  tensors[5] = Array(DType::kFloat32, {3});
  EXPECT_EQ(to(),
            "[call] the recurrent bias' part of "
            "m1/rnn/multi_rnn_cell/cell_1/basic_rnn_cell/bias has shape [3], expected [2]");
  tensors.pop_back();
  EXPECT_EQ(to(),
            "[call] 5 tensors of a slot, expected 4, or 6 with those of the recurrent biases,"
            " for rnn_tanh, 2 layers, 2 units, input size 1, unidirectional, float32");
  tensors.pop_back();
  tensors[1] = Array(DType::kFloat64, {4, 2});
  EXPECT_EQ(to(),
            "[call] tensor m1/rnn/multi_rnn_cell/cell_1/basic_rnn_cell/kernel is float64, "
            "expected float32");
  tensors[0] = Array(DType::kInt32, {3, 2});
  EXPECT_EQ(to(),
            "[call] tensor m1/rnn/multi_rnn_cell/cell_0/basic_rnn_cell/kernel is int32, "
            "expected float16, bfloat16, float32 or float64");
  const Array integers(DType::kInt32, {2});
  EXPECT_EQ(
      thrown<ArgumentError>([&] {
        canonical_to_slots(ParamsLayout(spec), std::vector<ConstArrayView>{integers.view()}, {});
      }),
      "[canonical_to_slots] weights[0] is int32, expected float16, bfloat16, float32 or float64");
}

// Absent matrices (skip_input) come in as [U', 0] or as [0], for parameters and for slots.
TEST(Slots, EmptyMatricesEitherWay) {
  RnnSpec spec = rnn_spec(RnnMode::kGru, 1, 3, 3);
  spec.input_mode = InputMode::kSkipInput;
  const TfCanonicalFormat format(spec);
  std::vector<Array> tensors = format.from_opaque("call", numbered(spec).view());
  ASSERT_EQ(tensors[1].shape(), (Shape{0, 3}));
  const Array before = format.to_opaque("call", "", views(tensors));
  tensors[1] = Array(DType::kFloat32, {0});
  EXPECT_TRUE(same_bits(before, format.to_opaque("call", "", views(tensors))));
  std::vector<Array> slots = format.slots_from_opaque("call", numbered(spec).view());
  slots[1] = Array(DType::kFloat32, {0});
  EXPECT_TRUE(same_bits(numbered(spec), format.slots_to_opaque("call", "", views(slots))));
  tensors[1] = Array(DType::kFloat32, {3});
  EXPECT_EQ(thrown<ArgumentError>([&] { format.to_opaque("call", "", views(tensors)); }),
            "[call] tensor rnn/multi_rnn_cell/cell_0/cudnn_compatible_gru_cell/candidate/"
            "input_projection/kernel has shape [3], expected [0, 3]");
}

}  // namespace
}  // namespace openrnn
