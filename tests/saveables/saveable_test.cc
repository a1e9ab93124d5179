// The four saveables around a variable, and the converters.
#include "saveables/support.h"

namespace openrnn {
namespace {

using testing::all_specs;
using testing::numbered;
using testing::rnn_spec;
using testing::same_bits;
using testing::thrown;
using testing::views;

TEST(Saveable, StoresAndRestoresTheVariable) {
  for (const RnnSpec& spec : all_specs()) {
    SCOPED_TRACE(describe(spec));
    Graph graph;
    const Graph::AsDefault current(graph);
    const Variable variable("opaque_kernel", numbered(spec));
    const auto saveable = make_cudnn_saveable(
        variable, {.network = spec, .scope = "enc", .name = "enc/opaque_kernel_saveable"});
    EXPECT_EQ(saveable->name(), "enc/opaque_kernel_saveable");
    EXPECT_TRUE(saveable->variable().same_as(variable));
    const TfCanonicalFormat format(spec);
    std::vector<Array> tensors;
    for (auto& stored : saveable->specs()) {
      EXPECT_EQ(stored.name, "enc/" + format.tensors()[tensors.size()].name);
      tensors.push_back(std::move(stored.tensor));
    }
    variable.assign(Array(spec.dtype, variable.shape()).view());
    saveable->restore(tensors);
    EXPECT_TRUE(same_bits(variable.to_host(), format.to_opaque("test", "", views(tensors))));
  }
}

TEST(Saveable, WithoutScopeAndWithDefaults) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const RnnSpec spec = rnn_spec(RnnMode::kRnnRelu, 1, 2, 1);
  const Variable variable("params", numbered(spec));
  const CudnnRNNReluSaveable saveable(variable, {.network = {.num_units = 2, .input_size = 1}});
  EXPECT_EQ(saveable.name(), "cudnn_rnn_saveable");
  EXPECT_EQ(saveable.spec_names(),
            (std::vector<std::string>{"rnn/multi_rnn_cell/cell_0/basic_rnn_cell/kernel",
                                      "rnn/multi_rnn_cell/cell_0/basic_rnn_cell/bias"}));
}

// Where object-based checkpoints have a layer's tensors: in its cells, a single one also alone.
TEST(Saveable, PlacesAmongObjects) {
  const auto paths_of = [](const RnnSpec& spec) {
    Graph graph;
    const Graph::AsDefault current(graph);
    const Variable variable("params", numbered(spec));
    std::string text;
    const auto saveable = make_cudnn_saveable(variable, {.network = spec});
    for (const auto& paths : dynamic_cast<const ObjectSaveable&>(*saveable).object_paths()) {
      for (const ObjectPath& path : paths) {
        for (const std::string& name : path) text += name + (&name == &path.back() ? ", " : "|");
      }
    }
    return text;
  };
  RnnSpec spec = rnn_spec(RnnMode::kLstm, 1, 3, 2);
  EXPECT_EQ(paths_of(spec), "cell-0|kernel, kernel, cell-0|bias, bias, ");
  spec.num_layers = 2;
  EXPECT_EQ(paths_of(spec), "cell-0|kernel, cell-1|kernel, cell-0|bias, cell-1|bias, ");
  spec.direction = Direction::kBidirectional;
  EXPECT_EQ(paths_of(spec),
            "cells_fw-0|kernel, cells_bw-0|kernel, cells_fw-1|kernel, cells_bw-1|kernel, "
            "cells_fw-0|bias, cells_bw-0|bias, cells_fw-1|bias, cells_bw-1|bias, ");
  spec.num_layers = 1;
  EXPECT_EQ(paths_of(spec),
            "cells_fw-0|kernel, cells_bw-0|kernel, cells_fw-0|bias, cells_bw-0|bias, ");
  // A cell that no other program has is named, as its kernel alone would be that of another.
  spec = rnn_spec(RnnMode::kLstm, 2, 3, 2);
  spec.layer_norm = LayerNorm::kProducts;
  EXPECT_EQ(paths_of(spec).find("cell-0|layer_norm_lstm_cell/kernel, "), 0U) << paths_of(spec);
  spec.layer_norm = LayerNorm::kGates;
  spec.layer_norm_cell = LayerNormCell::kCarried;
  spec.layer_norm_epsilon = 1e-12;
  spec.single_bias = true;
  EXPECT_EQ(paths_of(spec).find("cell-0|kernel, cell-1|kernel, "), 0U) << paths_of(spec);
}

TEST(Saveable, ErrorsNameTheTensorInItsScope) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const RnnSpec spec = rnn_spec(RnnMode::kRnnTanh, 1, 2, 1);
  const Variable variable("params", numbered(spec));
  const CudnnRNNTanhSaveable saveable(variable, {.network = spec, .scope = "enc"});
  std::vector<Array> tensors = saveable.to_tensors(numbered(spec).view());
  tensors[1] = Array(DType::kFloat32, {3});
  const std::string text =
      "[CudnnRNNTanhSaveable] tensor enc/rnn/multi_rnn_cell/cell_0/basic_rnn_cell/bias has shape "
      "[3], expected [2]";
  EXPECT_EQ(thrown<ArgumentError>([&] { saveable.from_tensors(tensors); }), text);
  EXPECT_EQ(thrown<ArgumentError>([&] { saveable.slot_from_tensors(tensors); }), text);
  EXPECT_TRUE(same_bits(variable.to_host(), numbered(spec)));
}

