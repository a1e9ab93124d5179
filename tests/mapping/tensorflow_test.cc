// Networks in TensorFlow's files: cells, stacks and directions, slots, there and back.
#include <gtest/gtest.h>

#include <algorithm>

#include "formats/objects/object_graph.h"
#include "formats/temp_folder.h"
#include "mapping/networks.h"
#include "openrnn/saveables.h"

namespace openrnn {
namespace {

using formats::TempFolder;

constexpr RnnMode kModes[] = {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnTanh, RnnMode::kRnnRelu};
constexpr Direction kDirections[] = {Direction::kUnidirectional, Direction::kBidirectional};
constexpr DType kDtypes[] = {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64};

MappedModel model_of(std::vector<MappedNetwork> networks) {
  MappedModel model;
  model.networks = std::move(networks);
  return model;
}

MappingHints hints_of(RnnMode mode) {
  MappingHints hints;
  if (mode == RnnMode::kRnnTanh || mode == RnnMode::kRnnRelu) hints.mode = mode;
  return hints;
}

MappedNetwork saved_and_loaded(const MappedNetwork& network) {
  const TempFolder folder;
  save_networks(folder / "ck", model_of({network}), ModelFormat::kTensorflow);
  MappedModel model = load_networks(folder / "ck", hints_of(network.spec.mode));
  EXPECT_TRUE(model.not_understood.empty());
  EXPECT_EQ(model.networks.size(), 1U) << (model.notes.empty() ? "" : model.notes[0]);
  return std::move(model.networks.at(0));
}

// The sums of two biases are what the cells hold: a second time nothing changes.
TEST(TensorflowNetworks, EveryNetworkThereAndBack) {
  for (const RnnMode mode : kModes) {
    for (const Direction direction : kDirections) {
      for (const std::int64_t layers : {1, 3}) {
        for (const DType dtype : kDtypes) {
          const RnnSpec spec{.mode = mode,
                             .num_layers = layers,
                             .num_units = 7,
                             .input_size = 3,
                             .direction = direction,
                             .dtype = dtype,
                             .single_bias = mode != RnnMode::kLstm && mode != RnnMode::kGru};
          const MappedNetwork once = saved_and_loaded(network_of(spec, "encoder"));
          const MappedNetwork twice = saved_and_loaded(once);
          EXPECT_EQ(once.name, "encoder");
          EXPECT_EQ(once.spec, spec) << describe(once.spec);
          EXPECT_TRUE(same_bytes(once.params, twice.params)) << describe(spec);
          const std::vector<double> before = output_of(network_of(spec)), after = output_of(once);
          const double most = dtype == DType::kBfloat16  ? 0.05
                              : dtype == DType::kFloat16 ? 5e-3
                                                         : 1e-6;
          for (std::size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(before[i], after[i], most);
        }
      }
    }
  }
}

// What TensorFlow's own cells have: the same bits.
TEST(TensorflowNetworks, OptionsOfCells) {
  const RnnSpec small{
      .num_layers = 2, .num_units = 5, .input_size = 1, .forget_bias = 1.0, .single_bias = true};
  RnnSpec projected = small;
  projected.num_proj = 2;
  projected.use_peepholes = true;
  projected.direction = Direction::kBidirectional;
  RnnSpec before = small;
  before.mode = RnnMode::kGru;
  before.forget_bias = 0.0;
  before.reset_after = false;
  for (const RnnSpec& spec : {small, projected, before}) {
    MappedNetwork network = network_of(spec);
    network.slots.emplace("Adam", values_of(DType::kFloat32, {params_size(spec)}, 5));
    network.slots.emplace("Adam_1", values_of(DType::kFloat32, {params_size(spec)}, 6));
    const MappedNetwork found = saved_and_loaded(network);
    EXPECT_EQ(found.spec, spec) << describe(found.spec);
    EXPECT_TRUE(same_bytes(found.params, network.params)) << describe(spec);
    ASSERT_EQ(found.slots.size(), 2U);
    EXPECT_TRUE(same_bytes(found.slots.at("Adam"), network.slots.at("Adam")));
    EXPECT_TRUE(same_bytes(found.slots.at("Adam_1"), network.slots.at("Adam_1")));
  }
}

TEST(TensorflowNetworks, ForgetBiasIsSaidAndCanBeGiven) {
  const TempFolder folder;
  const RnnSpec spec{.num_units = 3, .input_size = 2, .forget_bias = 1.0, .single_bias = true};
  save_networks(folder / "ck", model_of({network_of(spec, "a")}), ModelFormat::kTensorflow);
  const MappedModel model = load_networks(folder / "ck");
  ASSERT_EQ(model.notes.size(), 1U);
  EXPECT_EQ(model.notes[0],
            "forget_bias of the network 'a' is not in the file: TensorFlow's default for a "
            "lstm_cell is taken, 1");
  MappingHints hints;
  hints.forget_bias = 0.25;
  const MappedModel given = load_networks(folder / "ck", hints);
  EXPECT_EQ(given.networks.at(0).spec.forget_bias, 0.25);
  EXPECT_TRUE(given.notes.empty());
}

// Other values join the forget gate's bias.
TEST(TensorflowNetworks, AForgetBiasThatIsNoDefault) {
  const RnnSpec spec{.num_units = 3, .input_size = 2, .forget_bias = 0.5, .single_bias = true};
  const MappedNetwork network = network_of(spec), found = saved_and_loaded(network);
  EXPECT_EQ(found.spec.forget_bias, 0.0);
  const std::vector<double> before = output_of(network), after = output_of(found);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(before[i], after[i], 1e-6);
}

TEST(TensorflowNetworks, WhatDoesNotFitIsRefused) {
  const TempFolder folder;
  MappedNetwork clipped = network_of({.num_units = 3, .input_size = 2, .cell_clip = {{-1., 1.}}});
  EXPECT_THROW(save_networks(folder / "ck", model_of({clipped}), ModelFormat::kTensorflow),
               UnsupportedError);
  MappedNetwork stated = network_of({.num_units = 3, .input_size = 2});
  stated.initial_h = values_of(DType::kFloat32, {1, 3}, 4);
  EXPECT_THROW(save_networks(folder / "ck", model_of({stated}), ModelFormat::kTensorflow),
               UnsupportedError);
  EXPECT_FALSE(tensor_bundle_exists(folder / "ck"));
  const RnnSpec plain{.mode = RnnMode::kRnnRelu, .num_units = 3, .input_size = 2};
  save_networks(folder / "ck", model_of({network_of(plain)}), ModelFormat::kTensorflow);
  EXPECT_THROW(load_networks(folder / "ck"), ArgumentError);
}

NamedTensor tensor_of(const std::string& name, const Shape& shape, std::uint64_t seed) {
  return {name, values_of(DType::kFloat32, shape, seed)};
}

// The network of one kernel and one bias at a scope.
std::vector<std::string> names_in(const std::vector<std::pair<std::string, Shape>>& tensors) {
  const TempFolder folder;
  std::vector<NamedTensor> named;
  for (const auto& [name, shape] : tensors) named.push_back(tensor_of(name, shape, named.size()));
  write_tensor_bundle(folder / "ck", named);
  std::vector<std::string> found;
  for (const MappedNetwork& network : load_networks(folder / "ck").networks) {
    found.push_back(network.name + ": " + describe(network.spec));
  }
  return found;
}

TEST(TensorflowNetworks, NamesOfScopes) {
  using Names = std::vector<std::string>;
  const Shape kernel{5, 12}, bias{12};  // I = 2, U = 3
  const auto pair_at = [&](const std::string& scope) {
    return std::vector<std::pair<std::string, Shape>>{{scope + "/kernel", kernel},
                                                      {scope + "/bias", bias}};
  };
  const RnnSpec one{.num_units = 3, .input_size = 2, .forget_bias = 1.0, .single_bias = true};
  for (const auto& [scope, name] : std::vector<std::pair<std::string, std::string>>{
           {"rnn/basic_lstm_cell", ""},
           {"basic_lstm_cell", ""},
           {"model/rnn/lstm_cell", "model"},
           {"decoder/basic_lstm_cell_1", "decoder"},
           {"a/rnn/multi_rnn_cell/cell_0/lstm_cell", "a"}}) {
    EXPECT_EQ(names_in(pair_at(scope)), Names{name + ": " + describe(one)}) << scope;
  }
  // A number that no layer has: one more than it would overflow.
  const std::string far = "rnn/multi_rnn_cell/cell_9223372036854775807";
  RnnSpec square = one;
  square.input_size = 3;
  EXPECT_EQ(names_in({{far + "/lstm_cell/kernel", {6, 12}}, {far + "/lstm_cell/bias", bias}}),
            Names{far + ": " + describe(square)});
  // Old names; a dense layer is no cell.
  EXPECT_EQ(names_in({{"rnn/basic_lstm_cell/weights", kernel},
                      {"rnn/basic_lstm_cell/biases", bias},
                      {"dense/kernel", {3, 2}},
                      {"dense/bias", {2}}}),
            Names{": " + describe(one)});
  const auto gru = [&](const std::string& matrix, const std::string& vector) {
    const std::string cell = "rnn/gru_cell/";
    return names_in({{cell + "gates/" + matrix, {5, 6}},
                     {cell + "gates/" + vector, {6}},
                     {cell + "candidate/" + matrix, {5, 3}},
                     {cell + "candidate/" + vector, {3}}});
  };
  EXPECT_EQ(gru("weights", "biases").size(), 1U);
  EXPECT_EQ(gru("weights", "biases"), gru("kernel", "bias"));
  // Stacks of unequal sizes are networks of their own.
  const Names apart = names_in({{"rnn/multi_rnn_cell/cell_0/lstm_cell/kernel", kernel},
                                {"rnn/multi_rnn_cell/cell_0/lstm_cell/bias", bias},
                                {"rnn/multi_rnn_cell/cell_1/lstm_cell/kernel", {7, 16}},
                                {"rnn/multi_rnn_cell/cell_1/lstm_cell/bias", {16}}});
  ASSERT_EQ(apart.size(), 2U);
  EXPECT_TRUE(apart[0].starts_with("rnn/multi_rnn_cell/cell_0/lstm_cell: ")) << apart[0];
}

TEST(TensorflowNetworks, StacksInsideADirection) {
  const std::string at = "bidirectional_rnn/";
  std::vector<std::pair<std::string, Shape>> tensors;
  const auto add = [&](const std::string& scope, std::int64_t rows) {
    tensors.push_back({scope + "/kernel", {rows, 12}});
    tensors.push_back({scope + "/bias", {12}});
  };
  // Of the two upper layers each is a network of its own; the lowest ones are one of two
  // directions.
  for (const char* way : {"fw", "bw"}) {
    for (const char* cell : {"cell_0", "cell_1"}) {
      add(at + way + "/multi_rnn_cell/" + cell + "/lstm_cell", cell[5] == '0' ? 5 : 6);
    }
  }
  RnnSpec one{.num_units = 3, .input_size = 3, .forget_bias = 1.0, .single_bias = true};
  RnnSpec both = one;
  both.input_size = 2;
  both.direction = Direction::kBidirectional;
  std::vector<std::string> found = names_in(tensors);
  std::ranges::sort(found);
  EXPECT_EQ(found,
            (std::vector<std::string>{
                ": " + describe(both), at + "bw/multi_rnn_cell/cell_1/lstm_cell: " + describe(one),
                at + "fw/multi_rnn_cell/cell_1/lstm_cell: " + describe(one)}));
  // A stack of two directions in each layer is one network.
  tensors.clear();
  for (const char* way : {"fw", "bw"}) {
    add(std::string("a/stack_bidirectional_rnn/cell_0/") + at + way + "/lstm_cell", 5);
    add(std::string("a/stack_bidirectional_rnn/cell_1/") + at + way + "/lstm_cell", 9);
  }
  both.num_layers = 2;
  EXPECT_EQ(names_in(tensors), std::vector<std::string>{"a: " + describe(both)});
  // One direction alone, and fw without its loop, are of one direction.
  tensors.clear();
  add(at + "bw/lstm_cell", 5);
  one.input_size = 2;
  EXPECT_EQ(names_in(tensors).size(), 1U);
  tensors.clear();
  add("rnn/fw/lstm_cell", 5);
  EXPECT_EQ(names_in(tensors), std::vector<std::string>{"rnn/fw: " + describe(one)});
}

TEST(TensorflowNetworks, NumbersOfCells) {
  const Shape kernel{6, 12}, bias{12};
  const auto name_of = [&](const std::string& cell) {
    const std::string scope = "a/rnn/multi_rnn_cell/" + cell + "/lstm_cell";
    return names_in({{scope + "/kernel", kernel}, {scope + "/bias", bias}}).at(0);
  };
  const auto is_stack = [&](const std::string& cell) { return name_of(cell).starts_with("a: "); };
  EXPECT_TRUE(is_stack("cell_0"));
  // No first layer, no number, a number that is too long: a network of its own.
  for (const char* cell :
       {"cell_1", "cell_9999", "cell_10000", "cell_", "cell_x", "cell_0x", "cell_-1", "cells_0"}) {
    EXPECT_FALSE(is_stack(cell)) << cell;
  }
}

// Why the tensors of a cell make no network.
TEST(TensorflowNetworks, CellsThatDoNotFit) {
  using Tensors = std::vector<std::pair<std::string, Shape>>;
  struct Case {
    Tensors tensors;
    const char* why;
  };
  const std::string cell = "rnn/lstm_cell/", keras = "lstm/lstm_cell/", gru = "rnn/gru_cell/";
  const Case cases[] = {
      {{{cell + "kernel", {5, 12}}}, "the tensors at 'rnn/lstm_cell': it has no bias"},
      {{{cell + "kernel", {5, 11}}, {cell + "bias", {11}}},
       "'rnn/lstm_cell/bias' and the like: its kernel has shape [5, 11], expected 4 gates of "
       "equally many columns"},
      {{{cell + "kernel", {5}}, {cell + "bias", {12}}},
       "'rnn/lstm_cell/bias' and the like: kernel has shape [5], expected two sizes of at least 1"},
      {{{cell + "kernel", {3, 12}}, {cell + "bias", {12}}},
       "'rnn/lstm_cell/bias' and the like: [RnnSpec] input_size is 0, expected 1 to 4194304"},
      {{{cell + "kernel", {5, 12}}, {cell + "bias", {11}}},
       "the tensors at 'rnn/lstm_cell': bias is float32 [11], expected float32 [12]"},
      {{{cell + "kernel", {5, 12}}, {cell + "bias", {12}}, {cell + "w_i_diag", {3}}},
       "the tensors at 'rnn/lstm_cell': it has no w_f_diag"},
      {{{cell + "kernel", {5, 12}}, {cell + "bias", {12}}, {cell + "w_f_diag", {3}}},
       "the tensors at 'rnn/lstm_cell': it has 3 tensors, expected the 2 of lstm, 1 layer, 3 "
       "units, input size 2, unidirectional, float32, forget_bias 1, single_bias true"},
      {{{cell + "kernel", {4, 12}}, {cell + "bias", {12}}, {cell + "projection/kernel", {4, 2}}},
       "the tensors at 'rnn/lstm_cell': projection/kernel is float32 [4, 2], expected float32 [3, "
       "2]"},
      {{{gru + "gates/kernel", {5, 6}},
        {gru + "gates/bias", {6}},
        {gru + "candidate/kernel", {5, 3}}},
       "the tensors at 'rnn/gru_cell': it has no candidate/bias"},
      {{{gru + "gates/kernel", {5, 7}}, {gru + "candidate/kernel", {5, 3}}},
       "'rnn/gru_cell/candidate/kernel' and the like: its kernel has shape [5, 7], expected 2 "
       "gates of equally many columns"},
      {{{keras + "kernel", {2, 12}}, {keras + "recurrent_kernel", {3, 11}}},
       "'lstm/lstm_cell/kernel' and the like: recurrent_kernel has shape [3, 11], expected 1, 3 or "
       "4 gates of 3 columns"},
      {{{keras + "kernel", {2, 6}}, {keras + "recurrent_kernel", {3, 6}}},
       "'lstm/lstm_cell/kernel' and the like: recurrent_kernel has shape [3, 6], expected 1, 3 or "
       "4 gates of 3 columns"},
      {{{keras + "kernel", {2, 9}}, {keras + "recurrent_kernel", {3, 12}}},
       "the tensors at 'lstm/lstm_cell': kernel is float32 [2, 9], expected float32 [2, 12]"},
      {{{keras + "recurrent_kernel", {3, 12}}},
       "'lstm/lstm_cell/recurrent_kernel' and the like: it has no kernel"},
  };
  for (const Case& one : cases) {
    const TempFolder folder;
    std::vector<NamedTensor> named;
    for (const auto& [name, shape] : one.tensors) named.push_back(tensor_of(name, shape, 1));
    write_tensor_bundle(folder / "ck", named);
    const MappedModel model = load_networks(folder / "ck");
    EXPECT_TRUE(model.networks.empty()) << one.why;
    EXPECT_EQ(model.not_understood.size(), one.tensors.size()) << one.why;
    ASSERT_EQ(model.notes.size(), 1U) << one.why;
    EXPECT_EQ(model.notes[0], std::string("no network was made from ") + one.why);
  }
}

// A slot is of the whole network, of the shapes of its tensors and of one dtype.
TEST(TensorflowNetworks, SlotsThatDoNotFit) {
  const std::string cell = "rnn/lstm_cell/";
  struct Case {
    Shape kernel, bias;
    DType of_bias;
    bool found;
  };
  const Case cases[] = {{{5, 12}, {12}, DType::kFloat32, true},
                        {{12, 5}, {12}, DType::kFloat32, false},
                        {{5, 12}, {11}, DType::kFloat32, false},
                        {{5, 12}, {12}, DType::kFloat64, false},
                        {{5, 12}, {12}, DType::kInt32, false}};
  for (const Case& one : cases) {
    const TempFolder folder;
    const Array of_bias = is_floating(one.of_bias) ? values_of(one.of_bias, one.bias, 4)
                                                   : Array(one.of_bias, one.bias);
    write_tensor_bundle(folder / "ck",
                        std::vector<NamedTensor>{tensor_of(cell + "kernel", {5, 12}, 1),
                                                 tensor_of(cell + "bias", {12}, 2),
                                                 tensor_of(cell + "kernel/Adam", one.kernel, 3),
                                                 {cell + "bias/Adam", of_bias},
                                                 tensor_of(cell + "kernel/Half", {5, 12}, 5)});
    const MappedModel model = load_networks(folder / "ck");
    ASSERT_EQ(model.networks.size(), 1U);
    const std::size_t number = static_cast<std::size_t>(&one - cases);
    EXPECT_EQ(model.networks[0].slots.size(), one.found ? 1U : 0U) << number;
    EXPECT_EQ(model.not_understood.size(), one.found ? 1U : 3U) << number;
  }
}

// An object-based checkpoint whose two nodes have one variable's name: one variable where the
// values are equal, else the second one is not understood.
TEST(TensorflowNetworks, OneVariableUnderTwoKeys) {
  const std::string attribute = "/.ATTRIBUTES/VARIABLE_VALUE";
  for (const bool equal : {true, false}) {
    const TempFolder folder;
    std::vector<NamedTensor> tensors;
    formats::ObjectGraph graph;
    graph.nodes.resize(1);
    const auto add = [&](const std::string& key, const std::string& name, const Shape& shape,
                         std::uint64_t seed) {
      tensors.push_back(tensor_of(key + attribute, shape, seed));
      graph.nodes[0].children.push_back({graph.nodes.size(), key});
      formats::ObjectNode node;
      node.attributes.push_back({std::string(formats::kValueAttribute), name, key + attribute});
      graph.nodes.push_back(node);
    };
    add("a", "rnn/lstm_cell/kernel", {5, 12}, 1);
    add("b", "rnn/lstm_cell/bias", {12}, 2);
    add("c", "rnn/lstm_cell/kernel", {5, 12}, equal ? 1 : 3);
    tensors.push_back({std::string(formats::kObjectGraphKey),
                       StringTensor{{}, {formats::encode_object_graph(graph)}}});
    write_tensor_bundle(folder / "ck", tensors);
    const MappedModel model = load_networks(folder / "ck");
    ASSERT_EQ(model.networks.size(), 1U);
    EXPECT_EQ(model.networks[0].tensors,
              (std::vector<std::string>{"a" + attribute, "b" + attribute}));
    EXPECT_EQ(model.not_understood,
              equal ? std::vector<std::string>() : std::vector<std::string>{"c" + attribute});
  }
}

// A bias of two rows is that of a GRU that resets after the product, as Keras has it.
TEST(TensorflowNetworks, KerasCells) {
  const TempFolder folder;
  write_tensor_bundle(
      folder / "ck", std::vector<NamedTensor>{tensor_of("gru/gru_cell/kernel", {2, 9}, 1),
                                              tensor_of("gru/gru_cell/recurrent_kernel", {3, 9}, 2),
                                              tensor_of("gru/gru_cell/bias", {2, 9}, 3)});
  const MappedNetwork network = load_networks(folder / "ck").networks.at(0);
  EXPECT_EQ(network.name, "gru");
  EXPECT_EQ(network.spec, (RnnSpec{.mode = RnnMode::kGru, .num_units = 3, .input_size = 2}));
  const CanonicalParams parts =
      params_to_canonical(ParamsLayout(network.spec), network.params.view());
  const Array kernel = values_of(DType::kFloat32, {2, 9}, 1);
  const Array bias = values_of(DType::kFloat32, {2, 9}, 3);
  // r is Keras's second block; [unit 2, input 1].
  EXPECT_EQ(parts.weights[0].as<float>()[2 * 2 + 1], kernel.as<float>()[9 + 3 + 2]);
  // The recurrent bias of z, its first one.
  EXPECT_EQ(parts.biases[4].as<float>()[1], bias.as<float>()[9 + 1]);
}

// The raw variable has both biases, which its cells have as sums.
TEST(TensorflowNetworks, OpaqueBuffers) {
  const TempFolder folder;
  const RnnSpec spec{
      .num_layers = 2, .num_units = 3, .input_size = 2, .direction = Direction::kBidirectional};
  const MappedNetwork network = network_of(spec);
  std::vector<NamedTensor> tensors = {{"m/cudnn_lstm/opaque_kernel", network.params}};
  const Array slot = values_of(DType::kFloat32, {params_size(spec)}, 8);
  tensors.push_back({"m/cudnn_lstm/opaque_kernel/Adam", slot});
  write_tensor_bundle(folder / "raw", tensors);
  const MappedModel unsaid = load_networks(folder / "raw");
  EXPECT_TRUE(unsaid.networks.empty());
  EXPECT_NE(unsaid.notes.at(0).find("expected the hint network"), std::string::npos);
  MappingHints hints;
  hints.network = spec;
  const MappedModel alone = load_networks(folder / "raw", hints);
  EXPECT_TRUE(same_bytes(alone.networks.at(0).params, network.params));
  EXPECT_TRUE(same_bytes(alone.networks.at(0).slots.at("Adam"), slot));
  hints.network->num_units = 4;
  EXPECT_THROW(load_networks(folder / "raw", hints), ArgumentError);

  const TfCanonicalFormat format(spec);
  const std::vector<Array> cells = format.from_opaque("test", network.params.view());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    tensors.push_back({"m/" + format.tensors()[i].name, cells[i]});
  }
  write_tensor_bundle(folder / "both", tensors);
  const MappedModel both = load_networks(folder / "both");
  ASSERT_EQ(both.networks.size(), 1U);
  EXPECT_EQ(both.networks[0].name, "m");
  EXPECT_TRUE(same_bytes(both.networks[0].params, network.params));
  EXPECT_TRUE(same_bytes(both.networks[0].slots.at("Adam"), slot));
  EXPECT_TRUE(both.not_understood.empty());

  tensors[0].value = values_of(DType::kFloat32, {params_size(spec)}, 9);
  write_tensor_bundle(folder / "differ", tensors);
  const MappedModel differ = load_networks(folder / "differ");
  EXPECT_EQ(differ.networks.at(0).tensors.size(), cells.size());
  EXPECT_NE(differ.notes.at(0).find("differs from the tensors of its cells"), std::string::npos);
}

}  // namespace
}  // namespace openrnn
