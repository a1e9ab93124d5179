// Activations as text, and what options of a cell are refused where.
#include <gtest/gtest.h>

#include <clocale>

#include "openrnn/spec.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

TEST(Activations, AreNamesWithParameters) {
  const std::pair<const char*, const char*> both_ways[] = {
      {"sigmoid", "sigmoid"},
      {"tanh", "tanh"},
      {"relu", "relu"},
      {"affine", "affine(1, 0)"},
      {"linear", "affine(1, 0)"},
      {"leaky_relu", "leaky_relu(0.01)"},
      {"thresholded_relu", "thresholded_relu(1)"},
      {"scaled_tanh", "scaled_tanh(1, 1)"},
      {"scaled_tanh( 1.7159 , 0.6666 )", "scaled_tanh(1.7159, 0.6666)"},
      {"hard_sigmoid", "hard_sigmoid(0.2, 0.5)"},
      {"hard_sigmoid(0.16666666666666666)", "hard_sigmoid(0.16666666666666666, 0.5)"},
      {"elu(-1e-3)", "elu(-0.001)"},
      {"elu()", "elu(1)"},
      {"affine( )", "affine(1, 0)"},
      {" tanh ", "tanh"},
      {" elu ( 0.5 ) ", "elu(0.5)"},
      {"linear ", "affine(1, 0)"},
      {"softsign", "softsign"},
      {"softplus", "softplus"}};
  for (const auto& [given, expected] : both_ways) {
    const CellActivation parsed = parse_cell_activation(given);
    EXPECT_EQ(to_string(parsed), expected);
    EXPECT_EQ(parse_cell_activation(expected), parsed);
  }
}

// Python programs set the locale of the user, which may write 0,1.
TEST(Activations, AreReadInEveryLocale) {
  const std::string before = std::setlocale(LC_NUMERIC, nullptr);
  const char* comma = nullptr;
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "ru_RU.UTF-8", "de_DE", "fr_FR"}) {
    if (!comma && std::setlocale(LC_NUMERIC, name)) comma = name;
  }
  const CellActivation read = parse_cell_activation("leaky_relu(+1.25)");
  const std::string written = to_string(read);
  std::setlocale(LC_NUMERIC, before.c_str());
  EXPECT_EQ(read.alpha, 1.25);
  EXPECT_EQ(written, "leaky_relu(1.25)");
  if (!comma) GTEST_SKIP() << "read in the C locale alone: no locale with a decimal comma here";
}

TEST(Activations, RefuseWhatIsNone) {
  const std::string names =
      "expected one of 'sigmoid', 'tanh', 'relu', 'affine', 'leaky_relu', 'thresholded_relu', "
      "'scaled_tanh', 'hard_sigmoid', 'elu', 'softsign', 'softplus', 'linear', with parameters as "
      "in 'leaky_relu(0.1)'";
  const std::pair<std::string, std::string> wrong[] = {
      {"", names},
      {"Tanh", names},
      {"tanh(1)", "expected at most 0 parameters"},
      {"elu(1, 2)", "expected at most 1 parameters"},
      {"hard_sigmoid(1, 2, 3)", "expected at most 2 parameters"},
      {"elu(x)", "expected finite numbers as its parameters"},
      {"elu(1x)", "expected finite numbers as its parameters"},
      {"elu(1 2)", "expected finite numbers as its parameters"},
      {"elu(nan)", "expected finite numbers as its parameters"},
      {"elu(inf)", "expected finite numbers as its parameters"},
      {"elu(0x1p-1)", "expected finite numbers as its parameters"},
      {"elu(+-1)", "expected finite numbers as its parameters"},
      {"hard_sigmoid(0.2,)", "expected finite numbers as its parameters"},
      {"elu(1)x", "expected its parameters in parentheses"},
      {"elu(1", "expected its parameters in parentheses"},
      {"elu(", "expected its parameters in parentheses"},
      {"elu(1,", "expected its parameters in parentheses"},
      {"hard_sigmoid(,1)", "expected finite numbers as its parameters"},
      {"linear(1)", names},
      {"linear(", names},
      {"elu(1) ", ""}};
  for (const auto& each : wrong) {
    // No names bound to it: clang 14 takes none of those into a function.
    const std::string &text = each.first, &expected = each.second;
    if (expected.empty()) {
      EXPECT_EQ(parse_cell_activation(text).alpha, 1.0);
      continue;
    }
    expect_error<ArgumentError>([&] { parse_cell_activation(text); },
                                "[activation] activation is '" + text + "', " + expected);
  }
}

