// The cells of TensorFlow's files by class, name and hint: which networks they are.
#include <gtest/gtest.h>

#include "base/message.h"
#include "formats/temp_folder.h"
#include "mapping/networks.h"
#include "openrnn/saveables.h"

namespace openrnn {
namespace {

using formats::TempFolder;
using Names = std::vector<std::string>;
using Tensors = std::vector<std::pair<std::string, Shape>>;

MappedModel loaded(const Tensors& tensors, const MappingHints& hints = {},
                   DType dtype = DType::kFloat32) {
  const TempFolder folder;
  std::vector<NamedTensor> named;
  for (const auto& [name, shape] : tensors) {
    const std::uint64_t seed = named.size() + 1;
    named.push_back({name, values_of(dtype, shape, seed)});
  }
  write_tensor_bundle(folder / "ck", named);
  return load_networks(folder / "ck", hints);
}

// Of 3 units on 2 inputs.
Tensors cell_at(const std::string& scope, std::int64_t gates = 4, std::int64_t inputs = 2) {
  return {{scope + "/bias", {3 * gates}}, {scope + "/kernel", {3 + inputs, 3 * gates}}};
}

Tensors joined(Tensors first, const Tensors& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Names network_names(const MappedModel& model) {
  Names names;
  for (const MappedNetwork& network : model.networks) names.push_back(network.name);
  return names;
}

const RnnSpec kPlain{.num_units = 3, .input_size = 2, .forget_bias = 1.0, .single_bias = true};

TEST(TfCells, Classes) {
  for (const char* name : {"basic_lstm_cell", "lstm_cell", "lstm_block_cell", "lstm_fused_cell",
                           "lstm_block_fused_cell", "layer_norm_basic_lstm_cell"}) {
    const MappedModel model = loaded(cell_at(message("a/rnn/", name)));
    ASSERT_EQ(network_names(model), Names{"a"}) << name;
    EXPECT_EQ(model.networks[0].spec, kPlain) << name << describe(model.networks[0].spec);
    EXPECT_EQ(model.notes, Names{message("forget_bias of the network 'a' is not in the file: ",
                                         "TensorFlow's default for a ", name, " is taken, 1")});
  }
  const MappedModel both = loaded(cell_at("rnn/cudnn_compatible_lstm_cell"));
  ASSERT_EQ(both.networks.size(), 1U);
  EXPECT_EQ(both.networks[0].spec, (RnnSpec{.num_units = 3, .input_size = 2}));
  EXPECT_TRUE(both.notes.empty());
  const MappedModel relu = loaded(cell_at("rnn/basic_rnn_cell", 1), {.mode = RnnMode::kRnnRelu});
  ASSERT_EQ(relu.networks.size(), 1U);
  EXPECT_EQ(
      relu.networks[0].spec,
      (RnnSpec{.mode = RnnMode::kRnnRelu, .num_units = 3, .input_size = 2, .single_bias = true}));
  EXPECT_TRUE(relu.notes.empty());
}

TEST(TfCells, NumbersBehindAClass) {
  for (const char* name : {"lstm_cell_0", "lstm_cell_1", "lstm_cell_10", "lstm_cell_23",
                           "lstm_cell_456", "lstm_cell_789"}) {
    EXPECT_EQ(loaded(cell_at(message("rnn/", name))).networks.size(), 1U) << name;
  }
  for (const char* name : {"lstm_cell_x", "lstm_cell_1x", "lstm_cell_", "lstm_cell1",
                           "my_lstm_cell", "lstm_cells", "gru_cell", "dense", "12"}) {
    const MappedModel model = loaded(cell_at(message("rnn/", name)));
    EXPECT_TRUE(model.networks.empty()) << name;
    EXPECT_TRUE(model.notes.empty()) << name;
    EXPECT_EQ(model.not_understood.size(), 2U) << name;
  }
}

// Each name of TensorFlow 1.0 and 1.1 by itself is that of the newer one.
TEST(TfCells, OldNamesOfTensors) {
  const std::string lstm = "rnn/lstm_cell/", gru = "rnn/gru_cell/";
  const Tensors projected{
      {lstm + "bias", {12}}, {lstm + "kernel", {4, 12}}, {lstm + "projection/kernel", {3, 2}}};
  const Tensors reset{{gru + "candidate/bias", {3}},
                      {gru + "candidate/kernel", {5, 3}},
                      {gru + "gates/bias", {6}},
                      {gru + "gates/kernel", {5, 6}}};
  for (const Tensors& given : {projected, reset}) {
    const MappedModel expected = loaded(given);
    ASSERT_EQ(expected.networks.size(), 1U);
    for (std::size_t i = 0; i < given.size(); ++i) {
      Tensors renamed = given;
      std::string& name = renamed[i].first;
      const std::size_t at = name.rfind('/') + 1;
      name.replace(at, name.npos, name.substr(at) == "bias" ? "biases" : "weights");
      const MappedModel found = loaded(renamed);
      ASSERT_EQ(found.networks.size(), 1U) << name;
      EXPECT_EQ(found.networks[0].spec, expected.networks[0].spec) << name;
      EXPECT_TRUE(same_bytes(found.networks[0].params, expected.networks[0].params)) << name;
      EXPECT_TRUE(found.not_understood.empty()) << name;
    }
  }
}

TEST(TfCells, LayerNormOfTheBasicCell) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32}) {
    const RnnSpec spec{.num_units = 3,
                       .input_size = 2,
                       .dtype = dtype,
                       .forget_bias = 1.0,
                       .single_bias = true,
                       .layer_norm = LayerNorm::kGates,
                       .layer_norm_cell = LayerNormCell::kCarried,
                       .layer_norm_epsilon = dtype == DType::kFloat16 ? 1e-3 : 1e-12};
    Tensors tensors;
    const TfCanonicalFormat format(spec);
    for (const TfTensor& tensor : format.tensors()) {
      tensors.emplace_back("rnn/layer_norm_basic_lstm_cell/" + tensor.suffix, tensor.shape);
    }
    EXPECT_EQ(tensors.size(), 11U);
    const MappedModel model = loaded(tensors, {}, dtype);
    ASSERT_EQ(model.networks.size(), 1U) << (model.notes.empty() ? "" : model.notes[0]);
    EXPECT_EQ(model.networks[0].spec, spec) << describe(model.networks[0].spec);
    EXPECT_EQ(model.networks[0].tensors.size(), 11U);
    tensors.pop_back();
    EXPECT_TRUE(loaded(tensors, {}, dtype).networks.empty());
  }
}

