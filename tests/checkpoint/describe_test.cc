// Which networks a checkpoint's tensors make up.
#include "base/excerpt.h"
#include "formats/temp_folder.h"
#include "openrnn/checkpoint.h"
#include "openrnn/layers.h"
#include "saveables/support.h"

namespace openrnn {
namespace {

using formats::TempFolder;
using testing::all_specs;
using testing::rnn_spec;

std::unique_ptr<layers::CudnnRnn> layer_of(const RnnSpec& spec) {
  return layers::make_cudnn_rnn({.network = {.mode = spec.mode,
                                             .num_layers = spec.num_layers,
                                             .num_units = spec.num_units,
                                             .input_mode = spec.input_mode,
                                             .direction = spec.direction,
                                             .dtype = spec.dtype,
                                             .num_proj = spec.num_proj}});
}

TEST(DescribeNetwork, EveryNetworkFromItsTensors) {
  for (const RnnSpec& spec : all_specs()) {
    SCOPED_TRACE(describe(spec));
    const TempFolder folder;
    Graph graph;
    const Graph::AsDefault current(graph);
    const VariableScope scope("m1");
    const auto layer = layer_of(spec);
    layer->build({-1, -1, spec.input_size});
    Saver().write(folder / "a");
    const CheckpointContents contents = describe_network(TensorBundleReader(folder / "a"));
    EXPECT_TRUE(contents.remarks.empty());
    ASSERT_EQ(contents.networks.size(), 1u);
    const NetworkDescription& found = contents.networks[0];
    EXPECT_EQ(found.scope, "m1");
    EXPECT_EQ(found.raw_variable, layer->kernel().name());
    RnnSpec expected = spec;
    const bool plain = spec.mode == RnnMode::kRnnTanh || spec.mode == RnnMode::kRnnRelu;
    if (plain) expected.mode = RnnMode::kRnnTanh;
    EXPECT_TRUE(found.spec == expected) << describe(found.spec);
    EXPECT_EQ(found.modes.size(), plain ? 2u : 1u);
    EXPECT_EQ(found.text.starts_with(plain ? "rnn_tanh or rnn_relu, 2 layers, 7 units"
                                           : to_string(spec.mode)),
              true)
        << found.text;
  }
}

// Options that have, or take away, tensors.
TEST(DescribeNetwork, OptionsFromTheirTensors) {
  const auto found = [](const RnnSpec& spec) {
    const TempFolder folder;
    Graph graph;
    const Graph::AsDefault current(graph);
    const auto layer = layers::make_cudnn_rnn({.network = spec});
    layer->build({-1, -1, spec.input_size});
    Saver().write(folder / "a");
    const CheckpointContents contents = describe_network(TensorBundleReader(folder / "a"));
    return contents.networks.size() == 1 ? contents.networks[0].spec : RnnSpec{};
  };
  RnnSpec spec = rnn_spec(RnnMode::kLstm, 2, 7, 5);
  spec.use_peepholes = true;
  std::vector<RnnSpec> specs{spec};
  spec.num_proj = 3;
  specs.push_back(spec);
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnTanh}) {
    spec = rnn_spec(mode, 2, 7, 5);
    spec.single_bias = true;
    specs.push_back(spec);
    spec.single_bias = false;
    spec.use_bias = false;
    specs.push_back(spec);
  }
  spec = rnn_spec(RnnMode::kRnnTanh, 2, 7, 5);
  spec.num_proj = 3;
  specs.push_back(spec);
  spec = rnn_spec(RnnMode::kGru, 2, 7, 5);
  spec.reset_after = false;
  spec.single_bias = true;
  specs.push_back(spec);
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    spec = rnn_spec(RnnMode::kLstm, 2, 7, 5, dtype);
    spec.layer_norm = LayerNorm::kGates;
    spec.layer_norm_cell = LayerNormCell::kCarried;
    spec.layer_norm_epsilon = dtype == DType::kFloat16 ? 1e-3 : 1e-12;  // TensorFlow's
    specs.push_back(spec);
  }
  for (const LayerNorm norm : {LayerNorm::kProducts, LayerNorm::kGates}) {
    for (const LayerNormCell cell :
         {LayerNormCell::kNone, LayerNormCell::kOutput, LayerNormCell::kCarried}) {
      spec = rnn_spec(RnnMode::kLstm, 2, 7, 5);
      spec.layer_norm = norm;
      spec.layer_norm_cell = cell;
      specs.push_back(spec);
      spec.use_bias = false;
      specs.push_back(spec);
    }
  }
  for (const LayerNorm norm : {LayerNorm::kProducts, LayerNorm::kSplitProducts}) {
    spec = rnn_spec(RnnMode::kGru, 2, 7, 5);
    spec.layer_norm = norm;
    specs.push_back(spec);
  }
  for (const RnnSpec& wanted : specs) {
    EXPECT_TRUE(found(wanted) == wanted) << describe(wanted) << "\n" << describe(found(wanted));
  }
}

