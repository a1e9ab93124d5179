#include "openrnn/spec.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <tuple>

#include "openrnn/spec_fields.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

RnnSpec good() {
  RnnSpec spec;
  spec.num_layers = 2;
  spec.num_units = 6;
  spec.input_size = 5;
  return spec;
}

void expect_invalid(const RnnSpec& spec, const std::string& text) {
  expect_error<ArgumentError>([&] { spec.validate(); }, "[RnnSpec] " + text);
}

TEST(SpecNames, ComeBack) {
  for (const char* name : {"rnn_relu", "rnn_tanh", "lstm", "gru"}) {
    EXPECT_EQ(to_string(parse_rnn_mode(name)), name);
  }
  for (const char* name : {"linear_input", "skip_input", "auto_select"}) {
    EXPECT_EQ(to_string(parse_input_mode(name)), name);
  }
  for (const char* name : {"unidirectional", "bidirectional"}) {
    EXPECT_EQ(to_string(parse_direction(name)), name);
  }
  for (const char* name : {"float32", "bf16", "bf16x3", "tf32", "fp16"}) {
    EXPECT_EQ(to_string(parse_math(name)), name);
  }
  for (const char* name : {"none", "float16", "bfloat16", "int8"}) {
    EXPECT_EQ(to_string(parse_weights_dtype(name)), name);
  }
  expect_error<ArgumentError>(
      [] { parse_math("bfloat16"); },
      "[math] math is 'bfloat16', expected one of 'float32', 'bf16', 'bf16x3', 'tf32', 'fp16'");
  expect_error<ArgumentError>([] { parse_weights_dtype("bf16"); },
                              "[weights_dtype] weights_dtype is 'bf16', expected one of 'none', "
                              "'float16', 'bfloat16', 'int8'");
  expect_error<ArgumentError>([] { parse_rnn_mode("LSTM"); },
                              "[rnn_mode] rnn_mode is 'LSTM', expected one of 'rnn_relu', "
                              "'rnn_tanh', 'lstm', 'gru'");
  expect_error<ArgumentError>([] { parse_input_mode("skip"); },
                              "[input_mode] input_mode is 'skip', expected one of 'linear_input', "
                              "'skip_input', 'auto_select'");
  expect_error<ArgumentError>([] { parse_direction(""); },
                              "[direction] direction is '', expected one of 'unidirectional', "
                              "'bidirectional'");
}

TEST(SpecGates, AreInSlotOrder) {
  const auto names = [](RnnMode mode) {
    std::string text;
    for (const Gate gate : gates_of(mode)) text += to_string(gate);
    return text;
  };
  EXPECT_EQ(names(RnnMode::kLstm), "ifco");
  EXPECT_EQ(names(RnnMode::kGru), "rzn");
  EXPECT_EQ(names(RnnMode::kRnnTanh), "h");
  EXPECT_EQ(names(RnnMode::kRnnRelu), "h");
}

TEST(SpecSizes, FollowDirectionsAndProjection) {
  RnnSpec spec = good();
  EXPECT_EQ(spec.num_pseudo_layers(), 2);
  EXPECT_EQ(spec.output_size(), 6);
  EXPECT_EQ(spec.layer_input_size(0), 5);
  EXPECT_EQ(spec.layer_input_size(1), 6);
  spec.direction = Direction::kBidirectional;
  spec.num_proj = 4;
  EXPECT_EQ(spec.num_pseudo_layers(), 4);
  EXPECT_TRUE(spec.projecting());
  EXPECT_EQ(spec.output_size(), 8);
  EXPECT_EQ(spec.layer_input_size(1), 8);
  EXPECT_EQ(spec.h_shape(3), (Shape{4, 3, 4}));
  EXPECT_EQ(spec.c_shape(3), (Shape{4, 3, 6}));
  spec.num_proj = 6;
  EXPECT_FALSE(spec.projecting());
  EXPECT_EQ(spec.output_size(), 12);
}

TEST(SpecSkip, AutoSelectSkipsWhenEqual) {
  RnnSpec spec = good();
  EXPECT_FALSE(spec.skips_input());
  spec.input_mode = InputMode::kAutoSelect;
  EXPECT_FALSE(spec.skips_input());
  spec.validate();
  spec.input_size = 6;
  EXPECT_TRUE(spec.skips_input());
  spec.input_mode = InputMode::kSkipInput;
  EXPECT_TRUE(spec.skips_input());
  spec.validate();
  spec.input_mode = InputMode::kLinearInput;
  EXPECT_FALSE(spec.skips_input());
  // It is the units that x must match, also where the output is narrower.
  spec.input_mode = InputMode::kAutoSelect;
  spec.num_proj = spec.input_size = 4;
  EXPECT_FALSE(spec.skips_input());
}

