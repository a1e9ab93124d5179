// What a checkpoint of TensorFlow's cells holds: every variable by name and shape, in each form of
// a network; and what hints change of each class of cells.
#include <gtest/gtest.h>

#include "base/message.h"
#include "formats/temp_folder.h"
#include "mapping/networks.h"
#include "openrnn/saveables.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

using formats::TempFolder;
using Names = std::vector<std::string>;

MappedModel model_of(MappedNetwork network) {
  MappedModel model;
  model.networks.push_back(std::move(network));
  return model;
}

// Of 3 units on 2 inputs.
RnnSpec spec_of(RnnMode mode, std::int64_t layers = 1) {
  return {.mode = mode, .num_layers = layers, .num_units = 3, .input_size = 2};
}

Names variables_of(const RnnSpec& spec, const std::string& name = "n") {
  const TempFolder folder;
  save_networks(folder / "ck", model_of(network_of(spec, name)), ModelFormat::kTensorflow);
  Names names;
  const ModelFile file(folder / "ck");
  for (const TensorInfo& info : file.tensors()) {
    EXPECT_EQ(info.dtype, dtype_name(spec.dtype));
    names.push_back(info.name + " " + to_string(info.shape));
  }
  return names;
}

const std::string kFirstAlone = "rnn/multi_rnn_cell/cell_0/", kFirst = "n/" + kFirstAlone;

TEST(TfWritten, VariablesOfEachCell) {
  RnnSpec lstm = spec_of(RnnMode::kLstm);
  EXPECT_EQ(variables_of(lstm), (Names{kFirst + "cudnn_compatible_lstm_cell/bias [12]",
                                       kFirst + "cudnn_compatible_lstm_cell/kernel [5, 12]"}));
  EXPECT_EQ(variables_of(lstm, ""),
            (Names{kFirstAlone + "cudnn_compatible_lstm_cell/bias [12]",
                   kFirstAlone + "cudnn_compatible_lstm_cell/kernel [5, 12]"}));
  lstm.use_bias = false;
  EXPECT_EQ(variables_of(lstm), (Names{kFirst + "cudnn_compatible_lstm_cell/bias [12]",
                                       kFirst + "cudnn_compatible_lstm_cell/kernel [5, 12]"}));
  lstm = spec_of(RnnMode::kLstm);
  lstm.forget_bias = 1.0;
  lstm.num_proj = 1;
  lstm.use_peepholes = true;
  EXPECT_EQ(variables_of(lstm),
            (Names{kFirst + "lstm_cell/bias [12]", kFirst + "lstm_cell/kernel [3, 12]",
                   kFirst + "lstm_cell/projection/kernel [3, 1]", kFirst + "lstm_cell/w_f_diag [3]",
                   kFirst + "lstm_cell/w_i_diag [3]", kFirst + "lstm_cell/w_o_diag [3]"}));
  const std::string gru = kFirst + "cudnn_compatible_gru_cell/";
  EXPECT_EQ(variables_of(spec_of(RnnMode::kGru)),
            (Names{gru + "candidate/hidden_projection/bias [3]",
                   gru + "candidate/hidden_projection/kernel [3, 3]",
                   gru + "candidate/input_projection/bias [3]",
                   gru + "candidate/input_projection/kernel [2, 3]", gru + "gates/bias [6]",
                   gru + "gates/kernel [5, 6]"}));
  RnnSpec before = spec_of(RnnMode::kGru);
  before.reset_after = false;
  for (const bool single : {true, false}) {
    before.single_bias = single;
    EXPECT_EQ(
        variables_of(before),
        (Names{kFirst + "gru_cell/candidate/bias [3]", kFirst + "gru_cell/candidate/kernel [5, 3]",
               kFirst + "gru_cell/gates/bias [6]", kFirst + "gru_cell/gates/kernel [5, 6]"}));
  }
  for (const RnnMode mode : {RnnMode::kRnnTanh, RnnMode::kRnnRelu}) {
    EXPECT_EQ(variables_of(spec_of(mode)),
              (Names{kFirst + "basic_rnn_cell/bias [3]", kFirst + "basic_rnn_cell/kernel [5, 3]"}));
  }
}

