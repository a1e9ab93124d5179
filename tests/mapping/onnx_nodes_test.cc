// Recurrent nodes of ONNX graphs that we did not write: attributes, shapes, states, stacks, notes.
#include <gtest/gtest.h>
#include <openrnn/mapping_onnx.h>

#include <cmath>
#include <functional>

#include "base/message.h"
#include "mapping/networks.h"

namespace openrnn {
namespace {

using Attributes = std::vector<OnnxAttribute>;

OnnxNode node_of(const std::string& op, std::vector<std::string> inputs,
                 std::vector<std::string> outputs, Attributes attributes = {},
                 const std::string& name = "n") {
  return {.name = name,
          .op_type = op,
          .inputs = std::move(inputs),
          .outputs = std::move(outputs),
          .attributes = std::move(attributes)};
}

Array integers(std::vector<std::int64_t> values) {
  return Array::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
}

std::int64_t gates_of_op(const std::string& op) { return op == "LSTM" ? 4 : op == "GRU" ? 3 : 1; }

// One node of 3 units on 2 inputs, with biases.
OnnxModel model_of(const std::string& op, Attributes attributes = {}, std::int64_t dirs = 1,
                   DType dtype = DType::kFloat32) {
  const std::int64_t rows = 3 * gates_of_op(op);
  OnnxModel model;
  model.opsets[""] = 14;
  model.graph.nodes = {node_of(op, {"x", "W", "R", "B"}, {"y", "h"}, std::move(attributes))};
  model.graph.initializers = {OnnxTensor::of("W", values_of(dtype, {dirs, rows, 2}, 1)),
                              OnnxTensor::of("R", values_of(dtype, {dirs, rows, 3}, 2)),
                              OnnxTensor::of("B", values_of(dtype, {dirs, 2 * rows}, 3))};
  return model;
}

MappedNetwork only_network(const OnnxModel& model) {
  const MappedModel mapped = networks_from_onnx(model);
  for (const std::string& note : mapped.notes) ADD_FAILURE() << note;
  if (mapped.networks.size() != 1) throw StateError("not one network");
  return mapped.networks[0];
}

std::string only_note(const OnnxModel& model) {
  const MappedModel mapped = networks_from_onnx(model);
  EXPECT_TRUE(mapped.networks.empty());
  EXPECT_EQ(mapped.notes.size(), 1u);
  return mapped.notes.empty() ? "" : mapped.notes[0];
}

void expect_note(const OnnxModel& model, const std::string& expected) {
  const std::string note = only_note(model);
  EXPECT_TRUE(note.starts_with("[onnx] node 'n' (")) << note;
  EXPECT_EQ(note.substr(note.find(": ") + 2), expected);
}

// ---- Attributes --------------------------------------------------------------------------------

TEST(OnnxNodes, DefaultsOfEachOperator) {
  EXPECT_EQ(only_network(model_of("LSTM")).spec, (RnnSpec{.num_units = 3, .input_size = 2}));
  EXPECT_EQ(only_network(model_of("RNN")).spec,
            (RnnSpec{.mode = RnnMode::kRnnTanh, .num_units = 3, .input_size = 2}));
  // ONNX's GRU applies the reset gate before the product unless it says otherwise.
  EXPECT_EQ(
      only_network(model_of("GRU")).spec,
      (RnnSpec{.mode = RnnMode::kGru, .num_units = 3, .input_size = 2, .reset_after = false}));
  const MappedNetwork network = only_network(model_of("GRU"));
  EXPECT_EQ(network.name, "n");
  EXPECT_EQ(network.tensors, (std::vector<std::string>{"B", "R", "W"}));
  OnnxModel unnamed = model_of("GRU");
  unnamed.graph.nodes[0].name.clear();
  EXPECT_EQ(only_network(unnamed).name, "y");
}

TEST(OnnxNodes, Attributes) {
  const auto spec_of = [](const char* op, Attributes attributes, std::int64_t dirs = 1) {
    return only_network(model_of(op, std::move(attributes), dirs)).spec;
  };
  using Texts = std::vector<std::string>;
  using Floats = std::vector<float>;
  const std::int64_t one = 1, zero = 0;
  EXPECT_TRUE(spec_of("GRU", {{"linear_before_reset", one}}).reset_after);
  EXPECT_FALSE(spec_of("GRU", {{"linear_before_reset", zero}}).reset_after);
  EXPECT_TRUE(spec_of("LSTM", {{"input_forget", one}}).coupled_gates);
  EXPECT_FALSE(spec_of("LSTM", {{"input_forget", zero}}).coupled_gates);
  EXPECT_EQ(spec_of("LSTM", {{"hidden_size", std::int64_t{3}}}).num_units, 3);
  EXPECT_EQ(spec_of("LSTM", {{"direction", std::string("forward")}}).num_dirs(), 1);
  EXPECT_EQ(spec_of("LSTM", {{"direction", std::string("bidirectional")}}, 2).num_dirs(), 2);
  EXPECT_EQ(spec_of("LSTM", {{"clip", 0.1f}}).gate_clip, (std::array<double, 2>{-0.1, 0.1}));
  EXPECT_EQ(spec_of("LSTM", {{"output_sequence", one}}), (spec_of("LSTM", {})));
  EXPECT_EQ(spec_of("RNN", {{"activations", Texts{"reLU"}}}).mode, RnnMode::kRnnRelu);
  EXPECT_EQ(spec_of("RNN", {{"activations", Texts{"Tanh"}}}), spec_of("RNN", {}));
  EXPECT_EQ(spec_of("RNN", {{"activations", Texts{"Softsign"}}}).activation,
            make_cell_activation(CellActivationKind::kSoftsign));
  // Usual functions are no options.
  EXPECT_EQ(spec_of("LSTM", {{"activations", Texts{"Sigmoid", "Tanh", "Tanh"}}}),
            spec_of("LSTM", {}));
  const RnnSpec lstm = spec_of("LSTM", {{"activations", Texts{"Relu", "Softsign", "Softplus"}}});
  EXPECT_EQ(lstm.recurrent_activation, make_cell_activation(CellActivationKind::kRelu));
  EXPECT_EQ(lstm.activation, make_cell_activation(CellActivationKind::kSoftsign));
  EXPECT_EQ(lstm.output_activation, make_cell_activation(CellActivationKind::kSoftplus));
  const RnnSpec gru = spec_of("GRU", {{"activations", Texts{"Relu", "Softsign"}}});
  EXPECT_EQ(gru.recurrent_activation, make_cell_activation(CellActivationKind::kRelu));
  EXPECT_EQ(gru.activation, make_cell_activation(CellActivationKind::kSoftsign));
  EXPECT_FALSE(gru.output_activation);
  // Functions take numbers in their order, each only what it has; what is not given is usual.
  const RnnSpec numbers = spec_of("LSTM", {{"activations", Texts{"LeakyRelu", "ScaledTanh", "Elu"}},
                                           {"activation_alpha", Floats{0.25f, 1.5f, 0.75f}},
                                           {"activation_beta", Floats{0.5f}}});
  EXPECT_EQ(numbers.recurrent_activation, parse_cell_activation("leaky_relu(0.25)"));
  EXPECT_EQ(numbers.activation, parse_cell_activation("scaled_tanh(1.5, 0.5)"));
  EXPECT_EQ(numbers.output_activation, parse_cell_activation("elu(0.75)"));
  EXPECT_EQ(spec_of("RNN", {{"activations", Texts{"HardSigmoid"}}}).activation,
            make_cell_activation(CellActivationKind::kHardSigmoid));
  EXPECT_EQ(spec_of("RNN", {{"activations", Texts{"LeakyRelu"}}}).activation,
            make_cell_activation(CellActivationKind::kLeakyRelu));
  EXPECT_EQ(spec_of("RNN", {{"activations", Texts{"ThresholdedRelu"}}}).activation,
            parse_cell_activation("thresholded_relu(1)"));
}

TEST(OnnxNodes, AttributesThatAreRefused) {
  using Texts = std::vector<std::string>;
  using Floats = std::vector<float>;
  const auto refused = [](const char* op, Attributes attributes, const std::string& expected,
                          std::int64_t dirs = 1) {
    expect_note(model_of(op, std::move(attributes), dirs), expected);
  };
  refused("LSTM", {{"slope", 1.0f}},
          "the attribute slope is not known, expected those of ONNX's operator");
  refused("LSTM", {{"clip", 1.0f}, {"slope", 1.0f}},
          "the attribute slope is not known, expected those of ONNX's operator");
  refused("LSTM", {{"direction", std::string("reverse")}},
          "the direction is reverse, expected forward or bidirectional");
  refused("LSTM", {{"direction", std::string("up")}},
          "the direction is 'up', expected forward, reverse or bidirectional");
  for (const float clip : {0.0f, -1.0f, INFINITY, NAN}) {
    refused("LSTM", {{"clip", clip}},
            message("clip is ", clip, ", expected a finite number above 0"));
  }
  refused("LSTM", {{"layout", std::int64_t{2}}}, "layout is 2, expected 0 or 1");
  refused("LSTM", {{"layout", std::int64_t{-1}}}, "layout is -1, expected 0 or 1");
  refused("LSTM", {{"activations", Texts{"Tanh"}}},
          "1 activations are there, expected 3 for each direction");
  refused("GRU", {{"activations", Texts{"Tanh", "Tanh", "Tanh"}}},
          "3 activations are there, expected 2 for each direction");
  refused("RNN", {{"activations", Texts{"Sinh"}}},
          "the activation is 'Sinh', expected one that ONNX has");
  refused("RNN", {{"activations", Texts{"Affine"}}},
          "the activation Affine has no activation_alpha, expected it: ONNX has no operator of "
          "this name that says its value");
  refused("RNN", {{"activations", Texts{"Affine"}}, {"activation_alpha", Floats{1.0f}}},
          "the activation Affine has no activation_beta, expected it: ONNX has no operator of this "
          "name that says its value");
  refused("RNN", {{"activations", Texts{"ScaledTanh"}}},
          "the activation ScaledTanh has no activation_alpha, expected it: ONNX has no operator of "
          "this name that says its value");
  refused("RNN", {{"activations", Texts{"Elu"}}, {"activation_alpha", Floats{NAN}}},
          "activation_alpha is nan, expected finite numbers");
  refused("RNN",
          {{"activations", Texts{"Tanh", "Relu"}}, {"direction", std::string("bidirectional")}},
          "the activations differ between the directions, expected the same", 2);
}

// ---- Shapes ------------------------------------------------------------------------------------

void put(OnnxModel* model, const std::string& name, Array values) {
  for (OnnxTensor& tensor : model->graph.initializers) {
    if (tensor.name != name) continue;
    tensor = OnnxTensor::of(name, std::move(values));
    return;
  }
  ADD_FAILURE() << "no initializer is named " << name;
}

TEST(OnnxNodes, ShapesAndTypes) {
  const auto refused = [](const char* name, Array values, const std::string& expected) {
    OnnxModel model = model_of("LSTM");
    put(&model, name, std::move(values));
    expect_note(model, expected);
  };
  const DType f32 = DType::kFloat32;
  refused("W", values_of(f32, {12, 2}, 1),
          "W is float32 [12, 2] and R [1, 12, 3], expected floating ones of three dimensions");
  refused("R", values_of(f32, {12, 3}, 1),
          "W is float32 [1, 12, 2] and R [12, 3], expected floating ones of three dimensions");
  refused("W", Array(DType::kInt32, {1, 12, 2}),
          "W is int32 [1, 12, 2] and R [1, 12, 3], expected floating ones of three dimensions");
  refused("W", values_of(f32, {1, 13, 2}, 1),
          "W is [1, 13, 2], R [1, 12, 3] and hidden_size 3, expected 4 blocks of hidden_size");
  refused("W", values_of(f32, {1, 16, 2}, 1),
          "W is [1, 16, 2], R [1, 12, 3] and hidden_size 3, expected 4 blocks of hidden_size");
  refused("R", values_of(f32, {1, 12, 4}, 1),
          "W is [1, 12, 2], R [1, 12, 4] and hidden_size 4, expected 4 blocks of hidden_size");
  refused("R", values_of(f32, {1, 16, 3}, 1),
          "R is float32 [1, 16, 3], expected float32 [1, 12, 3]");
  refused("R", values_of(DType::kFloat64, {1, 12, 3}, 1),
          "R is float64 [1, 12, 3], expected float32 [1, 12, 3]");
  refused("W", values_of(f32, {2, 12, 2}, 1),
          "W is float32 [2, 12, 2], expected float32 [1, 12, 2]");
  refused("B", values_of(f32, {1, 12}, 1), "B is float32 [1, 12], expected float32 [1, 24]");
  refused("W", Array(f32, {1, 12, 0}), "[RnnSpec] input_size is 0, expected 1 to 4194304");
  for (const std::int64_t hidden : {2, 0, -3}) {
    expect_note(model_of("RNN", {{"hidden_size", hidden}}),
                message("W is [1, 3, 2], R [1, 3, 3] and hidden_size ", hidden,
                        ", expected 1 blocks of hidden_size"));
  }
  expect_note(model_of("LSTM", {{"hidden_size", std::int64_t{4}}}),
              "W is [1, 12, 2], R [1, 12, 3] and hidden_size 4, expected 4 blocks of hidden_size");
  OnnxModel model = model_of("LSTM");
  model.graph.initializers.push_back(OnnxTensor::of("P", values_of(f32, {1, 12}, 4)));
  model.graph.nodes[0].inputs = {"x", "W", "R", "", "", "", "", "P"};
  expect_note(model, "P is float32 [1, 12], expected float32 [1, 9]");
  model.graph.initializers.back() = OnnxTensor::of("P", values_of(f32, {1, 9}, 4));
  const RnnSpec spec = only_network(model).spec;
  EXPECT_TRUE(spec.use_peepholes);
  EXPECT_FALSE(spec.use_bias);
}

TEST(OnnxNodes, WeightsThatAreNoConstants) {
  OnnxModel model = model_of("GRU");
  model.graph.nodes[0].inputs[2] = "computed";
  expect_note(model, "R is computed when the model runs, expected constants");
  model.graph.nodes[0].inputs = {"x", "W", "R", "computed"};
  expect_note(model, "B is computed when the model runs, expected constants");
  model.graph.nodes.insert(model.graph.nodes.begin(),
                           node_of("DequantizeLinear", {"q"}, {"computed"}, {}, "dq"));
  const MappedModel mapped = networks_from_onnx(model);
  ASSERT_EQ(mapped.notes.size(), 2u);
  EXPECT_NE(mapped.notes[0].find("B is quantised: it comes from DequantizeLinear 'dq', expected"),
            std::string::npos);
  EXPECT_EQ(mapped.notes[1], "[onnx] quantised nodes, of which no network is made: dq");
}

// ---- States ------------------------------------------------------------------------------------

TEST(OnnxNodes, StatesToBeginWith) {
  const auto with_state = [](Array state, std::int64_t dirs = 1, std::int64_t layout = 0) {
    Attributes attributes{{"layout", layout}};
    if (dirs == 2) attributes.push_back({"direction", std::string("bidirectional")});
    OnnxModel model = model_of("LSTM", attributes, dirs);
    model.graph.nodes[0].inputs = {"x", "W", "R", "B", "", "s", "s"};
    model.graph.initializers.push_back(OnnxTensor::of("s", std::move(state)));
    return only_network(model);
  };
  const Array row = values_of(DType::kFloat32, {1, 1, 3}, 7);
  MappedNetwork network = with_state(row);
  ASSERT_TRUE(network.initial_h && network.initial_c);
  EXPECT_TRUE(same_bytes(*network.initial_h, Array(row).reshaped({1, 3})));
  EXPECT_TRUE(same_bytes(*network.initial_c, Array(row).reshaped({1, 3})));
  EXPECT_EQ(network.tensors, (std::vector<std::string>{"B", "R", "W", "s"}));
  // Rows of a batch that are equal are one; others are none, and no part of the network.
  const std::vector<float> equal{1, 2, 3, 1, 2, 3}, unequal{1, 2, 3, 1, 2, 4};
  EXPECT_TRUE(with_state(Array::of<float>({1, 2, 3}, equal)).initial_h);
  network = with_state(Array::of<float>({1, 2, 3}, unequal));
  EXPECT_FALSE(network.initial_h);
  EXPECT_EQ(network.tensors, (std::vector<std::string>{"B", "R", "W"}));
  EXPECT_FALSE(with_state(Array(DType::kFloat32, {1, 1, 3})).initial_h);
  EXPECT_FALSE(with_state(values_of(DType::kFloat64, {1, 1, 3}, 7)).initial_h);
  EXPECT_FALSE(with_state(values_of(DType::kFloat32, {1, 3}, 7)).initial_h);
  EXPECT_FALSE(with_state(values_of(DType::kFloat32, {1, 1, 4}, 7)).initial_h);
  EXPECT_FALSE(with_state(values_of(DType::kFloat32, {2, 1, 3}, 7)).initial_h);
  // Two directions, and the batch in front.
  const Array two = Array::of<float>({2, 1, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  network = with_state(two, 2);
  EXPECT_TRUE(same_bytes(*network.initial_h, Array(two).reshaped({2, 3})));
  const std::vector<float> twice{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6};
  network = with_state(Array::of<float>({2, 2, 3}, twice), 2, 1);
  ASSERT_TRUE(network.initial_h);
  EXPECT_TRUE(same_bytes(*network.initial_h, Array(two).reshaped({2, 3})));
}

TEST(OnnxNodes, AStateOfOneLayerOfTwo) {
  RnnSpec spec{.mode = RnnMode::kGru, .num_layers = 2, .num_units = 3, .input_size = 2};
  MappedModel given;
  given.networks = {network_of(spec)};
  given.networks[0].initial_h = values_of(spec.dtype, {2, 3}, 5);
  OnnxModel model = onnx_from_networks(given);
  for (OnnxNode& node : model.graph.nodes) {
    if (node.name == "layer_0") node.inputs.resize(4);
  }
  const MappedNetwork network = only_network(model);
  ASSERT_TRUE(network.initial_h);
  const std::span<const float> found = network.initial_h->as<float>(),
                               expected = given.networks[0].initial_h->as<float>();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found[i], 0.0f);
    EXPECT_EQ(found[3 + i], expected[3 + i]);
  }
}

// ---- Stacks ------------------------------------------------------------------------------------

std::size_t stacks_after(bool bidirectional, const std::function<void(OnnxModel*)>& change) {
  RnnSpec spec{.mode = RnnMode::kGru, .num_layers = 2, .num_units = 3, .input_size = 2};
  if (bidirectional) spec.direction = Direction::kBidirectional;
  MappedModel given;
  given.networks = {network_of(spec, "e")};
  OnnxModel model = onnx_from_networks(given);
  change(&model);
  const MappedModel mapped = networks_from_onnx(model);
  for (const std::string& note : mapped.notes) ADD_FAILURE() << note;
  return mapped.networks.size();
}

OnnxNode* find(OnnxModel* model, const std::string& op) {
  for (OnnxNode& node : model->graph.nodes) {
    if (node.op_type == op) return &node;
  }
  throw StateError("no " + op);
}

TEST(OnnxNodes, LayersThatAreNoStack) {
  const auto nothing = [](OnnxModel*) {};
  EXPECT_EQ(stacks_after(false, nothing), 1u);
  EXPECT_EQ(stacks_after(true, nothing), 1u);
  // Somebody else takes what is between, or the steps are others.
  for (const char* value : {"e/layer_0/Y", "e/layer_0/joined"}) {
    EXPECT_EQ(stacks_after(false,
                           [&](OnnxModel* model) {
                             model->graph.nodes.push_back(node_of("Relu", {value}, {"other"}));
                           }),
              2u)
        << value;
  }
  for (const char* value : {"e/layer_0/Y", "e/layer_0/transposed", "e/layer_0/joined"}) {
    EXPECT_EQ(stacks_after(true,
                           [&](OnnxModel* model) {
                             model->graph.nodes.push_back(node_of("Relu", {value}, {"other"}));
                           }),
              2u)
        << value;
  }
  const auto of_shape = [](std::vector<std::int64_t> shape) {
    return [shape](OnnxModel* model) {
      for (OnnxTensor& tensor : model->graph.initializers) {
        if (tensor.name == "e/layer_0/shape") tensor = OnnxTensor::of(tensor.name, integers(shape));
      }
    };
  };
  EXPECT_EQ(stacks_after(true, of_shape({0, 0, 6})), 1u);
  EXPECT_EQ(stacks_after(true, of_shape({0, 0, 7})), 2u);
  EXPECT_EQ(stacks_after(true, of_shape({0, -1, 6})), 2u);
  EXPECT_EQ(stacks_after(true, of_shape({-1, 0, 6})), 2u);
  EXPECT_EQ(stacks_after(true, of_shape({0, 0, -1, 1})), 2u);
  EXPECT_EQ(stacks_after(true, of_shape({0, 0, -1})), 1u);
  EXPECT_EQ(stacks_after(true, of_shape({0, 0})), 2u);
  EXPECT_EQ(stacks_after(true, of_shape({0, 1, 6})), 2u);
  const std::vector<std::int64_t> other{0, 2, 3, 1};
  EXPECT_EQ(
      stacks_after(
          true, [&](OnnxModel* model) { find(model, "Transpose")->attributes[0].value = other; }),
      2u);
  EXPECT_EQ(
      stacks_after(true, [](OnnxModel* model) { find(model, "Transpose")->attributes.clear(); }),
      2u);
  EXPECT_EQ(stacks_after(false, [](OnnxModel* model) { find(model, "Squeeze")->domain = "other"; }),
            2u);
}

TEST(OnnxNodes, LayersWithOtherOptionsAreNoStack) {
  const auto last = [](OnnxModel* model) {
    for (OnnxNode& node : model->graph.nodes) {
      if (node.name == "e/layer_1") return &node;
    }
    throw StateError("no layer");
  };
  EXPECT_EQ(stacks_after(false,
                         [&](OnnxModel* m) {
                           last(m)->attributes.push_back({"clip", 1.0f});
                         }),
            2u);
  EXPECT_EQ(stacks_after(false,
                         [&](OnnxModel* m) {
                           last(m)->attributes.push_back({"layout", std::int64_t{1}});
                         }),
            2u);
  EXPECT_EQ(stacks_after(false,
                         [&](OnnxModel* m) {
                           OnnxNode* node = last(m);
                           node->inputs.resize(5);
                           node->inputs[4] = "lengths";
                         }),
            2u);
  EXPECT_EQ(stacks_after(false, [&](OnnxModel* m) { last(m)->inputs.resize(3); }), 2u);
  // Both batch major, and two of other lengths each.
  EXPECT_EQ(stacks_after(false,
                         [](OnnxModel* m) {
                           for (OnnxNode& node : m->graph.nodes) {
                             if (node.op_type == "GRU") {
                               node.attributes.push_back({"layout", std::int64_t{1}});
                             }
                           }
                         }),
            2u);
  const auto lengths = [](const char* first, const char* second) {
    return [=](OnnxModel* m) {
      for (OnnxNode& node : m->graph.nodes) {
        if (node.op_type != "GRU") continue;
        node.inputs.resize(5);
        node.inputs[4] = node.name == "e/layer_0" ? first : second;
      }
    };
  };
  EXPECT_EQ(stacks_after(false, lengths("a", "a")), 1u);
  EXPECT_EQ(stacks_after(false, lengths("a", "b")), 2u);
  EXPECT_EQ(stacks_after(false, lengths("a", "")), 2u);
}

// ---- Notes and names ---------------------------------------------------------------------------

TEST(OnnxNodes, Notes) {
  const auto notes_of = [](std::vector<OnnxNode> nodes, std::vector<OnnxTensor> tensors = {}) {
    OnnxModel model;
    model.graph.nodes = std::move(nodes);
    model.graph.initializers = std::move(tensors);
    return networks_from_onnx(model).notes;
  };
  using Notes = std::vector<std::string>;
  OnnxNode other = node_of("LSTM", {}, {"y"});
  other.domain = "com.other";
  EXPECT_EQ(notes_of({other}), Notes{"[onnx] node 'n' (com.other::LSTM): it is no operator of "
                                     "ONNX's own, expected RNN, LSTM or GRU"});
  EXPECT_EQ(notes_of({node_of("DynamicQuantizeLSTM", {}, {"y"})}),
            Notes{"[onnx] node 'n' (::DynamicQuantizeLSTM): it is quantised, expected RNN, LSTM or "
                  "GRU"});
  for (const char* op :
       {"DynamicQuantizeLinear", "QLinearMatMul", "MatMulInteger", "QGemm", "DequantizeLinear"}) {
    EXPECT_EQ(notes_of({node_of(op, {}, {"y"}, {}, "q")}),
              Notes{"[onnx] quantised nodes, of which no network is made: q"})
        << op;
  }
  EXPECT_EQ(notes_of({node_of("Relu", {}, {"y"})}), Notes());
  // A step in plain operators: a product and a gate.
  for (const char* op : {"Loop", "Scan", "If"}) {
    for (const char* product : {"MatMul", "Gemm", "Add"}) {
      for (const char* gate : {"Sigmoid", "Tanh", "HardSigmoid", "Relu"}) {
        const OnnxGraph body{.nodes = {node_of(product, {}, {"a"}), node_of(gate, {}, {"b"})}};
        const bool is_step =
            op != std::string("If") && product != std::string("Add") && gate != std::string("Relu");
        EXPECT_EQ(
            notes_of({node_of(op, {}, {"y"}, {{"body", std::make_shared<const OnnxGraph>(body)}})}),
            is_step ? Notes{"[onnx] node 'n' (" + std::string(op) +
                            "): its body is a recurrent step in plain operators, of which no "
                            "network is made"}
                    : Notes());
      }
    }
  }
  // A matrix in two products, between gates.
  const OnnxTensor w = OnnxTensor::of("w", values_of(DType::kFloat32, {2, 2}, 1));
  const OnnxNode first = node_of("MatMul", {"x", "w"}, {"a"}),
                 second = node_of("Gemm", {"a", "w"}, {"b"}), gate = node_of("Tanh", {"a"}, {"g"});
  EXPECT_EQ(
      notes_of({first, gate, second}, {w}),
      Notes{"[onnx] 'w' is a factor of 2 products, as in a network that is unrolled, of which "
            "no network is made"});
  EXPECT_EQ(notes_of({first, second}, {w}), Notes());
  EXPECT_EQ(notes_of({first, gate}, {w}), Notes());
  EXPECT_EQ(notes_of({first, gate, second}), Notes());
}

TEST(OnnxNodes, NamesDifferAndSubgraphsHavePrefixes) {
  OnnxModel model = model_of("GRU");
  for (const char* output : {"y2", "y3"}) {
    OnnxNode again = model.graph.nodes[0];
    again.outputs = {output};
    model.graph.nodes.push_back(again);
  }
  OnnxModel inner = model_of("RNN");
  model.graph.nodes.push_back(
      node_of("If", {"c"}, {"z"},
              {{"then_branch", std::make_shared<const OnnxGraph>(std::move(inner.graph))}}));
  model.functions = {"d::f"};
  const MappedModel mapped = networks_from_onnx(model);
  std::vector<std::string> names;
  for (const MappedNetwork& network : mapped.networks) names.push_back(network.name);
  EXPECT_EQ(names, (std::vector<std::string>{"z.then_branch.n", "n", "n_1", "n_2"}));
  EXPECT_EQ(mapped.networks[0].tensors,
            (std::vector<std::string>{"z.then_branch.B", "z.then_branch.R", "z.then_branch.W"}));
  EXPECT_EQ(mapped.notes,
            std::vector<std::string>{"[onnx] the body of the function d::f is not read"});
  EXPECT_EQ(mapped.kind, FileKind::kOnnx);
}

}  // namespace
}  // namespace openrnn