// Their tensors tell which GRU it is, whatever its scope is called.
TEST(TfCells, Grus) {
  const auto gru = [](const std::string& scope) {
    return Tensors{{scope + "/gates/kernel", {5, 6}},
                   {scope + "/gates/bias", {6}},
                   {scope + "/candidate/kernel", {5, 3}},
                   {scope + "/candidate/bias", {3}}};
  };
  const auto cudnn = [](const std::string& scope) {
    return Tensors{{scope + "/gates/kernel", {5, 6}},
                   {scope + "/gates/bias", {6}},
                   {scope + "/candidate/input_projection/kernel", {2, 3}},
                   {scope + "/candidate/input_projection/bias", {3}},
                   {scope + "/candidate/hidden_projection/kernel", {3, 3}},
                   {scope + "/candidate/hidden_projection/bias", {3}}};
  };
  for (const char* scope : {"rnn/gru_cell", "rnn/lstm_cell", "rnn/mine"}) {
    const MappedModel before = loaded(gru(scope)), after = loaded(cudnn(scope));
    ASSERT_EQ(before.networks.size(), 1U) << scope;
    EXPECT_EQ(before.networks[0].spec, (RnnSpec{.mode = RnnMode::kGru,
                                                .num_units = 3,
                                                .input_size = 2,
                                                .reset_after = false,
                                                .single_bias = true}));
    ASSERT_EQ(after.networks.size(), 1U) << scope;
    EXPECT_EQ(after.networks[0].spec,
              (RnnSpec{.mode = RnnMode::kGru, .num_units = 3, .input_size = 2}));
  }
  const MappedModel half = loaded({{"rnn/gru_cell/gates/kernel", {5, 6}}});
  EXPECT_TRUE(half.networks.empty());
  EXPECT_TRUE(half.notes.empty());
  EXPECT_EQ(half.not_understood, Names{"rnn/gru_cell/gates/kernel"});
}

// The network that Keras's cell at this scope is.
MappedModel keras_cell(const std::string& scope, std::int64_t gates, const Shape& bias = {},
                       const MappingHints& hints = {}) {
  Tensors tensors{{scope + "/kernel", {2, 3 * gates}},
                  {scope + "/recurrent_kernel", {3, 3 * gates}}};
  if (!bias.empty()) tensors.emplace_back(scope + "/bias", bias);
  return loaded(tensors, hints);
}

TEST(TfCells, HintsForKerasCells) {
  const CellActivation softsign = make_cell_activation(CellActivationKind::kSoftsign);
  for (const std::int64_t gates : {4, 3}) {
    const RnnSpec spec = keras_cell("lstm", gates, {3 * gates}, {.recurrent_activation = softsign})
                             .networks.at(0)
                             .spec;
    EXPECT_EQ(spec.recurrent_activation, softsign);
    EXPECT_FALSE(spec.activation);
    EXPECT_TRUE(spec.single_bias);
  }
  const RnnSpec plain =
      keras_cell("rnn", 1, {3}, {.mode = RnnMode::kRnnTanh, .recurrent_activation = softsign})
          .networks.at(0)
          .spec;
  EXPECT_EQ(
      plain,
      (RnnSpec{.mode = RnnMode::kRnnTanh, .num_units = 3, .input_size = 2, .single_bias = true}));
  for (const bool after : {false, true}) {
    EXPECT_EQ(keras_cell("gru", 3, {}, {.reset_after = after}).networks.at(0).spec,
              (RnnSpec{.mode = RnnMode::kGru,
                       .num_units = 3,
                       .input_size = 2,
                       .reset_after = after,
                       .use_bias = false}));
    // The form of a bias tells it.
    const Shape bias = after ? Shape{2, 9} : Shape{9};
    const RnnSpec told = keras_cell("gru", 3, bias, {.reset_after = !after}).networks.at(0).spec;
    EXPECT_EQ(told.reset_after, after);
    EXPECT_EQ(told.single_bias, !after);
  }
}