TEST(TfWritten, ScopesOfLayersAndDirections) {
  RnnSpec spec = spec_of(RnnMode::kRnnTanh, 2);
  const std::string cell = "basic_rnn_cell/";
  const std::string stack = "n/rnn/multi_rnn_cell/";
  EXPECT_EQ(
      variables_of(spec),
      (Names{stack + "cell_0/" + cell + "bias [3]", stack + "cell_0/" + cell + "kernel [5, 3]",
             stack + "cell_1/" + cell + "bias [3]", stack + "cell_1/" + cell + "kernel [6, 3]"}));
  spec.direction = Direction::kBidirectional;
  Names expected;
  for (const char* layer : {"cell_0", "cell_1"}) {
    for (const char* way : {"bw", "fw"}) {
      const std::string at =
          message("n/stack_bidirectional_rnn/", layer, "/bidirectional_rnn/", way, "/", cell);
      expected.push_back(at + "bias [3]");
      expected.push_back(at + (layer == std::string("cell_0") ? "kernel [5, 3]" : "kernel [9, 3]"));
    }
  }
  EXPECT_EQ(variables_of(spec), expected);
}

// Two biases are one sum, in the dtype of the network; slots have those of the first.
TEST(TfWritten, TwoBiasesOfAGruThatResetsBefore) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    RnnSpec two = spec_of(RnnMode::kGru), one = two;
    two.dtype = one.dtype = dtype;
    two.reset_after = one.reset_after = false;
    one.single_bias = true;
    const MappedNetwork given = network_of(two, "n");
    const TempFolder folder;
    MappedModel model = model_of(given);
    for (const char* slot : {"Adam", "Adam_1"}) {
      model.networks[0].slots.emplace(slot, values_of(DType::kFloat32, given.params.shape(), 7));
    }
    save_networks(folder / "ck", model, ModelFormat::kTensorflow);
    const MappedNetwork found = load_networks(folder / "ck").networks.at(0);
    EXPECT_EQ(found.spec, one) << describe(found.spec);
    EXPECT_EQ(found.slots.size(), 2U);
    const ParamsLayout from(two), to(one);
    const auto at = [&](const Array& array, const ParamsLayout& layout, ParamRole role,
                        std::int64_t gate, std::int64_t i) {
      return element(array.view(), layout.bias(0, 0, role, gate).offset + i);
    };
    for (std::int64_t gate = 0; gate < 3; ++gate) {
      for (std::int64_t i = 0; i < 3; ++i) {
        const double sum = at(given.params, from, ParamRole::kInputBias, gate, i) +
                           at(given.params, from, ParamRole::kRecurrentBias, gate, i);
        const Array rounded = cast(Array::of<double>({1}, std::vector<double>{sum}).view(), dtype);
        EXPECT_EQ(at(found.params, to, ParamRole::kInputBias, gate, i), element(rounded.view(), 0));
        EXPECT_EQ(at(found.slots.at("Adam"), to, ParamRole::kInputBias, gate, i),
                  at(model.networks[0].slots.at("Adam"), from, ParamRole::kInputBias, gate, i));
      }
    }
  }
}

// One bias a gate is written as it is, to the sign of a zero: nothing is added to it.
TEST(TfWritten, OneBiasStaysToTheBit) {
  RnnSpec gru = spec_of(RnnMode::kGru), lstm = spec_of(RnnMode::kLstm);
  gru.reset_after = false;
  lstm.forget_bias = 1.0;
  for (RnnSpec spec : {gru, lstm}) {
    spec.single_bias = true;
    MappedNetwork network = network_of(spec, "n");
    for (float& value : network.params.as<float>()) value = value < 0.0F ? -0.0F : value;
    const TempFolder folder;
    save_networks(folder / "ck", model_of(network), ModelFormat::kTensorflow);
    const MappedNetwork found = load_networks(folder / "ck").networks.at(0);
    EXPECT_EQ(found.spec, spec) << describe(found.spec);
    EXPECT_TRUE(same_bytes(found.params, network.params)) << describe(spec);
  }
}

