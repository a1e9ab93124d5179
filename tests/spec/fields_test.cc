// The table of fields, and that it has every member of an RnnSpec.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "openrnn/spec_fields.h"
#include "support/expect_error.h"
#include "support/files/source_file.h"

namespace openrnn {
namespace {

// A value of each field that is not its default.
const std::vector<std::pair<std::string, FieldValue>>& others() {
  static const std::vector<std::pair<std::string, FieldValue>> values{
      {"rnn_mode", "gru"},
      {"num_layers", std::int64_t{2}},
      {"num_units", std::int64_t{6}},
      {"input_size", std::int64_t{5}},
      {"input_mode", "auto_select"},
      {"direction", "bidirectional"},
      {"dropout", 0.25},
      {"seed", std::int64_t{-3}},
      {"dtype", "float64"},
      {"num_proj", std::int64_t{4}},
      {"cell_clip", std::array{-0.5, 1.5}},
      {"forget_bias", 1.0},
      {"reset_after", false},
      {"activation", "leaky_relu(0.25)"},
      {"recurrent_activation", "hard_sigmoid(0.1875, 0.5)"},
      {"output_activation", "softsign"},
      {"use_peepholes", true},
      {"coupled_gates", true},
      {"proj_clip", std::array{-2.0, 3.0}},
      {"gate_clip", std::array{-4.0, 5.0}},
      {"use_bias", false},
      {"single_bias", true},
      {"layer_norm", "gates"},
      {"layer_norm_cell", "carried"},
      {"layer_norm_epsilon", 0.125},
      {"zoneout", 0.0625},
      {"zoneout_cell", 0.25},
      {"input_dropout", 0.125},
      {"output_dropout", 0.375},
      {"drop_connect", 0.5},
      {"recurrent_dropout", 0.75},
      {"recurrent_dropout_form", "candidate"},
      {"math", "bf16x3"},
      {"weights_dtype", "int8"}};
  return values;
}

TEST(Fields, EachIsSetAndGot) {
  ASSERT_EQ(rnn_fields().size(), others().size());
  for (std::size_t i = 0; i < others().size(); ++i) {
    const auto& [name, value] = others()[i];
    const RnnField& field = rnn_fields()[i];
    ASSERT_EQ(field.name, name);
    EXPECT_EQ(&rnn_field(name), &field);
    RnnSpec spec;
    EXPECT_EQ(field.stands_in(spec), field.always) << name;
    field.put(spec, value);
    EXPECT_EQ(field.get(spec), value) << name;
    EXPECT_TRUE(field.stands_in(spec)) << name;
    EXPECT_NE(spec, RnnSpec{}) << name;
    field.put(spec, field.default_value());
    EXPECT_EQ(spec, RnnSpec{}) << name;
  }
}

TEST(Fields, AreTheMembers) {
  RnnSpec spec;
  for (const auto& [name, value] : others()) rnn_field(name).put(spec, value);
  const RnnSpec wanted{.mode = RnnMode::kGru,
                       .num_layers = 2,
                       .num_units = 6,
                       .input_size = 5,
                       .input_mode = InputMode::kAutoSelect,
                       .direction = Direction::kBidirectional,
                       .dtype = DType::kFloat64,
                       .num_proj = 4,
                       .cell_clip = {{-0.5, 1.5}},
                       .forget_bias = 1.0,
                       .reset_after = false,
                       .activation = {{CellActivationKind::kLeakyRelu, 0.25}},
                       .recurrent_activation = {{CellActivationKind::kHardSigmoid, 0.1875, 0.5}},
                       .output_activation = {{CellActivationKind::kSoftsign}},
                       .use_peepholes = true,
                       .coupled_gates = true,
                       .proj_clip = {{-2.0, 3.0}},
                       .gate_clip = {{-4.0, 5.0}},
                       .use_bias = false,
                       .single_bias = true,
                       .layer_norm = LayerNorm::kGates,
                       .layer_norm_cell = LayerNormCell::kCarried,
                       .layer_norm_epsilon = 0.125,
                       .zoneout = 0.0625,
                       .zoneout_cell = 0.25,
                       .training = {.dropout = 0.25,
                                    .seed = -3,
                                    .input_dropout = 0.125,
                                    .output_dropout = 0.375,
                                    .drop_connect = 0.5,
                                    .recurrent_dropout = 0.75,
                                    .recurrent_dropout_form = RecurrentDropoutForm::kCandidate},
                       .compute = {.math = Math::kBf16x3, .weights_dtype = WeightsDType::kInt8}};
  EXPECT_EQ(spec, wanted);
}

// Fits any member, so that as many of them as there are members make a T and one more does not.
struct Anything {
  template <class T>
  operator T() const;  // NOLINT: it converts
};
template <class T, class... Members>
constexpr std::size_t members() {
  if constexpr (requires { T{Members{}..., Anything{}}; }) {
    return members<T, Members..., Anything>();
  } else {
    return sizeof...(Members);
  }
}
// A member without a row would be missing in files, bindings and messages: all but `device`, and
// the two structs themselves.
static_assert(members<TrainingOptions>() == 7);
static_assert(members<ComputeOptions>() == 3);

TEST(Fields, NoneIsForgotten) {
  EXPECT_EQ(rnn_fields().size(),
            members<RnnSpec>() - 2 + members<TrainingOptions>() + members<ComputeOptions>() - 1);
}

TEST(Fields, RefuseWhatDoesNotFit) {
  RnnSpec spec;
  const auto refused = [&](const char* name, const FieldValue& value, const std::string& text) {
    expect_error<ArgumentError>([&] { rnn_field(name).put(spec, value); }, text);
    EXPECT_EQ(spec, RnnSpec{}) << name;
  };
  refused("num_units", "many", "[RnnSpec] num_units is many, expected a whole number");
  refused("num_units", 2.5, "[RnnSpec] num_units is 2.5, expected a whole number");
  refused("num_units", {}, "[RnnSpec] num_units is None, expected a whole number");
  refused("dropout", true, "[RnnSpec] dropout is true, expected a number");
  refused("direction", std::int64_t{1}, "[RnnSpec] direction is 1, expected a word");
  refused("direction", "both",
          "[direction] direction is 'both', expected one of 'unidirectional', 'bidirectional'");
  for (const auto& [name, words] : std::initializer_list<std::pair<const char*, const char*>>{
           {"layer_norm", "'none', 'products', 'split_products', 'gates'"},
           {"layer_norm_cell", "'none', 'output', 'carried'"},
           {"recurrent_dropout_form", "'state', 'candidate'"}}) {
    refused(name, "some",
            "[" + std::string(name) + "] " + name + " is 'some', expected one of " + words);
  }
  refused("use_bias", std::int64_t{1}, "[RnnSpec] use_bias is 1, expected true or false");
  refused("dropout", std::array{0.25, 0.5}, "[RnnSpec] dropout is [0.25, 0.5], expected a number");
  refused("dtype", 1.0, "[RnnSpec] dtype is 1, expected the name of a dtype");
  refused("cell_clip", "3",
          "[RnnSpec] cell_clip is 3, expected two numbers, or one for both sides of 0");
  refused("activation", 3.0, "[RnnSpec] activation is 3, expected the name of an activation");
  expect_error<ArgumentError>(
      [] { rnn_field("units"); },
      "[RnnSpec] 'units' is no field, expected one of rnn_mode, num_layers, num_units, input_size, "
      "input_mode, direction, dropout, seed, dtype, num_proj, cell_clip, forget_bias, "
      "reset_after, activation, recurrent_activation, output_activation, use_peepholes, "
      "coupled_gates, proj_clip, gate_clip, use_bias, single_bias, layer_norm, layer_norm_cell, "
      "layer_norm_epsilon, zoneout, zoneout_cell, input_dropout, output_dropout, drop_connect, "
      "recurrent_dropout, recurrent_dropout_form, math, weights_dtype");
}

TEST(Fields, OneNumberIsAClipOnBothSides) {
  RnnSpec spec;
  rnn_field("cell_clip").put(spec, 3.0);
  EXPECT_EQ(spec.cell_clip, (std::array{-3.0, 3.0}));
  rnn_field("gate_clip").put(spec, std::int64_t{2});
  EXPECT_EQ(spec.gate_clip, (std::array{-2.0, 2.0}));
}

TEST(Fields, AWholeNumberIsANumber) {
  RnnSpec spec;
  rnn_field("dropout").put(spec, std::int64_t{1});
  EXPECT_EQ(spec.training.dropout, 1.0);
}

TEST(Fields, WhatIsOffIsNone) {
  RnnSpec spec{.num_proj = 3, .compute = {.weights_dtype = WeightsDType::kInt8}};
  for (const char* name : {"num_proj", "weights_dtype", "cell_clip", "seed", "layer_norm"}) {
    EXPECT_EQ(to_string(rnn_field(name).default_value()), "None") << name;
    rnn_field(name).put(spec, {});
  }
  EXPECT_EQ(spec, RnnSpec{});
}

TEST(Fields, AreInADescriptionWhereTheyAreSet) {
  RnnSpec spec{.num_units = 2, .input_size = 1};
  const std::string plain = describe(spec);
  spec.cell_clip = {{-1.0, 1.0}};
  EXPECT_EQ(describe(spec), plain + ", cell_clip [-1, 1]");
}

// What a step has beyond cuDNN's, which projects an LSTM and no other cell.
TEST(Fields, AreOptionsOfAStepWhereTheyChangeIt) {
  RnnSpec spec{.num_units = 3, .input_size = 1, .num_proj = 2};
  spec.training = {.dropout = 0.5, .input_dropout = 0.5};
  EXPECT_EQ(step_options(spec), "");
  spec.use_peepholes = true;
  spec.training.recurrent_dropout = 0.25;
  EXPECT_EQ(step_options(spec), "use_peepholes true, recurrent_dropout 0.25");
  spec.training.recurrent_dropout_form = RecurrentDropoutForm::kCandidate;
  EXPECT_EQ(step_options(spec),
            "use_peepholes true, recurrent_dropout 0.25, recurrent_dropout_form candidate");
  spec = {.mode = RnnMode::kGru, .num_units = 3, .input_size = 1, .num_proj = 2};
  EXPECT_EQ(step_options(spec), "num_proj 2");
  spec.mode = RnnMode::kRnnTanh;
  EXPECT_EQ(step_options(spec), "num_proj 2");
  spec.mode = RnnMode::kGru;
  spec.num_proj = 3;  // as wide as the units: off
  EXPECT_EQ(step_options(spec), "");
}

// The kernels of cuDNN's four cells would leave out any other option, without a word.
TEST(Fields, AnyOtherOptionTakesAwayCudnnsStep) {
  const std::set<std::string> outside{
      "rnn_mode",
      "num_layers",
      "num_units",
      "input_size",
      "input_mode",
      "direction",
      "dropout",
      "seed",
      "dtype",
      "num_proj",
      "cell_clip",
      "forget_bias",
      "proj_clip",
      "use_bias",
      "single_bias",
      "input_dropout",
      "output_dropout",
      "drop_connect",
      "math",
      "weights_dtype",
      "recurrent_dropout_form"};  // of recurrent_dropout, which counts
  for (const auto& [name, value] : others()) {
    RnnSpec spec{.num_units = 6, .input_size = 5};
    rnn_field(name).put(spec, value);
    EXPECT_EQ(spec.has_cudnn_step(), outside.contains(name)) << name;
  }
  const RnnSpec gru{.mode = RnnMode::kGru, .num_units = 6, .input_size = 5, .num_proj = 4};
  EXPECT_FALSE(gru.has_cudnn_step());
  const RnnSpec relu{.num_units = 6, .input_size = 5, .activation = {{CellActivationKind::kRelu}}};
  EXPECT_FALSE(relu.has_cudnn_step());
  RnnSpec plain = relu;
  plain.mode = RnnMode::kRnnTanh;
  EXPECT_TRUE(plain.has_cudnn_step());
}

// Which rates draw masks, and where.
TEST(Fields, RatesThatDrawMasks) {
  struct Asked {
    bool masks, around, state, candidate, zones;
    bool operator==(const Asked&) const = default;
  };
  const auto asked = [](const RnnSpec& spec) {
    const TrainingOptions& training = spec.training;
    return Asked{spec.draws_masks(), training.drops_around(), training.drops_state(),
                 training.drops_candidate(), spec.zones_out()};
  };
  const std::pair<const char*, Asked> rates[] = {
      {"dropout", {true, false, false, false, false}},
      {"input_dropout", {true, true, false, false, false}},
      {"output_dropout", {true, true, false, false, false}},
      {"drop_connect", {true, true, false, false, false}},
      {"recurrent_dropout", {true, false, true, false, false}},
      {"zoneout", {true, false, false, false, true}},
      {"zoneout_cell", {true, false, false, false, true}}};
  EXPECT_EQ(asked({}), Asked{});
  for (const auto& [name, expected] : rates) {
    RnnSpec spec;
    rnn_field(name).put(spec, 0.25);
    EXPECT_EQ(asked(spec), expected) << name;
  }
  const RnnSpec candidate{.training = {.recurrent_dropout = 0.25,
                                       .recurrent_dropout_form = RecurrentDropoutForm::kCandidate}};
  EXPECT_EQ(asked(candidate), (Asked{true, false, false, true, false}));
}

// Whatever stands in a file is quoted in short.
TEST(Fields, LongWordsAreQuotedInShort) {
  const std::string word(5000, 'x');
  RnnSpec spec;
  const std::function<void()> calls[] = {[&] { rnn_field(word); },
                                         [&] { parse_rnn_mode(word); },
                                         [&] { parse_cell_activation(word); },
                                         [&] { parse_cell_activation("elu(" + word + ")"); },
                                         [&] { rnn_field("num_units").put(spec, word); },
                                         [&] { rnn_field("layer_norm").put(spec, word); }};
  for (const auto& call : calls) {
    const std::string said = error_of<ArgumentError>(call);
    EXPECT_NE(said.find("xxx..."), std::string::npos) << said;
    EXPECT_LT(said.size(), 1000U) << said;
  }
}

TEST(ValidSpecs, AreValidatedWhereTheyAreMade) {
  const RnnSpec spec{.num_units = 2, .input_size = 1};
  const ValidSpec valid = spec;
  EXPECT_EQ(*valid, spec);
  EXPECT_EQ(valid->num_units, 2);
  expect_error<ArgumentError>([] { const ValidSpec wrong(RnnSpec{.input_size = 1}); },
                              "[RnnSpec] num_units is 0, expected 1 to 4194304");
}

// docs/options.md is this table under a heading; OPENRNN_REGENERATE_DOCS=1 writes it anew.
TEST(Fields, AreInTheDocs) {
  const std::string path = source_file("docs/options.md");
  const std::string wanted =
      "# Options of a network\n\n"
      "Each is a keyword argument of layers and models in Python, a member of `RnnSpec` in C++, "
      "and a key of `get_config()` and of\n"
      "the files of a run. `device` is another one, which no file stores. Letters are those of "
      "[layers.md](layers.md).\n\n" +
      rnn_fields_markdown();
  if (std::getenv("OPENRNN_REGENERATE_DOCS")) std::ofstream(path) << wanted;
  std::stringstream found;
  found << std::ifstream(path).rdbuf();
  EXPECT_EQ(found.str(), wanted);
}

}  // namespace
}  // namespace openrnn
