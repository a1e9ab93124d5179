// TensorFlow 1's cells and the loops made of dynamic_rnn.
#include <cmath>

#include "cells/support.h"
#include "support/tagged_device.h"

namespace openrnn {
namespace {

using namespace testing;
using Names = std::vector<std::string>;

constexpr DType kDouble = DType::kFloat64;

double at(const Tensor& x, std::int64_t i) { return element(x.to_host().view(), i); }
double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

LSTMCellOptions all_options(std::int64_t num_units) {
  return {.num_units = num_units,
          .use_peepholes = true,
          .cell_clip = 0.3,
          .num_proj = 4,
          .proj_clip = 0.2,
          .forget_bias = 0.5,
          .activation = ops::relu,
          .dtype = kDouble};
}

void set_varied(const Graph& graph) {
  std::uint64_t seed = 20;
  for (const Variable& variable : graph.variables()) {
    variable.assign(varied(variable.shape(), ++seed, variable.dtype()).to_host().view());
  }
}

TEST(TensorFlowCell, NamesShapesAndInitialValues) {
  const OwnGraph own;
  LSTMCell lstm({.num_units = 3, .use_peepholes = true, .num_proj = 3});
  BasicLSTMCell basic({.num_units = 3});
  GRUCell gru({.num_units = 3});
  for (RnnCell* cell : std::vector<RnnCell*>{&lstm, &basic, &gru}) {
    (*cell)(varied({2, 4}), cell->zero_state(2, DType::kFloat32));
  }
  EXPECT_EQ(names_of(own.graph),
            (Names{"lstm_cell/kernel", "lstm_cell/bias", "lstm_cell/w_f_diag", "lstm_cell/w_i_diag",
                   "lstm_cell/w_o_diag", "lstm_cell/projection/kernel", "basic_lstm_cell/kernel",
                   "basic_lstm_cell/bias", "gru_cell/gates/kernel", "gru_cell/gates/bias",
                   "gru_cell/candidate/kernel", "gru_cell/candidate/bias"}));
  const std::vector<Shape> shapes{{7, 12}, {12}, {3},    {3}, {3},    {3, 3},
                                  {7, 12}, {12}, {7, 6}, {6}, {7, 3}, {3}};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Variable variable = own.graph.variables()[i];
    EXPECT_EQ(variable.shape(), shapes[i]) << variable.name();
    if (!variable.name().ends_with("bias")) continue;
    const float expected = variable.name().ends_with("gates/bias") ? 1.0f : 0.0f;
    const Array value = variable.to_host();
    for (const float b : value.as<float>()) EXPECT_EQ(b, expected) << variable.name();
  }
  GRUCell raised({.num_units = 3, .bias_initializer = constant_initializer(0.25), .name = "r"});
  raised(varied({2, 4}), raised.zero_state(2, DType::kFloat32));
  EXPECT_EQ(at(raised.variables()[1].read(), 5), 0.25);
  EXPECT_EQ(at(raised.variables()[3].read(), 2), 0.25);
}

// The equations of TensorFlow's LSTMCell for one row, in its order i j f o.
TEST(TensorFlowCell, AStepOfLstmByHand) {
  constexpr std::int64_t kUnits = 6, kDepth = 3, kProj = 4;
  const OwnGraph own;
  LSTMCell cell(all_options(kUnits));
  const Tensor x = varied({1, kDepth}, 2, kDouble);
  const CellState state{varied({1, kUnits}, 3, kDouble), varied({1, kProj}, 4, kDouble)};
  cell(x, state);
  set_varied(own.graph);
  const CellResult result = cell(x, state);
  const auto w = [&](std::size_t variable, std::int64_t i) {
    return at(own.graph.variables()[variable].read(), i);
  };
  const auto clip = [](double a, double bound) { return std::min(std::max(a, -bound), bound); };
  std::vector<double> m(kUnits);
  bool was_clipped = false;
  for (std::int64_t u = 0; u < kUnits; ++u) {
    const auto sum = [&](std::int64_t block) {
      double total = w(1, block * kUnits + u);
      for (std::int64_t k = 0; k < kDepth + kProj; ++k) {
        const double in = k < kDepth ? at(x, k) : at(state[1], k - kDepth);
        total += in * w(0, k * 4 * kUnits + block * kUnits + u);
      }
      return total;
    };
    const double before = at(state[0], u);
    const double c = sigmoid(sum(2) + 0.5 + w(2, u) * before) * before +
                     sigmoid(sum(0) + w(3, u) * before) * std::max(sum(1), 0.0);
    was_clipped |= std::abs(c) > 0.3;
    EXPECT_NEAR(at(result.state[0], u), clip(c, 0.3), 1e-14);
    m[static_cast<std::size_t>(u)] =
        sigmoid(sum(3) + w(4, u) * clip(c, 0.3)) * std::max(clip(c, 0.3), 0.0);
  }
  EXPECT_TRUE(was_clipped);
  for (std::int64_t p = 0; p < kProj; ++p) {
    double h = 0.0;
    for (std::int64_t u = 0; u < kUnits; ++u)
      h += m[static_cast<std::size_t>(u)] * w(5, u * kProj + p);
    EXPECT_NEAR(at(result.output, p), clip(h, 0.2), 1e-14);
  }
}

TEST(TensorFlowCell, ConfigAndCopyGiveTheSame) {
  const OwnGraph own;
  const auto lstm = std::make_shared<LSTMCell>(all_options(5));
  const auto basic = std::make_shared<BasicLSTMCell>(
      BasicLSTMCellOptions{.num_units = 5, .forget_bias = -1.0, .dtype = kDouble});
  const auto gru = std::make_shared<GRUCell>(GRUCellOptions{
      .num_units = 5, .activation = ops::sigmoid, .dtype = kDouble, .name = "given"});
  const std::shared_ptr<RnnCell> again[] = {LSTMCell::from_config(lstm->get_config()),
                                            BasicLSTMCell::from_config(basic->get_config()),
                                            GRUCell::from_config(gru->get_config())};
  const std::shared_ptr<RnnCell> cells[] = {lstm, basic, gru};
  const Tensor x = varied({2, 3}, 1, kDouble);
  for (std::size_t i = 0; i < 3; ++i) {
    CellState state;
    for (const std::int64_t size : cells[i]->state_size())
      state.push_back(varied({2, size}, 5 + i, kDouble));
    const Tensor wanted = (*cells[i])(x, state).output;
    (*again[i])(x, state);
    again[i]->set_weights(cells[i]->get_weights());
    EXPECT_TRUE(same((*again[i])(x, state).output, wanted)) << i;
    const auto copy = std::dynamic_pointer_cast<RnnCell>(cells[i]->copy());
    EXPECT_TRUE(same((*copy)(x, state).output, wanted)) << i;
    EXPECT_EQ(copy->weights().size(), cells[i]->weights().size());
  }
  EXPECT_EQ(gru->get_config().name, "given");
  EXPECT_NE(std::dynamic_pointer_cast<BasicLSTMCell>(basic->copy()), nullptr);
}

TEST(TensorFlowCell, AConfigurationHasTheNameThatTheGraphGave) {
  const OwnGraph own;
  const auto named = [&](auto options, const std::string& name, const auto& make) {
    const auto first = make(options), second = make(options);
    for (const auto& cell : {first, second})
      (*cell)(varied({2, 3}), cell->zero_state(2, DType::kFloat32));
    EXPECT_EQ(first->get_config().name, name);
    EXPECT_EQ(second->get_config().name, name + "_1");
  };
  named(LSTMCellOptions{.num_units = 2}, "lstm_cell", LSTMCell::from_config);
  named(BasicLSTMCellOptions{.num_units = 2}, "basic_lstm_cell", BasicLSTMCell::from_config);
  named(GRUCellOptions{.num_units = 2}, "gru_cell", GRUCell::from_config);
}

TEST(TensorFlowCell, ItsSeedDecidesItsKernel) {
  const auto kernel = [](auto cell) {
    const OwnGraph own;
    const auto made = cell();
    (*made)(varied({2, 4}), made->zero_state(2, DType::kFloat32));
    return own.graph.variables()[0].to_host();
  };
  const auto check = [&](auto of) {
    EXPECT_TRUE(same_bits(kernel([&] { return of(5); }), kernel([&] { return of(5); })));
    EXPECT_FALSE(same_bits(kernel([&] { return of(5); }), kernel([&] { return of(6); })));
  };
  check([](std::int64_t seed) {
    return std::make_shared<LSTMCell>(LSTMCellOptions{.num_units = 3, .seed = seed});
  });
  check([](std::int64_t seed) {
    return std::make_shared<BasicLSTMCell>(BasicLSTMCellOptions{.num_units = 3, .seed = seed});
  });
  check([](std::int64_t seed) {
    return std::make_shared<GRUCell>(GRUCellOptions{.num_units = 3, .seed = seed});
  });
}

TEST(TensorFlowCell, ItsSeedDecidesItsBiases) {
  const auto bias = [](std::int64_t seed) {
    const OwnGraph own;
    GRUCell cell(
        {.num_units = 3, .bias_initializer = random_uniform_initializer(-1.0, 1.0), .seed = seed});
    cell(varied({2, 4}), cell.zero_state(2, DType::kFloat32));
    return own.graph.variable("gru_cell/gates/bias").to_host();
  };
  EXPECT_TRUE(same_bits(bias(5), bias(5)));
  EXPECT_FALSE(same_bits(bias(5), bias(6)));
}

TEST(TensorFlowCell, ABasicConfigHoldsEveryOption) {
  const OwnGraph own;
  const Device& device = test_device(1);
  BasicLSTMCell made({.num_units = 3,
                      .forget_bias = 0.5,
                      .activation = ops::relu,
                      .dtype = kDouble,
                      .kernel_initializer = constant_initializer(0.25),
                      .seed = 4,
                      .name = "mine",
                      .device = &device,
                      .reuse = true});
  const BasicLSTMCellOptions config = made.get_config();
  EXPECT_EQ(config.num_units, 3);
  EXPECT_EQ(config.forget_bias, 0.5);
  EXPECT_EQ(config.dtype, kDouble);
  EXPECT_EQ(config.seed, 4);
  EXPECT_EQ(config.name, "mine");
  EXPECT_EQ(config.device, &device);
  EXPECT_TRUE(config.reuse);
  const Tensor x = varied({2, 3});
  ASSERT_TRUE(config.activation);
  EXPECT_TRUE(same(config.activation(x), ops::relu(x)));
  Array kernel(kDouble, {2});
  RandomStream random(1);
  ASSERT_TRUE(config.kernel_initializer);
  config.kernel_initializer(kernel.view(), random);
  EXPECT_EQ(element(kernel.view(), 1), 0.25);
}

TEST(TensorFlowCell, LiesOnTheDeviceThatIsAskedFor) {
  const OwnGraph own;
  const Device& device = test_device(1);
  const std::shared_ptr<RnnCell> cells[] = {
      std::make_shared<LSTMCell>(LSTMCellOptions{.num_units = 3, .device = &device}),
      std::make_shared<BasicLSTMCell>(BasicLSTMCellOptions{.num_units = 3, .device = &device}),
      std::make_shared<GRUCell>(GRUCellOptions{.num_units = 3, .device = &device})};
  for (const auto& cell : cells) {
    const CellResult result = (*cell)(varied({2, 4}), cell->zero_state(2, DType::kFloat32));
    EXPECT_EQ(&result.output.device(), &device);
    for (const Variable& weight : cell->weights()) EXPECT_EQ(&weight.device(), &device);
  }
}

TEST(TensorFlowCell, Refused) {
  const OwnGraph own;
  EXPECT_EQ(thrown<ArgumentError>([] { LSTMCell({.num_units = 0}); }),
            "[LSTMCell] num_units 0, expected 1 or more");
  EXPECT_EQ(thrown<ArgumentError>([] { BasicLSTMCell({.num_units = -2}); }),
            "[BasicLSTMCell] num_units -2, expected 1 or more");
  EXPECT_EQ(thrown<ArgumentError>([] { LSTMCell({.num_units = 2, .cell_clip = -1.0}); }),
            "[LSTMCell] cell_clip -1, expected 0 or more");
  EXPECT_EQ(thrown<ArgumentError>([] { LSTMCell({.num_units = 2, .cell_clip = NAN}); }),
            "[LSTMCell] cell_clip nan, expected 0 or more");
  EXPECT_EQ(thrown<ArgumentError>([] { LSTMCell({.num_units = 2, .proj_clip = -0.5}); }),
            "[LSTMCell] proj_clip -0.5, expected 0 or more");
  EXPECT_EQ(thrown<ArgumentError>([] { LSTMCell({.num_units = 2, .num_proj = -1}); }),
            "[LSTMCell] num_proj -1, expected 0 for none, or more");
}

// There is nothing to clip without a projection.
TEST(Loops, AClipOfNoProjectionDoesNothing) {
  std::vector<Tensor> outputs;
  const std::optional<double> clips[] = {std::nullopt, 0.01};
  for (const auto& clip : clips) {
    const OwnGraph own;
    LSTMCell cell({.num_units = 3, .proj_clip = clip});
    const Tensor x = varied({2, 3, 4});
    cell(varied({2, 4}), cell.zero_state(2, DType::kFloat32));
    set_varied(own.graph);
    outputs.push_back(dynamic_rnn(cell, x, {.dtype = DType::kFloat32}).outputs);
  }
  EXPECT_TRUE(same(outputs[0], outputs[1]));
}

TEST(Loops, OfBothDirectionsIsTwoLoops) {
  for (const bool time_major : {false, true}) {
    const OwnGraph own;
    GRUCell fw({.num_units = 3}), bw({.num_units = 2});
    const Tensor x = varied(time_major ? Shape{5, 3, 4} : Shape{3, 5, 4});
    const std::vector<std::int32_t> lengths{5, 0, 2};
    const BidirectionalResult result = bidirectional_dynamic_rnn(
        fw, bw, x,
        {.sequence_lengths = lengths, .dtype = DType::kFloat32, .time_major = time_major});
    EXPECT_EQ(own.graph.variables()[0].name(), "bidirectional_rnn/fw/gru_cell/gates/kernel");
    EXPECT_EQ(own.graph.variables()[4].name(), "bidirectional_rnn/bw/gru_cell/gates/kernel");
    const DynamicRnnOptions once{
        .sequence_lengths = lengths, .dtype = DType::kFloat32, .time_major = time_major};
    const DynamicRnnResult forward = dynamic_rnn(fw, x, once);
    const DynamicRnnResult backward =
        dynamic_rnn(bw, ops::reverse_sequence(x, lengths, time_major), once);
    EXPECT_TRUE(same(result.fw.outputs, forward.outputs));
    EXPECT_TRUE(
        same(result.bw.outputs, ops::reverse_sequence(backward.outputs, lengths, time_major)));
    EXPECT_TRUE(same(result.fw.state[0], forward.state[0]));
    EXPECT_TRUE(same(result.bw.state[0], backward.state[0]));
  }
}

TEST(Loops, OfAListOfSteps) {
  const OwnGraph own;
  BasicLSTMCell cell({.num_units = 3});
  const Tensor x = varied({4, 2, 5});
  const DynamicRnnOptions options{.dtype = DType::kFloat32, .time_major = true};
  const StaticRnnResult result = static_rnn(cell, ops::unstack(x), options);
  ASSERT_EQ(result.outputs.size(), 4u);
  EXPECT_EQ(own.graph.variables()[0].name(), "rnn/basic_lstm_cell/kernel");
  const DynamicRnnResult wanted = dynamic_rnn(cell, x, options);
  EXPECT_TRUE(same(ops::stack(result.outputs), wanted.outputs));
  EXPECT_TRUE(same(result.state[0], wanted.state[0]));
  const StaticRnnResult again = static_rnn(cell, ops::unstack(x), {.dtype = DType::kFloat32});
  EXPECT_TRUE(same(ops::stack(again.outputs), wanted.outputs)) << "a list has no layout";
  EXPECT_EQ(thrown<ArgumentError>([&] { static_rnn(cell, {}, options); }),
            "[static_rnn] no inputs, expected one for each time step");
  EXPECT_EQ(thrown<ArgumentError>([&] { static_rnn(cell, {x}, options); }),
            "[static_rnn] inputs[0] has shape [4, 2, 5], expected 2 dimensions");
}

}  // namespace
}  // namespace openrnn
