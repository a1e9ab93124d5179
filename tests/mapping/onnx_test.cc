// ONNX models as networks: orders and layouts, what is folded, what is refused; and back.

#include <gtest/gtest.h>
#include <openrnn/mapping_onnx.h>

#include "formats/temp_folder.h"
#include "mapping/networks.h"
#include "mapping/onnx/cell.h"

namespace openrnn {
namespace {

using formats::TempFolder;

RnnSpec plain(RnnMode mode, std::int64_t layers = 1) {
  return {.mode = mode, .num_layers = layers, .num_units = 3, .input_size = 2};
}

MappedModel model_of(MappedNetwork network) {
  MappedModel model;
  model.networks.push_back(std::move(network));
  return model;
}

// Through the bytes of a file.
MappedModel through_file(const MappedModel& model) {
  const TempFolder folder;
  save_networks(folder / "m.onnx", model, ModelFormat::kOnnx);
  return load_networks(folder / "m.onnx");
}

TEST(OnnxMapping, EveryModeDirectionDepthAndDTypeComesBack) {
  for (const RnnMode mode : {RnnMode::kRnnRelu, RnnMode::kRnnTanh, RnnMode::kLstm, RnnMode::kGru}) {
    for (const Direction direction : {Direction::kUnidirectional, Direction::kBidirectional}) {
      for (const std::int64_t layers : {1, 3}) {
        for (const DType dtype :
             {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
          RnnSpec spec = plain(mode, layers);
          spec.direction = direction;
          spec.dtype = dtype;
          const MappedNetwork network = network_of(spec, "encoder");
          const MappedModel back = through_file(model_of(network));
          ASSERT_EQ(back.networks.size(), 1u) << describe(spec);
          EXPECT_EQ(back.networks[0].spec, spec) << describe(back.networks[0].spec);
          EXPECT_EQ(back.networks[0].name, "encoder");
          EXPECT_TRUE(same_bytes(back.networks[0].params, network.params)) << describe(spec);
          EXPECT_FALSE(back.networks[0].initial_h);
          EXPECT_EQ(back.notes, std::vector<std::string>());
          EXPECT_EQ(back.kind, FileKind::kOnnx);
        }
      }
    }
  }
}

TEST(OnnxMapping, OptionsComeBack) {
  std::vector<RnnSpec> specs;
  const auto add = [&](RnnMode mode, auto change) {
    specs.push_back(plain(mode, 2));
    change(specs.back());
  };
  const auto activation = [](const char* text) { return parse_cell_activation(text); };
  add(RnnMode::kGru, [](RnnSpec& spec) { spec.reset_after = false; });
  add(RnnMode::kGru, [&](RnnSpec& spec) { spec.recurrent_activation = activation("softsign"); });
  add(RnnMode::kLstm, [](RnnSpec& spec) { spec.use_bias = false; });
  add(RnnMode::kLstm, [](RnnSpec& spec) { spec.use_peepholes = true; });
  add(RnnMode::kLstm, [](RnnSpec& spec) { spec.coupled_gates = true; });
  add(RnnMode::kLstm, [](RnnSpec& spec) { spec.gate_clip = {-0.3, 0.3}; });
  add(RnnMode::kLstm, [&](RnnSpec& spec) {
    spec.direction = Direction::kBidirectional;
    spec.use_peepholes = true;
    spec.activation = activation("scaled_tanh(1.7, 0.66)");
    spec.recurrent_activation = activation("hard_sigmoid(0.2, 0.4)");
    spec.output_activation = activation("elu(0.3)");
  });
  for (const char* text : {"affine(0.5, 0.25)", "leaky_relu(0.3)", "thresholded_relu(0.1)",
                           "softplus", "hard_sigmoid", "sigmoid"}) {
    add(RnnMode::kRnnTanh, [&](RnnSpec& spec) { spec.activation = activation(text); });
  }
  for (const RnnSpec& spec : specs) {
    const MappedNetwork network = network_of(spec);
    const MappedModel back = through_file(model_of(network));
    ASSERT_EQ(back.networks.size(), 1u) << describe(spec);
    EXPECT_EQ(back.networks[0].spec, spec)
        << describe(spec) << "; " << describe(back.networks[0].spec);
    EXPECT_TRUE(same_bytes(back.networks[0].params, network.params)) << describe(spec);
  }
}

// ONNX has no such option, but the same network.
TEST(OnnxMapping, OtherFormsComputeTheSame) {
  std::vector<RnnSpec> specs;
  const auto add = [&](RnnMode mode, auto change) {
    specs.push_back(plain(mode, 2));
    change(specs.back());
  };
  add(RnnMode::kLstm, [](RnnSpec& spec) { spec.single_bias = true; });
  add(RnnMode::kLstm, [](RnnSpec& spec) { spec.forget_bias = 1.0; });
  add(RnnMode::kGru, [](RnnSpec& spec) {
    spec.reset_after = false;
    spec.single_bias = true;
  });
  add(RnnMode::kLstm, [](RnnSpec& spec) {
    spec.input_size = 3;
    spec.input_mode = InputMode::kSkipInput;
    spec.direction = Direction::kBidirectional;
  });
  add(RnnMode::kLstm, [](RnnSpec& spec) {
    spec.use_bias = false;
    spec.forget_bias = 0.5;
  });
  for (RnnSpec& spec : specs) {
    spec.dtype = DType::kFloat64;
    const MappedNetwork network = network_of(spec);
    const MappedModel back = through_file(model_of(network));
    ASSERT_EQ(back.networks.size(), 1u) << describe(spec);
    const std::vector<double> before = output_of(network), after = output_of(back.networks[0]);
    ASSERT_EQ(before.size(), after.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_NEAR(before[i], after[i], 1e-14) << describe(spec);
    }
  }
}

TEST(OnnxMapping, TrainingOptionsAreNotPartOfAModel) {
  RnnSpec spec = plain(RnnMode::kLstm);
  spec.training.dropout = 0.5;
  spec.training.recurrent_dropout = 0.25;
  const MappedModel back = through_file(model_of(network_of(spec)));
  EXPECT_EQ(back.networks[0].spec, plain(RnnMode::kLstm));
}

TEST(OnnxMapping, WhatCannotBeHeldIsNamedBeforeAnythingIsWritten) {
  const TempFolder folder;
  const auto refused = [&](RnnMode mode, auto change, const std::string& part) {
    RnnSpec spec = plain(mode);
    change(spec);
    const MappedModel model = model_of(network_of(spec, "rnn"));
    EXPECT_MESSAGE(UnsupportedError, save_networks(folder / "m", model, ModelFormat::kOnnx), part);
    EXPECT_FALSE(std::filesystem::exists(folder / "m"));
  };
  refused(
      RnnMode::kLstm, [](RnnSpec& s) { s.num_proj = 2; }, "the network 'rnn' has num_proj 2");
  refused(
      RnnMode::kLstm,
      [](RnnSpec& s) {
        s.cell_clip = {-1.0, 1.0};
      },
      "has cell_clip [-1, 1]");
  refused(
      RnnMode::kLstm, [](RnnSpec& s) { s.layer_norm = LayerNorm::kGates; }, "layer_norm gates");
  refused(
      RnnMode::kGru, [](RnnSpec& s) { s.zoneout = 0.1; }, "has zoneout 0.1");
  refused(
      RnnMode::kGru,
      [](RnnSpec& s) {
        s.gate_clip = {-1.0, 2.0};
      },
      "has gate_clip (-1, 2)");
  refused(
      RnnMode::kGru,
      [](RnnSpec& s) {
        s.gate_clip = {0.5, 2.0};
      },
      "has gate_clip (0.5, 2)");
  // A clip of nothing is refused when it is read.
  refused(
      RnnMode::kGru,
      [](RnnSpec& s) {
        s.gate_clip = {0.0, 0.0};
      },
      "has gate_clip (0, 0)");
}

TEST(OnnxMapping, InitialStates) {
  RnnSpec spec = plain(RnnMode::kLstm, 2);
  spec.direction = Direction::kBidirectional;
  MappedNetwork network = network_of(spec);
  network.initial_h = values_of(spec.dtype, {4, 3}, 5);
  network.initial_c = values_of(spec.dtype, {4, 3}, 6);
  const MappedModel back = through_file(model_of(network));
  ASSERT_EQ(back.networks.size(), 1u);
  ASSERT_TRUE(back.networks[0].initial_h && back.networks[0].initial_c);
  EXPECT_TRUE(same_bytes(*back.networks[0].initial_h, *network.initial_h));
  EXPECT_TRUE(same_bytes(*back.networks[0].initial_c, *network.initial_c));
}

TEST(OnnxMapping, SeveralNetworksAndMetadata) {
  MappedModel model;
  model.networks.push_back(network_of(plain(RnnMode::kLstm, 2), "encoder"));
  model.networks.push_back(network_of(plain(RnnMode::kGru), "decoder", 2));
  model.values = {{"epoch", std::int64_t{3}}, {"note", std::string("two\nlines")}};
  const MappedModel back = through_file(model);
  ASSERT_EQ(back.networks.size(), 2u);
  EXPECT_EQ(back.networks[0].name, "encoder");
  EXPECT_EQ(back.networks[1].name, "decoder");
  EXPECT_TRUE(same_bytes(back.networks[1].params, model.networks[1].params));
  EXPECT_EQ(back.networks[1].tensors[2], "decoder/layer_0/W");
  std::map<std::string, PlainValue> values;
  for (const NamedValue& value : back.values) values[value.name] = value.value;
  EXPECT_EQ(values.at("epoch"), PlainValue(std::int64_t{3}));
  EXPECT_EQ(values.at("note"), PlainValue(std::string("two\nlines")));
}

TEST(OnnxMapping, NamesComeBack) {
  for (const std::int64_t layers : {1, 3}) {
    for (const char* name : {"", "encoder", "a/b", "layer_0", "layer_0/layer_1", "my_layer_0"}) {
      const MappedModel back =
          through_file(model_of(network_of(plain(RnnMode::kGru, layers), name)));
      ASSERT_EQ(back.networks.size(), 1u) << name;
      EXPECT_EQ(back.networks[0].name, name);
    }
  }
}

TEST(OnnxMapping, NamesThatWouldMeet) {
  MappedModel model;
  model.networks.push_back(network_of(plain(RnnMode::kLstm)));
  model.networks.push_back(network_of(plain(RnnMode::kLstm), "layer_0"));
  EXPECT_MESSAGE(ArgumentError, onnx_from_networks(model), "make 'layer_0/h' twice");
  model.networks[1].name = "a\nb";
  EXPECT_MESSAGE(ArgumentError, onnx_from_networks(model), "'a\\012b/x' twice or not printable");
}

// A chain of nodes that is walked for each of many others: the time is bounded, and said.
TEST(OnnxMapping, LongChainsOfManyNodes) {
  OnnxModel model;
  model.opsets[""] = 14;
  const auto node = [&](const char* op, std::vector<std::string> inputs, std::string output) {
    model.graph.nodes.push_back({.name = "",
                                 .op_type = op,
                                 .domain = "",
                                 .inputs = std::move(inputs),
                                 .outputs = {std::move(output)},
                                 .attributes = {}});
  };
  std::string last = "start";  // which no one makes
  for (int i = 0; i < 20000; ++i) {
    std::string next = "v" + std::to_string(i);
    node("Identity", {last}, next);
    last = next;
  }
  for (int i = 0; i < 2000; ++i) node("GRU", {"x", last, last}, "y" + std::to_string(i));
  const MappedModel mapped = networks_from_onnx(model);
  EXPECT_TRUE(mapped.networks.empty());
  ASSERT_EQ(mapped.notes.size(), 2000u);
  EXPECT_TRUE(mapped.notes[0].find("W is computed when the model runs") != std::string::npos);
  EXPECT_TRUE(mapped.notes[1999].find("more elements than the file") != std::string::npos);
}

// Each step repeats what there is, as in the billion laughs.
TEST(OnnxMapping, ExpressionsThatGrow) {
  OnnxModel model;
  model.opsets[""] = 14;
  model.graph.initializers = {OnnxTensor::of("v", values_of(DType::kFloat32, {1, 3, 2}, 1))};
  std::string last = "v";
  for (int i = 0; i < 40; ++i) {
    std::string next = "v" + std::to_string(i);
    model.graph.nodes.push_back({.name = "",
                                 .op_type = "Concat",
                                 .domain = "",
                                 .inputs = std::vector<std::string>(10, last),
                                 .outputs = {next},
                                 .attributes = {{"axis", std::int64_t{1}}}});
    last = next;
  }
  model.graph.nodes.push_back({.name = "rnn",
                               .op_type = "RNN",
                               .domain = "",
                               .inputs = {"x", last, last},
                               .outputs = {"y"},
                               .attributes = {}});
  const MappedModel mapped = networks_from_onnx(model);
  ASSERT_EQ(mapped.notes.size(), 1u);
  EXPECT_TRUE(mapped.notes[0].find("more elements than the file can account for") !=
              std::string::npos);
}

TEST(OnnxMapping, CanonicalAndOnnxTensors) {
  RnnSpec spec = plain(RnnMode::kLstm, 2);
  spec.use_peepholes = true;
  const MappedNetwork network = network_of(spec);
  const ParamsLayout layout(spec);
  const CanonicalParams canonical = params_to_canonical(layout, network.params.view());
  const auto views = [](const std::vector<Array>& arrays) {
    std::vector<ConstArrayView> list;
    for (const Array& array : arrays) list.push_back(array.view());
    return list;
  };
  const std::vector<Array> tensors =
      onnx_from_canonical(spec, views(canonical.weights), views(canonical.biases));
  ASSERT_EQ(tensors.size(), 8u);
  EXPECT_EQ(tensors[0].shape(), (Shape{1, 12, 2}));
  EXPECT_EQ(tensors[3].shape(), (Shape{1, 9}));
  // Blocks i, o, f, c: the second of W is W_o, the third of P is p_f.
  const ParamRegion& w_o = layout.weight(0, 0, ParamRole::kInputWeight, 3);
  EXPECT_EQ(std::memcmp(tensors[0].as<float>().data() + 6,
                        network.params.as<float>().data() + w_o.offset, 6 * sizeof(float)),
            0);
  const ParamRegion& p_f = layout.bias(0, 0, ParamRole::kPeephole, 1);
  EXPECT_EQ(std::memcmp(tensors[3].as<float>().data() + 6,
                        network.params.as<float>().data() + p_f.offset, 3 * sizeof(float)),
            0);
  const CanonicalParams back = canonical_from_onnx(spec, views(tensors));
  const Array params = canonical_to_params(layout, views(back.weights), views(back.biases));
  EXPECT_TRUE(same_bytes(params, network.params));
  std::vector<ConstArrayView> seven = views(tensors);
  seven.pop_back();
  EXPECT_MESSAGE(ArgumentError, canonical_from_onnx(spec, seven),
                 "tensor 7 of 7 does not fit, expected float32 [1, 9]");
  spec.single_bias = true;
  EXPECT_MESSAGE(UnsupportedError, canonical_from_onnx(spec, views(tensors)), "single_bias true");
}

TEST(OnnxMapping, NumbersGoThroughAsDecimals) {
  EXPECT_EQ(mapping::decimal_of(0.1f), 0.1);
  EXPECT_EQ(mapping::decimal_of(0.2f), 0.2);
  EXPECT_EQ(mapping::decimal_of(-3.5f), -3.5);
  EXPECT_EQ(static_cast<float>(mapping::decimal_of(1.0f / 3.0f)), 1.0f / 3.0f);
}

// ---- Export ------------------------------------------------------------------------------------

std::string shown(const OnnxValueInfo& info) {
  std::string text = info.name + ":" + std::to_string(info.element_type) + "[";
  for (const OnnxDim& dim : *info.shape) {
    text += (dim.size < 0 ? dim.symbol : std::to_string(dim.size)) + " ";
  }
  return text + "]";
}

TEST(OnnxMapping, InputsAndOutputsOfAnExport) {
  const RnnSpec spec{.num_layers = 2,
                     .num_units = 3,
                     .input_size = 5,
                     .direction = Direction::kBidirectional,
                     .dtype = DType::kFloat64};
  MappedModel given;
  given.networks = {network_of(spec, "e")};
  given.values = {{"producer_name", std::string("other")}, {"k", std::string("v")}};
  const auto values_of_export = [&](const OnnxExportOptions& options) {
    std::vector<std::string> values;
    const OnnxModel model = onnx_from_networks(given, options);
    for (const OnnxValueInfo& info : model.graph.inputs) values.push_back(shown(info));
    for (const OnnxValueInfo& info : model.graph.outputs) values.push_back(shown(info));
    return values;
  };
  using Values = std::vector<std::string>;
  const Values outputs{"e/y:11[time batch 6 ]", "e/h:11[4 batch 3 ]", "e/c:11[4 batch 3 ]"};
  const auto expected = [&](Values inputs) {
    inputs.insert(inputs.end(), outputs.begin(), outputs.end());
    return inputs;
  };
  const std::string x = "e/x:11[time batch 5 ]", lengths = "e/lengths:6[batch ]",
                    h0 = "e/h0:11[4 batch 3 ]", c0 = "e/c0:11[4 batch 3 ]";
  EXPECT_EQ(values_of_export({.lengths = false, .states = false}), expected({x}));
  EXPECT_EQ(values_of_export({.lengths = true, .states = false}), expected({x, lengths}));
  EXPECT_EQ(values_of_export({.lengths = false, .states = true}), expected({x, h0, c0}));
  EXPECT_EQ(values_of_export({.lengths = true, .states = true}), expected({x, lengths, h0, c0}));
  const OnnxModel model = onnx_from_networks(given);
  EXPECT_EQ(model.producer_name, "openrnn");
  EXPECT_EQ(model.ir_version, 7);
  EXPECT_EQ(model.opset(), 14);
  EXPECT_EQ(model.metadata, (std::vector<std::pair<std::string, std::string>>{{"k", "v"}}));
  given.networks[0].spec.dtype = DType::kBfloat16;
  given.networks[0].params = cast(given.networks[0].params.view(), DType::kBfloat16);
  EXPECT_EQ(onnx_from_networks(given).ir_version, 10);
  EXPECT_EQ(onnx_from_networks(given).opset(), 22);
  // One of bfloat16 is enough, wherever it stands.
  MappedNetwork other = given.networks[0];
  other.name = "other";
  other.spec.dtype = DType::kFloat32;
  other.params = cast(other.params.view(), DType::kFloat32);
  given.networks.push_back(other);
  EXPECT_EQ(onnx_from_networks(given).opset(), 22);
  std::swap(given.networks[0], given.networks[1]);
  EXPECT_EQ(onnx_from_networks(given).ir_version, 10);
}

}  // namespace
}  // namespace openrnn
