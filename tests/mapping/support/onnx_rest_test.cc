// What is rare in ONNX models: other domains, graphs in graphs, states, and what an export says.
#include <gtest/gtest.h>
#include <openrnn/mapping_onnx.h>

#include <cmath>
#include <functional>
#include <map>

#include "base/message.h"
#include "formats/temp_folder.h"
#include "mapping/networks.h"

namespace openrnn {
namespace {

using Attributes = std::vector<OnnxAttribute>;
using Notes = std::vector<std::string>;
using Names = std::vector<std::string>;

OnnxNode node_of(const std::string& op, Names inputs, Names outputs, Attributes attributes = {}) {
  return {.name = "n",
          .op_type = op,
          .inputs = std::move(inputs),
          .outputs = std::move(outputs),
          .attributes = std::move(attributes)};
}

// An LSTM of 3 units on 2 inputs.
OnnxModel lstm_model(Attributes attributes = {}) {
  OnnxModel model;
  model.opsets[""] = 14;
  model.graph.nodes = {node_of("LSTM", {"x", "W", "R"}, {"y", "h"}, std::move(attributes))};
  model.graph.initializers = {OnnxTensor::of("W", values_of(DType::kFloat32, {1, 12, 2}, 1)),
                              OnnxTensor::of("R", values_of(DType::kFloat32, {1, 12, 3}, 2))};
  return model;
}

void put(OnnxModel* model, const std::string& name, Array values) {
  std::erase_if(model->graph.initializers,
                [&](const OnnxTensor& tensor) { return tensor.name == name; });
  model->graph.initializers.push_back(OnnxTensor::of(name, std::move(values)));
}

Array numbers(std::vector<std::int64_t> values) {
  return Array::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
}

Notes notes_of(const OnnxModel& model) { return networks_from_onnx(model).notes; }

TEST(OnnxRest, WholeNotes) {
  const auto why = [](const std::string& reason) {
    return Notes{"[onnx] node 'n' (LSTM): " + reason};
  };
  EXPECT_EQ(notes_of(lstm_model({{"clip", -0.5F}})),
            why("clip is -0.5, expected a finite number above 0"));
  EXPECT_EQ(notes_of(lstm_model({{"hidden_size", std::int64_t{4}}})),
            why("W is [1, 12, 2], R [1, 12, 3] and hidden_size 4, expected 4 blocks of "
                "hidden_size"));
  OnnxModel model = lstm_model();
  put(&model, "R", values_of(DType::kFloat64, {1, 12, 3}, 1));
  EXPECT_EQ(notes_of(model), why("R is float64 [1, 12, 3], expected float32 [1, 12, 3]"));
  const char* const names[] = {"", "W", "R", "B", "", "", "", "P"};
  for (const std::size_t input : {1U, 2U, 3U, 7U}) {
    model = lstm_model();
    model.graph.nodes[0].inputs = {"x", "W", "R", "", "", "", "", ""};
    model.graph.nodes[0].inputs[input] = "computed";
    EXPECT_EQ(notes_of(model), why(message(names[input], " is computed when the model runs, ",
                                           "expected constants")));
  }
  // A tensor whose bytes are not those of its shape.
  model = lstm_model();
  model.graph.initializers[0].shape = {1, 12, 3};
  EXPECT_EQ(notes_of(model).size(), 1U);
  EXPECT_TRUE(notes_of(model)[0].starts_with("[onnx] node 'n' (LSTM): ")) << notes_of(model)[0];
  for (const char* op : {"GRU", "MyGRUCell", "RNNBlock"}) {
    OnnxNode other = node_of(op, {}, {"y"});
    other.domain = "d";
    OnnxModel of_others;
    of_others.graph.nodes = {other};
    EXPECT_EQ(notes_of(of_others),
              Notes{message("[onnx] node 'n' (d::", op, "): it is no operator of ONNX's own, ",
                            "expected RNN, LSTM or GRU")});
  }
  OnnxModel products;
  products.graph.initializers = {OnnxTensor::of("w", values_of(DType::kFloat32, {2, 2}, 1))};
  products.graph.nodes = {node_of("MatMul", {"x", "w"}, {"a"}),
                          node_of("MatMul", {"a", "w"}, {"b"}),
                          node_of("MatMul", {"b", "w"}, {"c"}), node_of("Tanh", {"a"}, {"t"})};
  EXPECT_EQ(
      notes_of(products),
      Notes{"[onnx] 'w' is a factor of 3 products, as in a network that is unrolled, of which "
            "no network is made"});
}

TEST(OnnxRest, StatesThatAreNone) {
  const auto state_of = [](const OnnxNode* made, Array state) {
    OnnxModel model = lstm_model();
    model.graph.nodes[0].inputs = {"x", "W", "R", "", "", made ? "e" : "s"};
    if (made) model.graph.nodes.insert(model.graph.nodes.begin(), *made);
    put(&model, "s", std::move(state));
    const MappedModel mapped = networks_from_onnx(model);
    EXPECT_EQ(mapped.networks.size(), 1U);
    return mapped.networks.at(0).initial_h.has_value();
  };
  const Array row = values_of(DType::kFloat32, {1, 1, 3}, 3);
  EXPECT_TRUE(state_of(nullptr, row));
  EXPECT_FALSE(state_of(nullptr, Array(DType::kFloat32, {1, 0, 3})));
  EXPECT_FALSE(
      state_of(nullptr, Array::of<std::int32_t>({1, 1, 3}, std::vector<std::int32_t>{1, 2, 3})));
  // Rows that are repeated as often as the batch is long, which is computed.
  OnnxNode expand = node_of("Expand", {"s", "length"}, {"e"});
  EXPECT_TRUE(state_of(&expand, row));
  expand.op_type = "Add";
  EXPECT_FALSE(state_of(&expand, row));
  expand.op_type = "Expand";
  expand.domain = "d";
  EXPECT_FALSE(state_of(&expand, row));
}

// Graphs in graphs see the constants of those around them, and have their prefixes.
TEST(OnnxRest, GraphsInGraphs) {
  OnnxModel outer = lstm_model();
  OnnxModel inner = lstm_model();
  std::erase_if(inner.graph.initializers, [](const OnnxTensor& one) { return one.name == "R"; });
  OnnxGraph middle;
  middle.nodes = {node_of("If", {"d"}, {"w"},
                          {{"else_branch", std::make_shared<const OnnxGraph>(inner.graph)}})};
  outer.graph.nodes = {
      node_of("If", {"c"}, {"z"}, {{"then_branch", std::make_shared<const OnnxGraph>(middle)}})};
  const MappedModel mapped = networks_from_onnx(outer);
  ASSERT_EQ(mapped.networks.size(), 1U) << (mapped.notes.empty() ? "" : mapped.notes[0]);
  EXPECT_EQ(mapped.networks[0].name, "z.then_branch.w.else_branch.n");
  EXPECT_EQ(mapped.networks[0].tensors, (Names{"R", "z.then_branch.w.else_branch.W"}));
}

// Layers are joined by what they take, wherever others stand between them.
TEST(OnnxRest, StacksThatStandBetweenEachOther) {
  MappedModel given;
  const RnnSpec gru{.mode = RnnMode::kGru, .num_layers = 3, .num_units = 3, .input_size = 2};
  RnnSpec lstm{.num_layers = 2, .num_units = 3, .input_size = 2};
  lstm.direction = Direction::kBidirectional;
  given.networks = {network_of(gru, "a", 1), network_of(gru, "b", 2), network_of(lstm, "c", 3)};
  OnnxModel model = onnx_from_networks(given);
  // Those of a, b and c by turns, each in its order.
  std::map<std::string, std::vector<OnnxNode>> of;
  for (const OnnxNode& node : model.graph.nodes) of[node.name.substr(0, 1)].push_back(node);
  ASSERT_EQ(of.size(), 3U);
  const std::size_t count = model.graph.nodes.size();
  model.graph.nodes.clear();
  for (std::size_t i = 0; i < count; ++i) {
    for (auto& [name, nodes] : of) {
      if (i < nodes.size()) model.graph.nodes.push_back(nodes[i]);
    }
  }
  ASSERT_EQ(model.graph.nodes.size(), count);
  const MappedModel mapped = networks_from_onnx(model);
  EXPECT_EQ(mapped.notes, Notes());
  ASSERT_EQ(mapped.networks.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(mapped.networks[i].name, given.networks[i].name);
    EXPECT_EQ(mapped.networks[i].spec, given.networks[i].spec);
    EXPECT_TRUE(same_bytes(mapped.networks[i].params, given.networks[i].params));
  }
}

// Two layers upon one: each takes what the other takes, so none of them is a stack with it.
TEST(OnnxRest, TwoLayersUponOne) {
  MappedModel given;
  given.networks = {
      network_of({.mode = RnnMode::kGru, .num_layers = 2, .num_units = 3, .input_size = 2}, "a")};
  OnnxModel model = onnx_from_networks(given);
  OnnxNode again;
  for (const OnnxNode& node : model.graph.nodes) {
    if (node.name == "a/layer_1") again = node;
  }
  again.name = "other";
  again.outputs = {"other_y"};
  model.graph.nodes.push_back(again);
  const MappedModel mapped = networks_from_onnx(model);
  Names names;
  for (const MappedNetwork& network : mapped.networks) names.push_back(network.name);
  EXPECT_EQ(names, (Names{"a", "a/layer_1", "other"}));
}

// The notes, then the name and tensors of each network that is read of an exported one of two
// layers after a change.
Names networks_after(Direction direction, const std::function<void(OnnxModel*)>& change) {
  MappedModel given;
  given.networks = {network_of({.mode = RnnMode::kGru,
                                .num_layers = 2,
                                .num_units = 3,
                                .input_size = 2,
                                .direction = direction},
                               "e")};
  OnnxModel model = onnx_from_networks(given);
  change(&model);
  const MappedModel mapped = networks_from_onnx(model);
  Names found = mapped.notes;
  for (const MappedNetwork& network : mapped.networks) {
    std::string tensors;
    for (const std::string& name : network.tensors) tensors += " " + name;
    found.push_back(network.name + tensors);
  }
  return found;
}

OnnxNode& node_called(OnnxModel* model, const std::string& name) {
  return *std::ranges::find(model->graph.nodes, name, &OnnxNode::name);
}

TEST(OnnxRest, WhatIsBetweenTwoLayersOfANetwork) {
  const std::string first = " e/layer_0/B e/layer_0/R e/layer_0/W",
                    second = " e/layer_1/B e/layer_1/R e/layer_1/W";
  const Names one{"e" + first + second}, two{"e" + first, "e/layer_1" + second};
  const Direction forward = Direction::kUnidirectional, both = Direction::kBidirectional;
  EXPECT_EQ(networks_after(forward, [](OnnxModel*) {}), one);
  EXPECT_EQ(networks_after(both, [](OnnxModel*) {}), one);
  // The axis that goes is that of the directions, and a constant.
  for (const std::vector<std::int64_t>& axes : {std::vector<std::int64_t>{0}, {2}, {1, 1}, {}}) {
    EXPECT_EQ(networks_after(
                  forward, [&](OnnxModel* model) { put(model, "e/layer_0/axes", numbers(axes)); }),
              two)
        << to_string(axes);
  }
  for (const Direction direction : {forward, both}) {
    EXPECT_EQ(networks_after(direction,
                             [&](OnnxModel* model) {
                               const char* name = direction == both ? "e/layer_0/joined/Reshape"
                                                                    : "e/layer_0/joined/Squeeze";
                               node_called(model, name).inputs[1] = "computed";
                             }),
              two);
    // A value that another node takes, in whichever place.
    EXPECT_EQ(
        networks_after(
            direction,
            [&](OnnxModel* model) {
              model->graph.nodes.push_back(node_of("Add", {"e/x", "e/layer_0/joined"}, {"sum"}));
            }),
        two);
  }
  // Of two directions no axis can go.
  EXPECT_EQ(networks_after(both,
                           [&](OnnxModel* model) {
                             put(model, "one", numbers({1}));
                             OnnxNode& joined = node_called(model, "e/layer_0/joined/Reshape");
                             joined.op_type = "Squeeze";
                             joined.inputs = {"e/layer_0/Y", "one"};
                             std::erase_if(model->graph.nodes, [](const OnnxNode& node) {
                               return node.outputs[0] == "e/layer_0/transposed";
                             });
                           }),
            two);
  for (const char* layer : {"e/layer_0", "e/layer_1"}) {
    EXPECT_EQ(networks_after(
                  forward,
                  [&](OnnxModel* model) {
                    node_called(model, layer).attributes.push_back({"layout", std::int64_t{1}});
                  }),
              two)
        << layer;
  }
}

// ---- Constants that are computed ---------------------------------------------------------------

// The network of W and R as these nodes make W.
MappedModel with_made_w(const std::vector<OnnxNode>& nodes,
                        const std::vector<std::pair<std::string, Array>>& tensors) {
  OnnxModel model = lstm_model();
  std::erase_if(model.graph.initializers, [](const OnnxTensor& one) { return one.name == "W"; });
  for (const auto& [name, values] : tensors) put(&model, name, values);
  model.graph.nodes.insert(model.graph.nodes.begin(), nodes.begin(), nodes.end());
  return networks_from_onnx(model);
}

// Each of these makes the same W out of constants.
TEST(OnnxRest, ConstantsBehindMoves) {
  const Array w = values_of(DType::kFloat32, {1, 12, 2}, 1);
  const MappedNetwork plain = networks_from_onnx(lstm_model()).networks.at(0);
  Array twice(DType::kFloat32, {2, 12, 2}), transposed(DType::kFloat32, {2, 12, 1});
  for (std::size_t i = 0; i < 24; ++i) {
    twice.as<float>()[24 + i] = w.as<float>()[i];
    transposed.as<float>()[i % 2 * 12 + i / 2] = w.as<float>()[i];
  }
  const auto value = std::make_shared<const OnnxTensor>(OnnxTensor::of("", w));
  struct Case {
    std::vector<OnnxNode> nodes;
    std::vector<std::pair<std::string, Array>> tensors;
    Names used;
  };
  const Case cases[] = {
      // With an input in between that is left out.
      {{node_of("Slice", {"t", "s", "e", "", "p"}, {"W"})},
       {{"t", twice}, {"s", numbers({1})}, {"e", numbers({2})}, {"p", numbers({1})}},
       {"R", "e", "p", "s", "t"}},
      // The second of two outputs, the first of which has no name.
      {{node_of("Split", {"t"}, {"", "W"}, {{"axis", std::int64_t{0}}})},
       {{"t", twice}},
       {"R", "t"}},
      {{node_of("Transpose", {"t"}, {"W"}, {{"perm", std::vector<std::int64_t>{2, 1, 0}}})},
       {{"t", transposed}},
       {"R", "t"}},
      {{node_of("Constant", {}, {"k"}, {{"value", value}}), node_of("Identity", {"k"}, {"W"})},
       {},
       {"R", "k"}},
      {{node_of("Shape", {"t"}, {"n"}), node_of("Reshape", {"f", "n"}, {"W"})},
       {{"t", w}, {"f", Array(w).reshaped({24})}},
       {"R", "f", "t"}},
      {{node_of("Squeeze", {"t", "a"}, {"m"}), node_of("Unsqueeze", {"m", "a"}, {"W"})},
       {{"t", w}, {"a", numbers({0})}},
       {"R", "a", "t"}},
      {{node_of("Cast", {"t"}, {"W"}, {{"to", std::int64_t{1}}})},
       {{"t", cast(w.view(), DType::kFloat64)}},
       {"R", "t"}},
      {{node_of("Gather", {"t", "i"}, {"W"})},
       {{"t", twice}, {"i", numbers({-1})}},
       {"R", "i", "t"}},
  };
  for (const Case& one : cases) {
    const MappedModel mapped = with_made_w(one.nodes, one.tensors);
    const std::string& op = one.nodes[0].op_type;
    EXPECT_EQ(mapped.notes, Notes()) << op;
    ASSERT_EQ(mapped.networks.size(), 1U) << op;
    EXPECT_TRUE(same_bytes(mapped.networks[0].params, plain.params)) << op;
    EXPECT_EQ(mapped.networks[0].tensors, one.used) << op;
  }
}

TEST(OnnxRest, ConstantsThatAreNone) {
  const Array w = values_of(DType::kFloat32, {1, 12, 2}, 1);
  const Notes computed{
      "[onnx] node 'n' (LSTM): W is computed when the model runs, expected "
      "constants"};
  // Of an input, of an operator that is none of the moves, of another domain, of nothing.
  EXPECT_EQ(with_made_w({node_of("Identity", {"x"}, {"W"})}, {}).notes, computed);
  EXPECT_EQ(with_made_w({node_of("Neg", {"t"}, {"W"})}, {{"t", w}}).notes, computed);
  OnnxNode other = node_of("Identity", {"t"}, {"W"});
  other.domain = "d";
  EXPECT_EQ(with_made_w({other}, {{"t", w}}).notes, computed);
  EXPECT_EQ(with_made_w({node_of("Concat", {"t", "x"}, {"W"})}, {{"t", w}}).notes, computed);
  EXPECT_EQ(with_made_w({}, {}).notes, computed);
  // Two nodes that take each other's outputs.
  EXPECT_EQ(
      with_made_w({node_of("Identity", {"b"}, {"W"}), node_of("Identity", {"W"}, {"b"})}, {}).notes,
      computed);
  // What a move says of what does not fit.
  EXPECT_EQ(
      with_made_w({node_of("Squeeze", {"t", "a"}, {"W"})}, {{"t", w}, {"a", numbers({1})}}).notes,
      Notes{"[onnx] node 'n' (Squeeze): axis 1 has size 12"});
  EXPECT_EQ(with_made_w({node_of("Slice", {"t"}, {"W"})}, {{"t", w}}).notes,
            Notes{"[onnx] node 'n' (Slice): there are no starts, expected them"});
  EXPECT_EQ(
      with_made_w({node_of("Reshape", {"t", "a"}, {"W"})}, {{"t", w}, {"a", numbers({5})}}).notes,
      Notes{"[onnx] node 'n' (LSTM): [reshaped] shape is [5], expected 24 elements as in "
            "[1, 12, 2]"});
}

// What moves may take grows with the constants, wherever these are.
TEST(OnnxRest, LargeConstantsBehindSeveralMoves) {
  const Array w(DType::kFloat32, {1, 12, 120000});
  const auto value = std::make_shared<const OnnxTensor>(OnnxTensor::of("", w));
  const std::vector<OnnxNode> moves{
      node_of("Identity", {"t"}, {"a"}), node_of("Identity", {"a"}, {"b"}),
      node_of("Identity", {"b"}, {"c"}), node_of("Identity", {"c"}, {"W"})};
  std::vector<OnnxNode> nodes{node_of("Constant", {}, {"t"}, {{"value", value}})};
  nodes.insert(nodes.end(), moves.begin(), moves.end());
  EXPECT_EQ(with_made_w(moves, {{"t", w}}).notes, Notes());
  EXPECT_EQ(with_made_w(nodes, {}).notes, Notes());
  OnnxModel inner = lstm_model();
  put(&inner, "t", w);
  std::erase_if(inner.graph.initializers, [](const OnnxTensor& one) { return one.name == "W"; });
  inner.graph.nodes.insert(inner.graph.nodes.begin(), moves.begin(), moves.end());
  OnnxModel outer;
  outer.graph.nodes = {node_of("If", {"c"}, {"z"},
                               {{"then_branch", std::make_shared<const OnnxGraph>(inner.graph)}})};
  const MappedModel mapped = networks_from_onnx(outer);
  EXPECT_EQ(mapped.notes, Notes());
  EXPECT_EQ(mapped.networks.size(), 1U);
}

// Of a file: weights of no network are named, numbers by which nodes move elements are none.
TEST(OnnxRest, TensorsOfNoNetwork) {
  const auto names_of = [](const OnnxModel& model) {
    const formats::TempFolder folder;
    write_onnx(folder / "m.onnx", model);
    const MappedModel mapped = load_networks(folder / "m.onnx");
    EXPECT_EQ(mapped.notes, Notes());
    return mapped.not_understood;
  };
  MappedModel given;
  for (const char* name : {"a", "b"}) {
    given.networks.push_back(network_of({.num_layers = 2, .num_units = 3, .input_size = 2}, name));
    given.networks.back().initial_h = values_of(DType::kFloat32, {2, 3}, 4);
  }
  OnnxModel model = onnx_from_networks(given);
  EXPECT_EQ(names_of(model), Names());
  EXPECT_EQ(names_of(onnx_from_networks(given, {.lengths = true, .states = true})), Names());
  put(&model, "table", values_of(DType::kFloat32, {4, 3}, 5));
  put(&model, "offset", values_of(DType::kFloat32, {3}, 6));
  put(&model, "sizes", numbers({2, 6}));
  put(&model, "half", numbers({2}));
  put(&model, "other_half", numbers({6}));
  model.graph.nodes.push_back(node_of("Reshape", {"table", "sizes"}, {"moved"}));
  model.graph.nodes.push_back(
      node_of("Concat", {"half", "other_half"}, {"joined"}, {{"axis", std::int64_t{0}}}));
  model.graph.nodes.push_back(node_of("Reshape", {"moved", "joined"}, {"again"}));
  // A sum, and one taken twice between gates, is no product.
  model.graph.nodes.push_back(node_of("Add", {"again", "offset"}, {"sum"}));
  model.graph.nodes.push_back(node_of("Add", {"sum", "offset"}, {"sums"}));
  model.graph.nodes.push_back(node_of("Tanh", {"sums"}, {"gate"}));
  EXPECT_EQ(names_of(model), (Names{"table", "offset"}));
}

TEST(OnnxRest, WhatAnExportSaysOfItself) {
  MappedModel model;
  RnnSpec spec{.num_units = 3, .input_size = 2, .gate_clip = {{-0.25, 0.25}}};
  spec.output_activation = parse_cell_activation("softsign");
  model.networks = {network_of(spec, "a")};
  model.values = {{"producer_name", std::string("other")}, {"key", std::int64_t{3}}};
  OnnxModel made = onnx_from_networks(model);
  EXPECT_EQ(made.graph.name, "networks");
  EXPECT_EQ(made.producer_name, "openrnn");
  EXPECT_EQ(made.ir_version, 7);
  EXPECT_EQ(made.opsets.at(""), 14);
  EXPECT_EQ(made.metadata.size(), 2U);
  const auto node = std::ranges::find(made.graph.nodes, "LSTM", &OnnxNode::op_type);
  ASSERT_NE(node, made.graph.nodes.end());
  EXPECT_EQ(std::get<float>(node->find("clip")->value), 0.25F);
  EXPECT_EQ(std::get<Names>(node->find("activations")->value),
            (Names{"Sigmoid", "Tanh", "Softsign"}));
  // Inputs that are left out at the end are not there.
  EXPECT_EQ(node->inputs, (Names{"a/x", "a/layer_0/W", "a/layer_0/R", "a/layer_0/B"}));
  const formats::TempFolder folder;
  save_networks(folder / "m", model, ModelFormat::kOnnx);
  const MappedModel found = load_networks(folder / "m");
  EXPECT_EQ(found.networks.at(0).spec, spec);
  EXPECT_TRUE(found.not_understood.empty());
  std::map<std::string, PlainValue> values;
  for (const NamedValue& value : found.values) values[value.name] = value.value;
  const std::map<std::string, PlainValue> expected{{"producer_name", std::string("openrnn")},
                                                   {"key", std::int64_t{3}}};
  EXPECT_EQ(values, expected);
  model.networks[0].spec.dtype = DType::kBfloat16;
  model.networks[0].params = cast(model.networks[0].params.view(), DType::kBfloat16);
  made = onnx_from_networks(model);
  EXPECT_EQ(made.ir_version, 10);
  EXPECT_EQ(made.opsets.at(""), 22);
}

}  // namespace
}  // namespace openrnn