// tanh and relu are told apart by the run's configuration alone.
TEST(DescribeNetwork, TheConfigurationTellsTanhFromRelu) {
  const auto modes = [](const std::string& config) {
    const TempFolder folder;
    Graph graph;
    const Graph::AsDefault current(graph);
    const auto layer = layer_of(rnn_spec(RnnMode::kRnnRelu, 1, 2, 3));
    layer->build({1, 1, 3});
    Extras extras;
    extras.set_string("config", config);
    Saver().write(folder / "a", extras);
    return describe_network(TensorBundleReader(folder / "a")).networks.at(0).text;
  };
  const std::string rest = ", 1 layer, 2 units, input size 3, unidirectional, float32";
  EXPECT_EQ(modes(R"({"model": {"cell": "rnn_relu"}})"), "rnn_relu" + rest);
  EXPECT_EQ(modes(R"({"cell": "rnn_tanh"})"), "rnn_tanh" + rest);
  EXPECT_EQ(modes(R"({"mode": "rnn_relu"})"), "rnn_relu" + rest);
  EXPECT_EQ(modes(R"([{"rnn_mode": "rnn_relu"}, {"cell": "rnn_relu"}])"), "rnn_relu" + rest);
  for (const char* other :
       {"", "not json", "[]", R"({"name": "rnn_relu"})", R"({"cell": 3})", R"({"cell": "rnn_relu")",
        R"({"cell": "lstm"})", R"([{"cell": "rnn_relu"}, {"cell": "rnn_tanh"}])"}) {
    EXPECT_EQ(modes(other), "rnn_tanh or rnn_relu" + rest) << other;
  }
  EXPECT_EQ(modes(std::string(100000, '[')), "rnn_tanh or rnn_relu" + rest);
}

// No tensor shows layer_norm_epsilon: the run's configuration does, or nothing.
TEST(DescribeNetwork, TheConfigurationTellsTheEpsilon) {
  const auto contents_with = [](const RnnSpec& spec, const std::string& config) {
    const TempFolder folder;
    Graph graph;
    const Graph::AsDefault current(graph);
    const auto layer = layers::make_cudnn_rnn({.network = spec});
    layer->build({1, 1, 3});
    Extras extras;
    if (!config.empty()) extras.set_string("config", config);
    Saver().write(folder / "a", extras);
    return describe_network(TensorBundleReader(folder / "a"));
  };
  const auto found = [&](const RnnSpec& spec, const std::string& config) {
    const CheckpointContents contents = contents_with(spec, config);
    EXPECT_TRUE(contents.remarks.empty()) << contents.remarks[0];
    return contents.networks.at(0).spec.layer_norm_epsilon;
  };
  RnnSpec spec = rnn_spec(RnnMode::kLstm, 1, 2, 3);
  spec.layer_norm = LayerNorm::kProducts;
  spec.layer_norm_epsilon = 1e-3;
  const std::string both = R"({"model": {"layer_norm": "products", "layer_norm_epsilon": 0.001}})";
  EXPECT_EQ(found(spec, both), 1e-3);
  EXPECT_EQ(found(spec, R"({"layer_norm": "products"})"), 1e-5);
  RnnSpec basic = spec;
  basic.layer_norm = LayerNorm::kGates;
  basic.layer_norm_cell = LayerNormCell::kCarried;
  basic.layer_norm_epsilon = 1e-12;
  EXPECT_EQ(found(basic, ""), 1e-12);
  EXPECT_EQ(found(rnn_spec(RnnMode::kLstm, 1, 2, 3), both), 1e-5);
  for (
      const char* other :
      {"", "not json", R"({"layer_norm": "gates"})", R"({"layer_norm_epsilon": 0.001})",
       R"([{"layer_norm": "products"}, {"layer_norm": "gates"}])",
       R"({"layer_norm": "products", "layer_norm_epsilon": 0.001)",
       R"({"layer_norm": "products", "a": [{"layer_norm_epsilon": 1}, {"layer_norm_epsilon": 2}]})"}) {
    const CheckpointContents contents = contents_with(spec, other);
    EXPECT_EQ(contents.networks.at(0).spec.layer_norm_epsilon, 1e-5) << other;
    ASSERT_EQ(contents.remarks.size(), 1U) << other;
    EXPECT_EQ(contents.remarks[0],
              "the file does not tell the layer_norm_epsilon of layer_norm_lstm_cell under '': "
              "1e-05 is the default");
  }
  // Where it is no number the configuration says nothing of it.
  EXPECT_EQ(found(spec, R"({"layer_norm": "products", "layer_norm_epsilon": "1"})"), 1e-5);
  const CheckpointContents wrong =
      contents_with(spec, R"({"layer_norm": "products", "layer_norm_epsilon": -1})");
  EXPECT_TRUE(wrong.networks.empty());
  EXPECT_NE(wrong.remarks.at(0).find("layer_norm_epsilon is -1"), std::string::npos);
}

