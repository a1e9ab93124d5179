// Specs as JSON, there and back.
#include "spec/json.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace openrnn {
namespace {

RnnSpec from_json(const std::string& text) {
  const std::string path = "file";
  JsonScanner json(path, 0, text);
  const RnnSpec spec = spec::spec_from_json(json);
  json.end();
  return spec;
}

std::string error_of(const std::string& text) {
  try {
    from_json(text);
  } catch (const FormatError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error of " << text;
  return "";
}

// Together they set every field.
std::vector<RnnSpec> specs() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const CellActivation leaky = parse_cell_activation("leaky_relu(0.1)");
  return {
      {.num_layers = 3,
       .num_units = 7,
       .input_size = 5,
       .input_mode = InputMode::kAutoSelect,
       .direction = Direction::kBidirectional,
       .dtype = DType::kBfloat16,
       .num_proj = 4,
       .cell_clip = {{-kInfinity, 0.1}},
       .forget_bias = 1.0 / 3,
       .activation = leaky,
       .recurrent_activation = parse_cell_activation("hard_sigmoid(0.1, 0.3)"),
       .output_activation = leaky,
       .use_peepholes = true,
       .coupled_gates = true,
       .proj_clip = {{-1.0, kInfinity}},
       .gate_clip = {{-50.0, 50.0}},
       .single_bias = true,
       .zoneout = 0.1,
       .zoneout_cell = 0.2,
       .training = {.dropout = 0.3,
                    .seed = -7,
                    .input_dropout = 0.1,
                    .output_dropout = 0.2,
                    .drop_connect = 0.4,
                    .recurrent_dropout = 0.5,
                    .recurrent_dropout_form = RecurrentDropoutForm::kCandidate},
       .compute = {.math = Math::kBf16x3}},
      {.mode = RnnMode::kGru, .num_units = 3, .input_size = 1, .reset_after = false},
      {.num_units = 3,
       .input_size = 1,
       .use_bias = false,
       .layer_norm = LayerNorm::kGates,
       .layer_norm_cell = LayerNormCell::kCarried,
       .layer_norm_epsilon = 1e-12,
       .compute = {.weights_dtype = WeightsDType::kInt8}},
      {.mode = RnnMode::kRnnRelu, .num_units = 1, .input_size = 1, .dtype = DType::kFloat64},
  };
}

TEST(SpecJson, EveryFieldThereAndBack) {
  std::set<std::string_view> set;
  for (const RnnSpec& spec : specs()) {
    const std::string text = spec_to_json(spec);
    EXPECT_EQ(from_json(text), spec) << text;
    for (const RnnField& field : rnn_fields()) {
      if (field.get(spec) != field.default_value()) set.insert(field.name);
    }
  }
  EXPECT_EQ(set.size(), rnn_fields().size());
}

TEST(SpecJson, SaysWhatStands) {
  EXPECT_EQ(spec_to_json({.num_units = 2, .input_size = 1}),
            "{\"rnn_mode\": \"lstm\", \"num_layers\": 1, \"num_units\": 2, \"input_size\": 1, "
            "\"input_mode\": \"linear_input\", \"direction\": \"unidirectional\", \"dropout\": "
            "0.0, \"seed\": null, \"dtype\": \"float32\", \"num_proj\": null, \"math\": "
            "\"float32\", \"weights_dtype\": null}");
}

// What is left out, or null where a field can be off, is at its default.
TEST(SpecJson, OtherWaysToSayTheSame) {
  const RnnSpec plain{.num_units = 2, .input_size = 1};
  EXPECT_EQ(from_json(R"({"input_size": 1, "num_units": 2})"), plain);
  EXPECT_EQ(from_json(R"({"num_units": 2, "input_size": 1, "cell_clip": null, "seed": null,
                          "num_proj": null, "activation": null, "layer_norm": null,
                          "dropout": 0, "use_bias": true})"),
            plain);
  RnnSpec clipped = plain;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  clipped.cell_clip = {{-kInfinity, kInfinity}};
  clipped.gate_clip = {{-3.0, 3.0}};
  EXPECT_EQ(from_json(R"({"num_units": 2, "input_size": 1, "cell_clip": ["-inf", "inf"],
                          "gate_clip": 3})"),
            clipped);
}

TEST(SpecJson, WhatIsNoSpec) {
  const auto expect = [](const std::string& text, const std::string& part) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  expect(R"({"num_units": 2, "input_size": 1, "colour": 3})", "'colour' is no field");
  expect(R"({"num_units": 2, "num_units": 2, "input_size": 1})", "twice");
  expect(R"({"num_units": 2})", "input_size is 0");
  expect(R"({"num_units": "2", "input_size": 1})", "num_units is 2, expected a whole number");
  expect(R"({"num_units": 2.0, "input_size": 1})", "expected a whole number");
  expect(R"({"num_units": 2, "input_size": 1, "cell_clip": [1]})", "1 numbers, expected two");
  expect(R"({"num_units": 2, "input_size": 1, "cell_clip": [1, 2, 3]})", "more than two");
  expect(R"({"num_units": 2, "input_size": 1, "cell_clip": [1, "x"]})", "'x', expected a number");
  expect(R"({"num_units": 2, "input_size": 1, "cell_clip": [2, 1]})", "expected low <= high");
  expect(R"({"num_units": 99999999999, "input_size": 1})", "num_units is 99999999999");
  expect(R"({"rnn_mode": "lstn", "num_units": 2, "input_size": 1})", "lstn");
  expect(R"({"num_units": 2, "input_size": 1, "dtype": "int32"})", "dtype is int32");
  expect(R"({"num_units": 2, "input_size": 1, "math": "bf16", "math": "bf16"})", "twice");
  expect(R"({"num_units": 2, "input_size": 1, "use_bias": 1})", "use_bias is 1, expected true");
  expect(R"({"num_units": 2, "input_size": null})", "input_size is None, expected a whole number");
  expect("[]", "expected an object");
}

// Each names the file and the place at which it was found.
TEST(SpecJson, ErrorsInFull) {
  const auto of_clip = [](const std::string& clip) {
    return error_of(R"({"num_units": 2, "input_size": 1, "cell_clip": )" + clip + "}");
  };
  EXPECT_EQ(of_clip("[1]"), "[file @ 49] 1 numbers, expected two");
  EXPECT_EQ(of_clip("[]"), "[file @ 48] 0 numbers, expected two");
  EXPECT_EQ(of_clip("[1, 2, 3]"), "[file @ 52] more than two numbers, expected two");
  EXPECT_EQ(of_clip(R"([1, "x"])"), "[file @ 51] 'x', expected a number, \"inf\" or \"-inf\"");
  EXPECT_EQ(error_of(R"({"num_units": 2, "num_units": 3, "input_size": 1})"),
            "[file @ 28] the field 'num_units' is there twice, expected once");
  const std::string word = '"' + std::string(5000, 'x') + '"';
  for (const std::string& said : {of_clip("[1, " + word + "]"), error_of("{" + word + ": 1}"),
                                  error_of(R"({"rnn_mode": )" + word + "}")}) {
    EXPECT_LT(said.size(), 1000U);
  }
}

}  // namespace
}  // namespace openrnn