TEST(TfWritten, SlotsAndValues) {
  MappedModel model = model_of(network_of(spec_of(RnnMode::kLstm), "n"));
  const Shape shape = model.networks[0].params.shape();
  model.networks[0].slots.emplace("Adam", values_of(DType::kFloat32, shape, 7));
  model.values = {{"text", std::string("a")},
                  {"whole", std::int64_t{-3}},
                  {"real", 0.5},
                  {"flag", true},
                  {"none", {}},
                  {"list", std::vector<std::int64_t>{1, 2}}};
  const TempFolder folder;
  save_networks(folder / "ck.index", model, ModelFormat::kTensorflow);
  const ModelFile file(folder / "ck");
  Names names;
  for (const TensorInfo& info : file.tensors()) {
    names.push_back(message(info.name, " ", info.dtype, " ", to_string(info.shape)));
  }
  const std::string cell = kFirst + "cudnn_compatible_lstm_cell/";
  EXPECT_EQ(names,
            (Names{"flag bool []", cell + "bias float32 [12]", cell + "bias/Adam float32 [12]",
                   cell + "kernel float32 [5, 12]", cell + "kernel/Adam float32 [5, 12]",
                   "real float64 []", "text string []", "whole int64 []"}));
  EXPECT_EQ(file.read("whole").as<std::int64_t>()[0], -3);
  EXPECT_EQ(file.read("real").as<double>()[0], 0.5);
  EXPECT_EQ(file.read_bytes("text"), "a");
}

// ---- Hints -------------------------------------------------------------------------------------

struct ClassCase {
  const char* cell;
  std::vector<std::pair<const char*, Shape>> tensors;
  RnnSpec expected;
  /// The default of its class, which the file does not say.
  double forget_bias = 0.0;
};

std::vector<ClassCase> all_classes() {
  const std::vector<std::pair<const char*, Shape>> of_lstm{{"bias", {12}}, {"kernel", {5, 12}}};
  const RnnSpec plain = spec_of(RnnMode::kLstm);
  RnnSpec one = plain, before = spec_of(RnnMode::kGru), relu = spec_of(RnnMode::kRnnRelu);
  one.single_bias = before.single_bias = relu.single_bias = true;
  before.reset_after = false;
  std::vector<ClassCase> cases;
  for (const char* cell : {"basic_lstm_cell", "lstm_cell", "lstm_block_cell", "lstm_fused_cell",
                           "lstm_block_fused_cell", "layer_norm_basic_lstm_cell"}) {
    cases.push_back({cell, of_lstm, one, 1.0});
  }
  cases.push_back({"cudnn_compatible_lstm_cell", of_lstm, plain});
  cases.push_back({"basic_rnn_cell", {{"bias", {3}}, {"kernel", {5, 3}}}, relu});
  cases.push_back({"gru_cell",
                   {{"gates/kernel", {5, 6}},
                    {"gates/bias", {6}},
                    {"candidate/kernel", {5, 3}},
                    {"candidate/bias", {3}}},
                   before});
  cases.push_back({"cudnn_compatible_gru_cell",
                   {{"gates/kernel", {5, 6}},
                    {"gates/bias", {6}},
                    {"candidate/input_projection/kernel", {2, 3}},
                    {"candidate/input_projection/bias", {3}},
                    {"candidate/hidden_projection/kernel", {3, 3}},
                    {"candidate/hidden_projection/bias", {3}}},
                   spec_of(RnnMode::kGru)});
  return cases;
}

MappedModel loaded(const ClassCase& one, const MappingHints& hints) {
  std::vector<NamedTensor> named;
  for (const auto& [suffix, shape] : one.tensors) {
    named.push_back({message("a/rnn/", one.cell, "/", suffix),
                     values_of(DType::kFloat32, shape, named.size() + 1)});
  }
  const TempFolder folder;
  write_tensor_bundle(folder / "ck", named);
  return load_networks(folder / "ck", hints);
}

// Each hint changes the cells that ask for it, and no others.
TEST(TfWritten, HintsForEachClass) {
  for (const ClassCase& one : all_classes()) {
    for (const std::optional<double> forget_bias :
         {std::optional<double>(), std::optional(2.0), std::optional(0.0)}) {
      MappingHints hints{.mode = RnnMode::kRnnRelu};
      hints.forget_bias = forget_bias;
      hints.reset_after = !one.expected.reset_after;
      hints.recurrent_activation = make_cell_activation(CellActivationKind::kRelu);
      RnnSpec expected = one.expected;
      expected.forget_bias = one.forget_bias != 0.0 ? forget_bias.value_or(one.forget_bias) : 0.0;
      const MappedModel model = loaded(one, hints);
      ASSERT_EQ(model.networks.size(), 1U) << one.cell;
      EXPECT_EQ(model.networks[0].spec, expected) << one.cell << describe(model.networks[0].spec);
      const bool noted = one.forget_bias != 0.0 && !forget_bias;
      EXPECT_EQ(model.notes,
                noted ? Names{message("forget_bias of the network 'a' is not in the file: ",
                                      "TensorFlow's default for a ", one.cell, " is taken, 1")}
                      : Names())
          << one.cell;
    }
  }
}