// The configuration is one string; what else has its name tells nothing.
TEST(DescribeNetwork, AConfigurationThatIsNone) {
  const TempFolder folder;
  Graph graph;
  const Graph::AsDefault current(graph);
  RnnSpec spec = rnn_spec(RnnMode::kLstm, 1, 2, 3);
  spec.layer_norm = LayerNorm::kProducts;
  const VariableScope scope("m1");
  const auto tanh = layer_of(rnn_spec(RnnMode::kRnnTanh, 1, 2, 3));
  tanh->build({1, 1, 3});
  const auto normalized = layers::make_cudnn_rnn({.network = spec});
  normalized->build({1, 1, 3});
  const std::string text = R"({"cell": "rnn_relu", "layer_norm": "products"})";
  for (const TensorValue& config :
       {TensorValue(StringTensor{{1}, {text}}), TensorValue(Array(DType::kInt64, {}))}) {
    Extras extras;
    extras.set("config", config);
    Saver().write(folder / "a", extras);
    const CheckpointContents contents = describe_network(TensorBundleReader(folder / "a"));
    ASSERT_EQ(contents.networks.size(), 2U);
    std::size_t modes = 0;
    for (const NetworkDescription& one : contents.networks) modes += one.modes.size();
    EXPECT_EQ(modes, 3U);
    ASSERT_EQ(contents.remarks.size(), 1U);
    EXPECT_EQ(contents.remarks[0],
              "the file does not tell the layer_norm_epsilon of layer_norm_lstm_cell under 'm1': "
              "1e-05 is the default");
  }
}

TEST(DescribeNetwork, SeveralNetworksAndSlots) {
  const TempFolder folder;
  Graph graph;
  const Graph::AsDefault current(graph);
  const auto lstm = layer_of(rnn_spec(RnnMode::kLstm, 1, 3, 2));
  (*lstm)(Tensor(Array(DType::kFloat32, {1, 1, 2}).view()));
  const auto gru = layer_of(rnn_spec(RnnMode::kGru, 2, 4, 3));
  (*gru)(Tensor(Array(DType::kFloat32, {1, 1, 3}).view()));
  const Variable slot("cudnn_gru/opaque_kernel/Adam", gru->kernel().to_host());
  const Variable cell_slot("rnn/multi_rnn_cell/cell_0/basic_rnn_cell/kernel/Adam",
                           Array(DType::kFloat32, {3, 2}));
  Saver().write(folder / "a");
  const CheckpointContents contents = describe_network(TensorBundleReader(folder / "a"));
  EXPECT_TRUE(contents.remarks.empty());
  ASSERT_EQ(contents.networks.size(), 2u);
  EXPECT_EQ(contents.networks[0].scope, "cudnn_gru");
  EXPECT_EQ(contents.networks[0].raw_variable, "cudnn_gru/opaque_kernel");
  EXPECT_EQ(contents.networks[1].text,
            "lstm, 1 layer, 3 units, input size 2, unidirectional, float32");
}