TEST(SpecValidate, NamesTheSize) {
  const auto with = [](auto change) {
    RnnSpec spec = good();
    change(spec);
    return spec;
  };
  good().validate();
  expect_invalid(with([](RnnSpec& s) { s.num_layers = 0; }), "num_layers is 0, expected 1 to 1024");
  expect_invalid(with([](RnnSpec& s) { s.num_units = -3; }),
                 "num_units is -3, expected 1 to 4194304");
  expect_invalid(with([](RnnSpec& s) { s.num_units = INT64_MAX; }),
                 "num_units is 9223372036854775807, expected 1 to 4194304");
  expect_invalid(with([](RnnSpec& s) { s.input_size = 0; }),
                 "input_size is 0, expected 1 to 4194304");
  expect_invalid(with([](RnnSpec& s) { s.input_mode = InputMode::kSkipInput; }),
                 "input_size is 5 under skip_input, expected num_units = 6");
}

TEST(SpecValidate, NamesTheOption) {
  RnnSpec spec = good();
  spec.dtype = DType::kInt32;
  expect_invalid(spec, "dtype is int32, expected float16, bfloat16, float32 or float64");
  spec = good();
  for (const double wrong : {-0.1, 1.5}) {
    spec.training.dropout = wrong;
    EXPECT_THROW(spec.validate(), ArgumentError) << wrong;
  }
  spec.training.dropout = std::nan("");
  expect_invalid(spec, "dropout is nan, expected 0 to 1");
  spec.training.dropout = 1.0;
  spec.validate();
  spec.num_proj = 7;
  expect_invalid(spec, "num_proj is 7, expected 0 (off) to num_units = 6");
  spec.num_proj = -1;
  expect_invalid(spec, "num_proj is -1, expected 0 (off) to num_units = 6");
  spec.num_proj = 2;
  spec.mode = RnnMode::kGru;
  spec.validate();
  EXPECT_TRUE(spec.has_cell());
  spec.zoneout_cell = 0.5;
  spec.validate();
  spec.num_proj = 6;  // as wide as the units: off
  EXPECT_FALSE(spec.has_cell());
  expect_invalid(spec,
                 "zoneout_cell is set for gru, expected it for lstm, and for gru with num_proj");
  spec.zoneout_cell = 0.0;
  spec.reset_after = false;
  spec.validate();
  spec.num_proj = 2;
  expect_invalid(spec,
                 "num_proj is set with reset_after false, expected it true: r has num_units values "
                 "and the state before the product num_proj");
  spec = good();
  spec.cell_clip = {{0.5, -0.5}};
  expect_invalid(spec, "cell_clip is [0.5, -0.5], expected low <= high");
  spec.cell_clip = {{std::nan(""), 1.0}};
  EXPECT_THROW(spec.validate(), ArgumentError);
  spec.cell_clip = {{-0.5, 0.5}};
  spec.forget_bias = 1.0;
  spec.validate();
  spec.forget_bias = std::nan("");
  expect_invalid(spec, "forget_bias is nan, expected a finite number");
  spec.forget_bias = -HUGE_VAL;
  expect_invalid(spec, "forget_bias is -inf, expected a finite number");
  spec.forget_bias = 1.0;
  spec.cell_clip.reset();
  spec.mode = RnnMode::kGru;
  expect_invalid(spec, "forget_bias is set for gru, expected it for lstm only");
  spec = good();
  spec.cell_clip = {{-0.5, 0.5}};
  spec.mode = RnnMode::kRnnTanh;
  expect_invalid(spec, "cell_clip is set for rnn_tanh, expected it for lstm only");
}

TEST(SpecValidate, SizesAtTheirLimits) {
  RnnSpec spec = good();
  spec.num_layers = 1024;
  spec.num_units = spec.input_size = 4194304;
  spec.num_proj = 4194304;
  spec.validate();
  spec.num_layers = 1025;
  expect_invalid(spec, "num_layers is 1025, expected 1 to 1024");
  spec.num_layers = spec.num_units = spec.num_proj = 1;
  spec.validate();
  spec.input_size = 4194305;
  expect_invalid(spec, "input_size is 4194305, expected 1 to 4194304");
  spec.input_size = 1;
  spec.num_units = 4194305;
  expect_invalid(spec, "num_units is 4194305, expected 1 to 4194304");
}