// The class alone tells a plain network's function, as its tensors are the same.
TEST(Saveable, IsOfTheModeOfItsNetwork) {
  const std::pair<RnnMode, const char*> modes[] = {{RnnMode::kLstm, "[CudnnLSTMSaveable] "},
                                                   {RnnMode::kGru, "[CudnnGRUSaveable] "},
                                                   {RnnMode::kRnnTanh, "[CudnnRNNTanhSaveable] "},
                                                   {RnnMode::kRnnRelu, "[CudnnRNNReluSaveable] "}};
  Graph graph;
  const Graph::AsDefault current(graph);
  for (const auto& [mode, call] : modes) {
    const RnnSpec spec = rnn_spec(mode, 1, 2, 1, DType::kFloat64);
    const Variable variable("params", numbered(spec));
    // The dtype is the variable's, the mode that of the class.
    const auto saveable =
        make_cudnn_saveable(variable, {.network = {.mode = mode, .num_units = 2, .input_size = 1}});
    EXPECT_EQ(dynamic_cast<const CudnnRnnSaveable&>(*saveable).spec(), spec);
    const Variable other("other", Array(DType::kFloat16, {3, 4}));
    RnnSpec half = spec;
    half.dtype = DType::kFloat16;
    EXPECT_EQ(thrown<ArgumentError>([&] { make_cudnn_saveable(other, {.network = spec}); }),
              call + ("opaque_params " + other.name()) + " has shape [3, 4], expected [" +
                  std::to_string(params_size(spec)) + "] for " + describe(half));
  }
}

TEST(Saveable, AVariableOfAnotherSizeIsRefused) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable variable("params", Array(DType::kFloat32, {7}));
  EXPECT_EQ(thrown<ArgumentError>([&] {
              CudnnGRUSaveable(variable, {.network = {.num_units = 2, .input_size = 1}});
            }),
            "[CudnnGRUSaveable] opaque_params params has shape [7], expected [30] for gru, 1 "
            "layer, 2 units, input size 1, unidirectional, float32");
  EXPECT_EQ(thrown<ArgumentError>([] { CudnnLSTMSaveable({}, {.network = {.num_units = 2}}); }),
            "[CudnnLSTMSaveable] opaque_params is empty, expected a variable");
}

TEST(Converter, SplitsAndJoinsEveryNetwork) {
  for (const RnnSpec& spec : all_specs()) {
    SCOPED_TRACE(describe(spec));
    const auto check = [&](const CudnnParamsFormatConverter& converter) {
      const Array params = numbered(spec);
      const TfCanonicalParams split = converter.opaque_to_tf_canonical(params.view());
      EXPECT_EQ(split.weights.size(), split.biases.size());
      EXPECT_EQ(split.weights_proj.size(),
                static_cast<std::size_t>(spec.projecting() ? spec.num_pseudo_layers() : 0));
      std::vector<ConstArrayView> flat = views(split.weights);
      for (const ConstArrayView& bias : views(split.biases)) flat.push_back(bias);
      const Array back = converter.tf_canonical_to_opaque(flat, views(split.weights_proj));
      const TfCanonicalFormat format(spec);
      EXPECT_TRUE(same_bits(
          back, format.to_opaque("test", "", views(format.from_opaque("test", params.view())))));
    };
    if (spec.mode == RnnMode::kLstm) check(CudnnParamsFormatConverterLSTM(spec));
    if (spec.mode == RnnMode::kGru) check(CudnnParamsFormatConverterGRU(spec));
    if (spec.mode == RnnMode::kRnnTanh) check(CudnnParamsFormatConverterTanh(spec));
    if (spec.mode == RnnMode::kRnnRelu) check(CudnnParamsFormatConverterRelu(spec));
  }
}