// The same sizes in scopes of which one name begins another.
TEST(DescribeNetwork, EachOfSeveralAlikeHasItsOwnRawVariable) {
  const TempFolder folder;
  Graph graph;
  const Graph::AsDefault current(graph);
  std::vector<std::shared_ptr<layers::CudnnRnn>> made;
  for (const char* name : {"m1", "m10", "m2"}) {
    const VariableScope scope(name);
    made.push_back(layer_of(rnn_spec(RnnMode::kLstm, 1, 3, 2)));
    made.back()->build({-1, -1, 2});
  }
  Saver().write(folder / "a");
  const CheckpointContents contents = describe_network(TensorBundleReader(folder / "a"));
  EXPECT_TRUE(contents.remarks.empty());
  ASSERT_EQ(contents.networks.size(), made.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    EXPECT_EQ(contents.networks[i].raw_variable, made[i]->kernel().name());
  }
}

// The names that a layer outside every scope would have.
TEST(DescribeNetwork, TheRawVariableMayHaveNoScope) {
  const TempFolder folder;
  Graph graph;
  const Graph::AsDefault current(graph);
  const auto layer = layer_of(rnn_spec(RnnMode::kLstm, 1, 3, 2));
  (*layer)(Tensor(Array(DType::kFloat32, {1, 1, 2}).view()));
  Saver().write(folder / "a");
  const TensorBundleReader scoped(folder / "a");
  std::vector<NamedTensor> tensors;
  for (const TensorInfo& info : scoped.tensors()) {
    ASSERT_TRUE(info.name.starts_with("cudnn_lstm/")) << info.name;
    const std::string name = info.name.substr(std::string("cudnn_lstm/").size());
    if (name != "opaque_kernel") tensors.push_back({name, scoped.read(info.name)});
  }
  const Shape shape = layer->kernel().shape();
  const auto raw_with = [&](const std::vector<std::pair<std::string, DType>>& buffers) {
    std::vector<NamedTensor> all = tensors;
    for (const auto& [name, dtype] : buffers) all.push_back({name, Array(dtype, shape)});
    write_tensor_bundle(folder / "b", all);
    const CheckpointContents contents = describe_network(TensorBundleReader(folder / "b"));
    EXPECT_EQ(contents.networks.at(0).scope, "");
    return contents.networks[0].raw_variable;
  };
  EXPECT_EQ(raw_with({{"opaque_kernel", DType::kFloat32}}), "opaque_kernel");
  EXPECT_EQ(raw_with({{"opaque_kernel", DType::kFloat64}}), "");
  EXPECT_EQ(raw_with({{"one/opaque_kernel", DType::kFloat32}}), "one/opaque_kernel");
  // Which of two is meant is not known, unless one lies where the network does.
  EXPECT_EQ(
      raw_with({{"one/opaque_kernel", DType::kFloat32}, {"two/opaque_kernel", DType::kFloat32}}),
      "");
  EXPECT_EQ(raw_with({{"one/opaque_kernel", DType::kFloat32}, {"opaque_kernel", DType::kFloat32}}),
            "opaque_kernel");
}