void expect_invalid(const RnnSpec& spec, const std::string& text) {
  expect_error<ArgumentError>([&] { spec.validate(); }, "[RnnSpec] " + text);
}

TEST(CellOptions, OfOneCellAreRefusedByOthers) {
  const RnnSpec lstm{.num_units = 4, .input_size = 3};
  RnnSpec gru = lstm, plain = lstm;
  gru.mode = RnnMode::kGru;
  plain.mode = RnnMode::kRnnTanh;
  const auto with = [](RnnSpec spec, auto change) {
    change(spec);
    return spec;
  };
  const auto peepholes = [](RnnSpec& s) { s.use_peepholes = true; };
  expect_invalid(with(gru, peepholes), "use_peepholes is set for gru, expected it for lstm only");
  expect_invalid(with(plain, [](RnnSpec& s) { s.coupled_gates = true; }),
                 "coupled_gates is set for rnn_tanh, expected it for lstm only");
  expect_invalid(with(gru, [](RnnSpec& s) { s.output_activation = CellActivation{}; }),
                 "output_activation is set for gru, expected it for lstm only");
  expect_invalid(with(plain, [](RnnSpec& s) { s.recurrent_activation = CellActivation{}; }),
                 "recurrent_activation is set for rnn_tanh, expected it for lstm and gru only");
  expect_invalid(with(lstm, [](RnnSpec& s) { s.reset_after = false; }),
                 "reset_after is false for lstm, expected that for gru only");
  expect_invalid(
      with(lstm,
           [](RnnSpec& s) {
             s.proj_clip = {{-1.0, 1.0}};
           }),
      "proj_clip is set without a projection, expected num_proj below num_units with it");
  expect_invalid(with(lstm,
                      [](RnnSpec& s) {
                        s.gate_clip = {{1.0, -1.0}};
                      }),
                 "gate_clip is [1, -1], expected low <= high");
  expect_invalid(with(lstm,
                      [](RnnSpec& s) {
                        s.use_bias = false;
                        s.single_bias = true;
                      }),
                 "single_bias is true and use_bias false, expected one of them");
  expect_invalid(with(gru,
                      [](RnnSpec& s) {
                        s.activation = {{CellActivationKind::kElu, 1.0 / 0.0}};
                      }),
                 "activation is elu(inf), expected finite parameters");
}

TEST(CellOptions, ThoseThatChangeNothingAreCudnnsSteps) {
  RnnSpec spec{.mode = RnnMode::kRnnRelu, .num_units = 4, .input_size = 3};
  EXPECT_TRUE(spec.has_cudnn_step());
  spec.activation = parse_cell_activation("tanh");
  EXPECT_TRUE(spec.has_cudnn_step());
  spec.activation = parse_cell_activation("sigmoid");
  EXPECT_FALSE(spec.has_cudnn_step());
  spec = {.num_units = 4, .input_size = 3, .forget_bias = 1.0, .use_bias = false};
  spec.recurrent_activation = parse_cell_activation("sigmoid");
  spec.activation = spec.output_activation = parse_cell_activation("tanh");
  EXPECT_TRUE(spec.has_cudnn_step());
  spec.activation = parse_cell_activation("relu");
  EXPECT_FALSE(spec.has_cudnn_step());
  spec.activation = {};
  spec.output_activation = parse_cell_activation("relu");
  EXPECT_FALSE(spec.has_cudnn_step());
  spec.output_activation = {};
  spec.recurrent_activation = parse_cell_activation("hard_sigmoid");
  EXPECT_FALSE(spec.has_cudnn_step());
}

}  // namespace
}  // namespace openrnn