// A layer's mode is that of its converter, whatever the network says; its dtype is the values'.
TEST(Converter, TakesModeAndDtypeFromElsewhere) {
  RnnSpec network = rnn_spec(RnnMode::kLstm, 2, 3, 2);
  const auto check = [&](const CudnnParamsFormatConverter& converter, RnnMode mode) {
    for (const DType dtype :
         {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
      const RnnSpec spec = rnn_spec(mode, 2, 3, 2, dtype);
      const Array params = numbered(spec);
      const std::vector<Array> expected =
          TfCanonicalFormat(spec).from_opaque("test", params.view());
      const TfCanonicalParams found = converter.opaque_to_tf_canonical(params.view());
      std::vector<Array> all = found.weights;
      all.insert(all.end(), found.biases.begin(), found.biases.end());
      EXPECT_TRUE(found.weights_proj.empty() && found.recurrent_biases.empty());
      ASSERT_EQ(all.size(), expected.size());
      for (std::size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(same_bits(all[i], expected[i]));
    }
  };
  check(CudnnParamsFormatConverterLSTM(network), RnnMode::kLstm);
  check(CudnnParamsFormatConverterGRU(network), RnnMode::kGru);
  check(CudnnParamsFormatConverterTanh(network), RnnMode::kRnnTanh);
  check(CudnnParamsFormatConverterRelu(network), RnnMode::kRnnRelu);
}

TEST(Converter, WrongListsAreRefused) {
  const CudnnParamsFormatConverterLSTM converter(
      {.num_layers = 2, .num_units = 3, .input_size = 2, .num_proj = 2});
  const Array kernel(DType::kFloat32, {4, 12});
  EXPECT_EQ(thrown<ArgumentError>([&] {
              converter.tf_canonical_to_opaque(std::vector<ConstArrayView>{kernel.view()});
            }),
            "[CudnnParamsFormatConverterLSTM] 1 tf_canonicals and 0 weights_proj, expected 4 and 2 "
            "for lstm, 2 layers, 3 units, input size 2, unidirectional, float32, projection to 2");
  // Only a matrix without elements may come as [0].
  const RnnSpec network = rnn_spec(RnnMode::kGru, 1, 3, 2);
  const CudnnParamsFormatConverterGRU gru(network);
  std::vector<Array> tensors =
      TfCanonicalFormat(network).from_opaque("test", numbered(network).view());
  for (Array& tensor : tensors) {
    const Shape shape = tensor.shape();
    const Array whole = std::exchange(tensor, Array(DType::kFloat32, {0}));
    EXPECT_NE(thrown<ArgumentError>([&] {
                gru.tf_canonical_to_opaque(views(tensors));
              }).find(" has shape [0], expected " + to_string(shape)),
              std::string::npos);
    tensor = Array(whole.view());
  }
  const Array integers(DType::kInt32, {4});
  EXPECT_EQ(
      thrown<ArgumentError>([&] { converter.opaque_to_tf_canonical(integers.view()); }),
      "[CudnnParamsFormatConverterLSTM] values are int32, expected float16, bfloat16, float32 or "
      "float64");
  const Array longer(DType::kFloat32, {157});
  const std::string of_another_network =
      "[CudnnParamsFormatConverterLSTM] the buffer has 157 elements, expected 156 for lstm, 2 "
      "layers, 3 units, input size 2, unidirectional, float32, projection to 2";
  EXPECT_EQ(thrown<ArgumentError>([&] { converter.opaque_to_tf_canonical(longer.view()); }),
            of_another_network);
  EXPECT_EQ(thrown<ArgumentError>([&] { converter.opaque_slots_to_tf(longer.view()); }),
            of_another_network);
}

// The network that an error describes has the dtype of what was given.
TEST(Converter, ErrorsNameTheDtypeOfTheValues) {
  const CudnnParamsFormatConverterGRU converter({.num_units = 3, .input_size = 2});
  const auto described = [](const char* dtype) {
    return " for gru, 1 layer, 3 units, input size 2, unidirectional, " + std::string(dtype);
  };
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat64}) {
    const std::string end = described(std::string(dtype_name(dtype)).c_str());
    const Array longer(dtype, {64}), shorter(dtype, {62}), matrix(dtype, {1, 63});
    const std::string too_long =
        "[CudnnParamsFormatConverterGRU] the buffer has 64 elements, expected 63" + end;
    EXPECT_EQ(thrown<ArgumentError>([&] { converter.opaque_to_tf_canonical(longer.view()); }),
              too_long);
    EXPECT_EQ(thrown<ArgumentError>([&] { converter.opaque_slots_to_tf(longer.view()); }),
              too_long);
    EXPECT_EQ(thrown<ArgumentError>([&] { converter.opaque_to_tf_canonical(shorter.view()); }),
              "[CudnnParamsFormatConverterGRU] params has 62 elements, expected at least 63" + end);
    EXPECT_EQ(
        thrown<ArgumentError>([&] { converter.opaque_slots_to_tf(shorter.view()); }),
        "[CudnnParamsFormatConverterGRU] the slot has 62 elements, expected at least 63" + end);
    EXPECT_EQ(thrown<ArgumentError>([&] { converter.opaque_to_tf_canonical(matrix.view()); }),
              "[CudnnParamsFormatConverterGRU] params has shape [1, 63], expected 1 dimension of "
              "63");
    const Array kernel(dtype, {5, 6});
    const std::vector<ConstArrayView> one{kernel.view()};
    const std::string few =
        "[CudnnParamsFormatConverterGRU] 1 tf_canonicals and 0 weights_proj, expected 6 and 0" +
        end;
    EXPECT_EQ(thrown<ArgumentError>([&] { converter.tf_canonical_to_opaque(one); }), few);
    EXPECT_EQ(thrown<ArgumentError>([&] { converter.tf_slots_to_opaque(one); }), few);
  }
  const std::string none =
      "[CudnnParamsFormatConverterGRU] 0 tf_canonicals and 0 weights_proj, expected 6 and 0" +
      described("float32");
  EXPECT_EQ(thrown<ArgumentError>([&] { converter.tf_canonical_to_opaque({}); }), none);
  EXPECT_EQ(thrown<ArgumentError>([&] { converter.tf_slots_to_opaque({}); }), none);
  const Array integers(DType::kInt64, {3});
  const std::vector<ConstArrayView> wrong{integers.view()};
  const std::string refused =
      "[CudnnParamsFormatConverterGRU] values are int64, expected float16, bfloat16, float32 or "
      "float64";
  EXPECT_EQ(thrown<ArgumentError>([&] { converter.tf_slots_to_opaque(wrong); }), refused);
  EXPECT_EQ(thrown<ArgumentError>([&] { converter.opaque_slots_to_tf(integers.view()); }), refused);
}