TEST(DescribeNetwork, WhatMakesUpNoNetworkIsSaid) {
  const auto remark = [](std::vector<NamedTensor> tensors) {
    const TempFolder folder;
    write_tensor_bundle(folder / "a", tensors);
    const CheckpointContents contents = describe_network(TensorBundleReader(folder / "a"));
    EXPECT_TRUE(contents.networks.empty());
    return contents.remarks.size() == 1 ? contents.remarks[0] : "not one remark";
  };
  const auto named = [](const std::string& name, Shape shape) {
    return NamedTensor{name, Array(DType::kFloat32, std::move(shape))};
  };
  const std::string cell = "m/rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/";
  const std::string start = "the tensors of cudnn_compatible_lstm_cell under 'm' form no network: ";
  EXPECT_EQ(remark({named(cell + "kernel", {5, 12})}), start + cell + "bias is missing");
  EXPECT_EQ(remark({named(cell + "bias", {12})}), start + cell + "kernel is missing");
  EXPECT_EQ(remark({named(cell + "kernel", {12})}),
            start + cell + "kernel has shape [12], expected 2 dimensions");
  EXPECT_EQ(remark({named(cell + "kernel", {5, 12}), named(cell + "bias", {13})}),
            start + cell + "bias is float32 [13], expected float32 [12]");
  EXPECT_EQ(remark({named("m/rnn/multi_rnn_cell/cell_9/cudnn_compatible_lstm_cell/bias", {4})}),
            start + "layer 9 is there, but only 1 tensors in all");
  EXPECT_EQ(
      remark({named(cell + "kernel", {5, 12}), {cell + "bias", Array(DType::kFloat64, {12})}}),
      start + cell + "bias is float64 [12], expected float32 [12]");
  EXPECT_EQ(remark({named(cell + "kernel", {5, 12}), named(cell + "bias", {12}),
                    named(cell + "w_f_diag", {3})}),
            start + "3 tensors, expected 2");
  EXPECT_EQ(remark({named(cell + "kernel", {5, 12}), named(cell + "bias", {12}),
                    named(cell + "projection/kernel", {3})}),
            start + "3 tensors, expected 2");
  const std::string gru = "m/n/rnn/multi_rnn_cell/cell_0/gru_cell/";
  EXPECT_EQ(remark({named(gru + "gates/kernel", {5, 4, 1})}),
            "the tensors of gru_cell under 'm/n' form no network: " + gru +
                "gates/kernel has shape [5, 4, 1], expected 2 dimensions");
  // A buffer has one dimension.
  EXPECT_EQ(remark({named("cudnn_lstm/opaque_kernel", {40}), named("m/opaque_kernel", {4, 10}),
                    named("opaque_kernel", {})}),
            "cudnn_lstm/opaque_kernel is an opaque buffer of 40 float32 without canonical tensors "
            "of its own: the file does not tell which network it belongs to");
  EXPECT_EQ(remark({{"opaque_kernel", Array(DType::kFloat64, {7})}}),
            "opaque_kernel is an opaque buffer of 7 float64 without canonical tensors "
            "of its own: the file does not tell which network it belongs to");
  EXPECT_EQ(remark({named("cudnn_lstm/opaque_kernel", {40})}),
            "cudnn_lstm/opaque_kernel is an opaque buffer of 40 float32 without canonical tensors "
            "of its own: the file does not tell which network it belongs to");
  EXPECT_NE(remark({named(cell + "kernel", {0, 0}), named(cell + "bias", {0})}).find(start),
            std::string::npos);
}

// Of both directions the forward cell tells the sizes.
TEST(DescribeNetwork, OfTwoDirectionsTheForwardOneIsNamed) {
  const std::string both = "m/stack_bidirectional_rnn/cell_0/bidirectional_rnn/",
                    cell = "/cudnn_compatible_lstm_cell/", forward = both + "fw" + cell,
                    backward = both + "bw" + cell;
  const auto remark = [&](const std::vector<std::pair<std::string, Shape>>& sizes) {
    const TempFolder folder;
    std::vector<NamedTensor> tensors;
    for (const auto& [name, shape] : sizes)
      tensors.push_back({name, Array(DType::kFloat32, shape)});
    write_tensor_bundle(folder / "a", tensors);
    const CheckpointContents contents = describe_network(TensorBundleReader(folder / "a"));
    if (!contents.networks.empty()) return contents.networks[0].text;
    return contents.remarks.size() == 1 ? contents.remarks[0] : "not one remark";
  };
  const std::string start = "the tensors of cudnn_compatible_lstm_cell under 'm' form no network: ";
  EXPECT_EQ(remark({{backward + "kernel", {5, 12}}, {backward + "bias", {12}}}),
            start + excerpt(forward + "kernel") + " is missing");
  EXPECT_EQ(remark({{forward + "kernel", {5, 12}}, {forward + "bias", {12}}}),
            start + excerpt(backward + "kernel") + " is missing");
  EXPECT_EQ(remark({{forward + "kernel", {5, 12}},
                    {forward + "bias", {12}},
                    {backward + "kernel", {6, 12}},
                    {backward + "bias", {12}}}),
            start + excerpt(backward + "kernel") + " is float32 [6, 12], expected float32 [5, 12]");
  EXPECT_EQ(remark({{forward + "kernel", {5, 12}},
                    {forward + "bias", {12}},
                    {backward + "kernel", {5, 12}},
                    {backward + "bias", {12}}}),
            "lstm, 1 layer, 3 units, input size 2, bidirectional, float32");
}