// 0 and 1 are rates, and nothing beyond them is.
TEST(SpecValidate, EveryRateHasItsBounds) {
  for (const char* name : {"dropout", "zoneout", "zoneout_cell", "input_dropout", "output_dropout",
                           "drop_connect", "recurrent_dropout"}) {
    RnnSpec spec = good();
    for (const double rate : {0.0, 1.0}) {
      rnn_field(name).put(spec, rate);
      spec.validate();
    }
    const std::pair<double, const char*> wrong[] = {
        {std::nextafter(1.0, 2.0), "1"}, {-1e-300, "-1e-300"}, {std::nan(""), "nan"}};
    for (const auto& [rate, text] : wrong) {
      rnn_field(name).put(spec, rate);
      expect_invalid(spec, std::string(name) + " is " + text + ", expected 0 to 1");
    }
  }
}

// Equal bounds are in order; NaN is in none.
TEST(SpecValidate, EveryClipHasItsOrder) {
  for (const char* name : {"cell_clip", "proj_clip", "gate_clip"}) {
    RnnSpec spec = good();
    spec.num_proj = 3;
    rnn_field(name).put(spec, std::array<double, 2>{0.5, 0.5});
    spec.validate();
    rnn_field(name).put(spec, std::array<double, 2>{0.5, 0.25});
    expect_invalid(spec, std::string(name) + " is [0.5, 0.25], expected low <= high");
    rnn_field(name).put(spec, std::array<double, 2>{-1.0, std::nan("")});
    expect_invalid(spec, std::string(name) + " is [-1, nan], expected low <= high");
  }
}

TEST(SpecValidate, EveryActivationHasFiniteParameters) {
  for (const char* name : {"activation", "recurrent_activation", "output_activation"}) {
    for (const auto& [alpha, beta, text] :
         {std::tuple{HUGE_VAL, 0.5, "inf, 0.5"}, {0.2, std::nan(""), "0.2, nan"}}) {
      RnnSpec spec = good();
      const CellActivation given{CellActivationKind::kHardSigmoid, alpha, beta};
      (name[0] == 'a'   ? spec.activation
       : name[0] == 'r' ? spec.recurrent_activation
                        : spec.output_activation) = given;
      expect_invalid(
          spec, std::string(name) + " is hard_sigmoid(" + text + "), expected finite parameters");
    }
  }
}

TEST(SpecValidate, NamesTheArithmetic) {
  RnnSpec spec = good();
  spec.compute.math = Math::kBf16;
  spec.validate();
  spec.compute.weights_dtype = WeightsDType::kInt8;
  expect_invalid(spec, "weights_dtype is 'int8' with math 'bf16', expected one of them");
  spec.compute.math = Math::kFloat32;
  spec.validate();
  spec.dtype = DType::kFloat64;
  expect_invalid(spec, "weights_dtype is 'int8' with dtype float64, expected 'none'");
  spec.compute.weights_dtype = WeightsDType::kNone;
  spec.compute.math = Math::kBf16x3;
  expect_invalid(spec, "math is 'bf16x3' with dtype float64, expected 'float32' (exact)");
}

TEST(SpecDescribe, ReadsLikeASentence) {
  RnnSpec spec = good();
  EXPECT_EQ(describe(spec), "lstm, 2 layers, 6 units, input size 5, unidirectional, float32");
  spec.num_layers = 1;
  spec.input_size = 6;
  spec.input_mode = InputMode::kAutoSelect;
  spec.direction = Direction::kBidirectional;
  spec.num_proj = 2;
  EXPECT_EQ(describe(spec),
            "lstm, 1 layer, 6 units, input size 6, bidirectional, float32, skip_input, projection "
            "to 2");
  spec = good();
  spec.compute.math = Math::kBf16;
  EXPECT_EQ(describe(spec),
            "lstm, 2 layers, 6 units, input size 5, unidirectional, float32, math bf16");
  spec.compute.math = Math::kFloat32;
  spec.compute.weights_dtype = WeightsDType::kInt8;
  EXPECT_EQ(describe(spec),
            "lstm, 2 layers, 6 units, input size 5, unidirectional, float32, weights stored as "
            "int8");
}

}  // namespace
}  // namespace openrnn