// Each converter names itself, and takes no network that its mode has not.
TEST(Converter, NamesItselfAndValidates) {
  const Array integers(DType::kInt32, {4});
  const RnnSpec network{.num_units = 2, .input_size = 1};
  const auto said = [&](const CudnnParamsFormatConverter& converter) {
    return thrown<ArgumentError>([&] { converter.opaque_to_tf_canonical(integers.view()); });
  };
  const std::string end = " values are int32, expected float16, bfloat16, float32 or float64";
  EXPECT_EQ(said(CudnnParamsFormatConverterLSTM(network)),
            "[CudnnParamsFormatConverterLSTM]" + end);
  EXPECT_EQ(said(CudnnParamsFormatConverterGRU(network)), "[CudnnParamsFormatConverterGRU]" + end);
  EXPECT_EQ(said(CudnnParamsFormatConverterTanh(network)),
            "[CudnnParamsFormatConverterTanh]" + end);
  EXPECT_EQ(said(CudnnParamsFormatConverterRelu(network)),
            "[CudnnParamsFormatConverterRelu]" + end);
  const RnnSpec peepholes{.num_units = 2, .input_size = 1, .use_peepholes = true};
  EXPECT_EQ(thrown<ArgumentError>([&] { CudnnParamsFormatConverterGRU converter(peepholes); }),
            "[RnnSpec] use_peepholes is set for gru, expected it for lstm only");
}

}  // namespace
}  // namespace openrnn