TEST(DescribeNetwork, TheHighestLayerIsCountedUpToAMillion) {
  const TempFolder folder;
  write_tensor_bundle(folder / "a", {{{"rnn/multi_rnn_cell/cell_1048576/basic_rnn_cell/kernel",
                                       Array(DType::kFloat32, {3, 2})}}});
  const CheckpointContents contents = describe_network(TensorBundleReader(folder / "a"));
  ASSERT_EQ(contents.remarks.size(), 1U);
  EXPECT_EQ(contents.remarks[0],
            "the tensors of basic_rnn_cell under '' form no network: layer 1048576 is there, but "
            "only 1 tensors in all");
}

// Names that only look alike.
TEST(DescribeNetwork, OtherNamesArePassedOver) {
  const TempFolder folder;
  std::vector<NamedTensor> tensors;
  for (const char* name :
       {"rnn/multi_rnn_cell/cell_x/basic_rnn_cell/kernel",
        "kernel",
        "basic_rnn_cell/kernel",
        "xrnn/multi_rnn_cell/cell_0/basic_rnn_cell/kernel",
        "rnn/multi_rnn_cell/cell_-1/basic_rnn_cell/kernel",
        "rnn/multi_rnn_cell/cell_0x/basic_rnn_cell/kernel",
        "rnn/multi_rnn_cell/cell_0 /basic_rnn_cell/kernel",
        "rnn/multi_rnn_cell/cell_0.5/basic_rnn_cell/kernel",
        "rnn/multi_rnn_cell/cell_+1/basic_rnn_cell/kernel",
        "rnn/multi_rnn_cell/cell_/basic_rnn_cell/kernel",
        "rnn/multi_rnn_cell/cell_1048577/basic_rnn_cell/kernel",
        "rnn/multi_rnn_cell/xcell_0/basic_rnn_cell/kernel",
        "rnn/multi_rnn_cell/basic_rnn_cell/kernel",
        "cell_0/basic_rnn_cell/kernel",
        "rnn/multi_rnn_cell/cell_0/xbasic_rnn_cell/kernel",
        "rnn/multi_rnn_cell/cell_0/basic_rnn_cell/xkernel",
        "rnn/multi_rnn_cell/cell_0/basic_rnn_cell/w_i_diag",
        "rnn/multi_rnn_cell/cell_0/cudnn_compatible_gru_cell/kernel",
        "stack_bidirectional_rnn/cell_0/bidirectional_rnn/xx/basic_rnn_cell/kernel",
        "stack_bidirectional_rnn/cell_0x/bidirectional_rnn/bw/basic_rnn_cell/kernel",
        "stack_bidirectional_rnn/bidirectional_rnn/bw/basic_rnn_cell/kernel",
        "rnn/multi_rnn_cell/cell_0/bidirectional_rnn/fw/basic_rnn_cell/kernel",
        "stack_bidirectional_rnn/cell_0/basic_rnn_cell/kernel",
        "rnn/multi_rnn_cell/cell_99999999999999999999/basic_rnn_cell/kernel",
        "rnn/multi_rnn_cell/cell_9223372036854775807/basic_rnn_cell/kernel",
        "cell_0/bidirectional_rnn/fw/basic_rnn_cell/kernel"}) {
    tensors.push_back({name, Array(DType::kFloat32, {3, 2})});
  }
  write_tensor_bundle(folder / "a", tensors);
  const CheckpointContents contents = describe_network(TensorBundleReader(folder / "a"));
  EXPECT_TRUE(contents.networks.empty());
  EXPECT_TRUE(contents.remarks.empty());
}

}  // namespace
}  // namespace openrnn