TEST(TfCells, NamesOfKerasLayers) {
  for (const auto& [scope, name] :
       std::vector<std::pair<std::string, std::string>>{{"m/lstm/lstm_cell", "m/lstm"},
                                                        {"m/lstm/lstm_cell_3", "m/lstm"},
                                                        {"m/lstm", "m/lstm"},
                                                        {"lstm_cell", "lstm_cell"},
                                                        {"forward_lstm", "forward_lstm"}}) {
    const MappedModel model = keras_cell(scope, 4, {12});
    EXPECT_EQ(network_names(model), Names{name}) << scope;
    EXPECT_EQ(model.networks.at(0).spec.direction, Direction::kUnidirectional);
  }
  const auto both = [](const std::string& cell) {
    Tensors tensors;
    for (const char* way : {"m/both/backward_lstm", "m/both/forward_lstm"}) {
      tensors.emplace_back(way + cell + "/kernel", Shape{2, 12});
      tensors.emplace_back(way + cell + "/recurrent_kernel", Shape{3, 12});
    }
    return loaded(tensors);
  };
  for (const char* cell : {"", "/lstm_cell", "/lstm_cell_1"}) {
    const MappedModel model = both(cell);
    ASSERT_EQ(network_names(model), Names{"m/both"}) << cell;
    const MappedNetwork& network = model.networks[0];
    EXPECT_EQ(network.spec.direction, Direction::kBidirectional);
    EXPECT_EQ(network.tensors.at(0), message("m/both/forward_lstm", cell, "/kernel"));
    EXPECT_EQ(network.tensors.at(2), message("m/both/backward_lstm", cell, "/kernel"));
  }
  const MappedModel half = keras_cell("m/both/backward_lstm/lstm_cell", 4, {12});
  EXPECT_EQ(network_names(half), Names{"m/both/backward_lstm/lstm_cell"});
  EXPECT_EQ(half.notes, Names{"the 1 cells at 'm/both' do not make one network: each is one of its "
                              "own"});
}

TEST(TfCells, StacksThatAreNone) {
  const auto at = [](int layer, const std::string& rest = "lstm_cell") {
    return message("a/rnn/multi_rnn_cell/cell_", layer, "/", rest);
  };
  const Tensors first = cell_at(at(0)), second = cell_at(at(1), 4, 3);
  EXPECT_EQ(network_names(loaded(joined(first, second))), Names{"a"});
  const Tensors with_peepholes = joined(
      second, {{at(1) + "/w_f_diag", {3}}, {at(1) + "/w_i_diag", {3}}, {at(1) + "/w_o_diag", {3}}});
  const Tensors others[] = {cell_at(at(1), 4, 4),  // inputs
                            cell_at(at(2), 4, 3),  // a layer is missing
                            cell_at(at(1, "cudnn_compatible_lstm_cell"), 4, 3), with_peepholes};
  for (const Tensors& other : others) {
    const MappedModel model = loaded(joined(first, other), {.forget_bias = 1.0});
    EXPECT_EQ(model.networks.size(), 2U) << other[0].first;
    EXPECT_EQ(model.notes, Names{"the 2 cells at 'a' do not make one network: each is one of its "
                                 "own"})
        << other[0].first;
    EXPECT_EQ(model.networks.at(0).name, at(0));
    EXPECT_EQ(model.networks.at(0).spec.num_layers, 1);
    EXPECT_EQ(model.networks.at(1).spec.num_layers, 1);
  }
}

// The old name beside the new one is a tensor of no network.
TEST(TfCells, TwoNamesOfOneTensor) {
  const MappedModel twice =
      loaded(joined(cell_at("rnn/lstm_cell"), {{"rnn/lstm_cell/weights", {5, 12}}}));
  ASSERT_EQ(twice.networks.size(), 1U);
  EXPECT_EQ(twice.networks[0].tensors, (Names{"rnn/lstm_cell/kernel", "rnn/lstm_cell/bias"}));
  EXPECT_EQ(twice.not_understood, Names{"rnn/lstm_cell/weights"});
}

}  // namespace
}  // namespace openrnn