// Names that are those of cells but for a part.
TEST(TfWritten, NamesThatAreLikeThoseOfCells) {
  const TempFolder folder;
  const auto load = [&](const std::string& kernel, const std::string& bias) {
    write_tensor_bundle(folder / "ck",
                        std::vector<NamedTensor>{{kernel, values_of(DType::kFloat32, {5, 12}, 1)},
                                                 {bias, values_of(DType::kFloat32, {12}, 2)}});
    return load_networks(folder / "ck");
  };
  for (const char* scope : {"rnn/lstm_cell_", "rnn/lstm_cell/my_", "rnn/lstm_cell"}) {
    const MappedModel none = load(message(scope, "kernel"), message(scope, "bias"));
    EXPECT_TRUE(none.networks.empty()) << scope;
    EXPECT_EQ(none.not_understood, (Names{message(scope, "bias"), message(scope, "kernel")}));
  }
  const auto place_of = [&](const std::string& scope) {
    const MappedModel found = load(scope + "/lstm_cell/kernel", scope + "/lstm_cell/bias");
    EXPECT_EQ(found.networks.size(), 1U) << scope;
    const MappedNetwork& network = found.networks.at(0);
    EXPECT_EQ(network.spec.direction, Direction::kUnidirectional) << scope;
    return network.name;
  };
  const std::pair<const char*, const char*> places[] = {
      {"a/bidirectional_rnn/up", "a/bidirectional_rnn/up"},
      {"a/bidirectional_rnns/fw", "a/bidirectional_rnns/fw"},
      {"a/rnn/multi_rnn_cell/cell_0", "a"},
      {"a/multi_rnn_cell/cell_0", "a"},
      {"a/rnn/multi_rnn_cells/cell_0", "a/rnn/multi_rnn_cells/cell_0"},
      {"a/rnn/multi_rnn_cell/cell_x", "a/rnn/multi_rnn_cell/cell_x"},
      {"a/rnn/multi_rnn_cell/cell_", "a/rnn/multi_rnn_cell/cell_"},
      {"a/rnn/multi_rnn_cell/cell_-1", "a/rnn/multi_rnn_cell/cell_-1"},
      {"a/rnn/multi_rnn_cell/cell_0x", "a/rnn/multi_rnn_cell/cell_0x"},
      {"a/rnn/multi_rnn_cell/cell_00000", "a/rnn/multi_rnn_cell/cell_00000"},
      {"a/rnn/rnn", "a/rnn"},
      {"a/myrnn", "a/myrnn"}};
  for (const auto& [scope, name] : places) EXPECT_EQ(place_of(scope), name) << scope;
}

// A plain network is one of two: a hint of another mode is none for it.
TEST(TfWritten, HintsThatAPlainNetworkDoesNotTake) {
  const TempFolder folder;
  const std::pair<const char*, std::vector<std::pair<const char*, Shape>>> scopes[] = {
      {"a/rnn/basic_rnn_cell", {{"kernel", {5, 3}}, {"bias", {3}}}},
      {"a", {{"kernel", {2, 3}}, {"recurrent_kernel", {3, 3}}}}};
  for (const auto& [scope, tensors] : scopes) {
    std::vector<NamedTensor> named;
    for (const auto& [suffix, shape] : tensors) {
      named.push_back({message(scope, "/", suffix), values_of(DType::kFloat32, shape, 1)});
    }
    write_tensor_bundle(folder / "ck", named);
    const auto load = [&](std::optional<RnnMode> mode) {
      return load_networks(folder / "ck", {.mode = mode});
    };
    for (const std::optional<RnnMode> mode :
         {std::optional<RnnMode>(), std::optional(RnnMode::kLstm), std::optional(RnnMode::kGru)}) {
      expect_error<ArgumentError>(
          [&] { load(mode); },
          message("[load_networks] the network '", scope, "' in ", folder / "ck",
                  " is a plain one, of which TensorFlow's files do not say tanh or relu, expected ",
                  "the hint mode: rnn_tanh or rnn_relu"));
    }
    for (const RnnMode mode : {RnnMode::kRnnTanh, RnnMode::kRnnRelu}) {
      EXPECT_EQ(load(mode).networks.at(0).spec.mode, mode);
    }
  }
}

}  // namespace
}  // namespace openrnn
