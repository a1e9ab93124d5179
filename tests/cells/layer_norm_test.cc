// LayerNormBasicLSTMCell: variables, a step by hand, recurrent dropout, copies.
#include <cmath>

#include "cells/support.h"
#include "openrnn/cells_layer_norm.h"

namespace openrnn {
namespace {

using namespace testing;
using Names = std::vector<std::string>;
using Values = std::vector<double>;

constexpr DType kDouble = DType::kFloat64;
constexpr std::int64_t kUnits = 5, kDepth = 3;

double at(const Tensor& x, std::int64_t i) { return element(x.to_host().view(), i); }
double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

void set_varied(const Graph& graph) {
  std::uint64_t seed = 20;
  for (const Variable& variable : graph.variables()) {
    variable.assign(varied(variable.shape(), ++seed, variable.dtype()).to_host().view());
  }
}

TEST(LayerNormCell, NamesAndInitialValues) {
  const OwnGraph own;
  LayerNormBasicLSTMCell cell({.num_units = 2, .norm_gain = 0.5, .norm_shift = 0.25});
  cell(varied({2, 4}), cell.zero_state(2, DType::kFloat32));
  const std::string of = "layer_norm_basic_lstm_cell/";
  EXPECT_EQ(
      names_of(own.graph),
      (Names{of + "kernel", of + "input/gamma", of + "input/beta", of + "transform/gamma",
             of + "transform/beta", of + "forget/gamma", of + "forget/beta", of + "output/gamma",
             of + "output/beta", of + "state/gamma", of + "state/beta"}));
  for (std::size_t i = 1; i < own.graph.variables().size(); ++i) {
    EXPECT_EQ(at(own.graph.variables()[i].read(), 1), i % 2 == 1 ? 0.5 : 0.25) << i;
  }
  LayerNormBasicLSTMCell plain({.num_units = 2, .layer_norm = false, .name = "plain"});
  plain(varied({2, 4}), plain.zero_state(2, DType::kFloat32));
  EXPECT_EQ(plain.variables().size(), 2U);
  EXPECT_EQ(plain.variables()[1].name(), "plain/bias");
}

TEST(LayerNormCell, AStepByHand) {
  const OwnGraph own;
  LayerNormBasicLSTMCell cell({.num_units = kUnits, .forget_bias = 0.5, .dtype = kDouble});
  const Tensor x = varied({1, kDepth}, 2, kDouble);
  const CellState state{varied({1, kUnits}, 3, kDouble), varied({1, kUnits}, 4, kDouble)};
  cell(x, state);
  set_varied(own.graph);
  const CellResult result = cell(x, state);
  const auto w = [&](std::size_t variable, std::int64_t i) {
    return at(own.graph.variables()[variable].read(), i);
  };
  // The variables of the n-th norm follow the kernel.
  const auto norm = [&](Values a, std::size_t n) {
    double mean = 0.0, variance = 0.0;
    for (const double v : a) mean += v / kUnits;
    for (const double v : a) variance += (v - mean) * (v - mean) / kUnits;
    for (std::size_t u = 0; u < a.size(); ++u) {
      const double hat = (a[u] - mean) / std::sqrt(variance + 1e-12);
      const auto i = static_cast<std::int64_t>(u);
      a[u] = hat * w(1 + 2 * n, i) + w(2 + 2 * n, i);
    }
    return a;
  };
  const auto gate = [&](std::int64_t block) {
    Values sums(kUnits);
    for (std::int64_t u = 0; u < kUnits; ++u) {
      for (std::int64_t k = 0; k < kDepth + kUnits; ++k) {
        const double in = k < kDepth ? at(x, k) : at(state[1], k - kDepth);
        sums[static_cast<std::size_t>(u)] += in * w(0, k * 4 * kUnits + block * kUnits + u);
      }
    }
    return norm(sums, static_cast<std::size_t>(block));
  };
  const Values i = gate(0), j = gate(1), f = gate(2), o = gate(3);
  Values c(kUnits);
  for (std::size_t u = 0; u < c.size(); ++u) {
    c[u] = at(state[0], static_cast<std::int64_t>(u)) * sigmoid(f[u] + 0.5) +
           sigmoid(i[u]) * std::tanh(j[u]);
  }
  c = norm(c, 4);
  for (std::size_t u = 0; u < c.size(); ++u) {
    EXPECT_NEAR(at(result.state[0], static_cast<std::int64_t>(u)), c[u], 1e-13);
    EXPECT_NEAR(at(result.output, static_cast<std::int64_t>(u)), std::tanh(c[u]) * sigmoid(o[u]),
                1e-13);
  }
}

TEST(LayerNormCell, DropsTheNewMemoryAlone) {
  const OwnGraph own;
  LayerNormBasicLSTMCell cell({.num_units = 64,
                               .activation = ops::sigmoid,
                               .layer_norm = false,
                               .dropout_keep_prob = 0.5,
                               .dropout_prob_seed = 3});
  const Tensor x = varied({2, kDepth}, 2);
  const CellState zero = cell.zero_state(2, DType::kFloat32);
  const CellResult one = cell(x, zero), other = cell(x, zero);
  std::int64_t dropped = 0, moved = 0;
  for (std::int64_t i = 0; i < 128; ++i) {
    dropped += at(one.state[0], i) == 0.0;
    moved += at(one.state[0], i) != at(other.state[0], i);
  }
  // The cell is sigmoid(i) * g from zeros on: 0 where g was dropped, which differs by call.
  EXPECT_GT(dropped, 30);
  EXPECT_LT(dropped, 98);
  EXPECT_GT(moved, 10);
  EXPECT_EQ(cell.dropout_state().calls(), 2U);
  EXPECT_EQ(thrown<ArgumentError>(
                [] { LayerNormBasicLSTMCell({.num_units = 2, .dropout_keep_prob = 0.0}); }),
            "[LayerNormBasicLSTMCell] dropout_keep_prob 0, expected above 0 and at most 1");
}

TEST(LayerNormCell, NoStepsUseUpNoMask) {
  const OwnGraph own;
  LayerNormBasicLSTMCell cell(
      {.num_units = kUnits, .dropout_keep_prob = 0.5, .dropout_prob_seed = 3});
  DynamicRnnOptions options;
  options.dtype = DType::kFloat32;
  options.time_major = true;
  const DynamicRnnResult none = dynamic_rnn(cell, varied({0, 2, kDepth}), options);
  EXPECT_EQ(none.outputs.shape(), (Shape{0, 2, kUnits}));
  EXPECT_EQ(none.state[1].shape(), (Shape{2, kUnits}));
  EXPECT_EQ(cell.variables().size(), 11U);
  EXPECT_EQ(cell.dropout_state().calls(), 0U);
  options.initial_state = cell.zero_state(3, DType::kFloat32);
  EXPECT_EQ(thrown<ArgumentError>([&] {
              dynamic_rnn(cell, varied({0, 2, kDepth}), options);
            }),
            "[dynamic_rnn] state[0] has shape [3, 5], expected [2, 5]");
  options.initial_state.reset();
  dynamic_rnn(cell, varied({4, 2, kDepth}), options);
  EXPECT_EQ(cell.dropout_state().calls(), 4U);
}

TEST(LayerNormCell, ConfigAndCopyGiveTheSame) {
  const OwnGraph own;
  LayerNormBasicLSTMCell cell({.num_units = kUnits,
                               .forget_bias = 0.25,
                               .activation = ops::relu,
                               .norm_gain = 0.75,
                               .dtype = kDouble});
  const Tensor x = varied({2, kDepth}, 1, kDouble);
  const CellState state{varied({2, kUnits}, 3, kDouble), varied({2, kUnits}, 4, kDouble)};
  const double wanted = at(cell(x, state).output, 7);
  const auto copied = std::dynamic_pointer_cast<LayerNormBasicLSTMCell>(cell.copy());
  EXPECT_EQ(at((*copied)(x, state).output, 7), wanted);
  const auto again = LayerNormBasicLSTMCell::from_config(cell.get_config());
  (*again)(x, state);
  again->set_weights(cell.get_weights());
  EXPECT_EQ(at((*again)(x, state).output, 7), wanted);
}

TEST(LayerNormCell, ASecondOneHasItsNameInItsConfigurationAndACopyItsBias) {
  const OwnGraph own;
  const LayerNormBasicLSTMCellOptions options{
      .num_units = kUnits, .layer_norm = false, .dtype = kDouble};
  LayerNormBasicLSTMCell first(options), second(options);
  const Tensor x = varied({2, kDepth}, 1, kDouble);
  const CellState state{varied({2, kUnits}, 3, kDouble), varied({2, kUnits}, 4, kDouble)};
  const double wanted = at(first(x, state).output, 7);
  second(x, state);
  EXPECT_EQ(first.get_config().name, "layer_norm_basic_lstm_cell");
  EXPECT_EQ(second.get_config().name, "layer_norm_basic_lstm_cell_1");
  const auto copied = std::dynamic_pointer_cast<LayerNormBasicLSTMCell>(first.copy());
  EXPECT_EQ(at((*copied)(x, state).output, 7), wanted);
  EXPECT_EQ(copied->weights().size(), first.weights().size());
}

TEST(LayerNormBasicLSTMCell, ACopyDrawsTheNextMasksAndTakesNoSeed) {
  const OwnGraph own;
  Graph::current().set_seed(3);
  LayerNormBasicLSTMCell cell({.num_units = 16, .dropout_keep_prob = 0.5});
  const Tensor x = varied({2, 4});
  const CellState state = cell.zero_state(2, DType::kFloat32);
  const Tensor first = cell(x, state).output;
  const auto seeds = Graph::current().op_seeds({});
  const auto copied = cell.copy();
  EXPECT_EQ(Graph::current().op_seeds({}).second, seeds.second + 1);
  auto& copy = dynamic_cast<LayerNormBasicLSTMCell&>(*copied);
  const Tensor second = cell(x, state).output;
  EXPECT_FALSE(same(first, second));
  EXPECT_TRUE(same(copy(x, state).output, second));
}

}  // namespace
}  // namespace openrnn
