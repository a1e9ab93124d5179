// One step of one unit, with every parameter different, against the equations written out here.
#include <gtest/gtest.h>

#include <cmath>

#include "reference/reference.h"

namespace openrnn {
namespace {

double sigmoid(double a) { return 1.0 / (1.0 + std::exp(-a)); }

struct OneStep {
  RnnSpec spec;
  std::vector<double> params;
  double x = 0.7, h0 = -0.4, c0 = 0.9;
  double y = 0.0, hn = 0.0, cn = 0.0;

  void run() {
    const Engine& engine = reference_engine();
    const ConstArrayView view{
        params.data(), DType::kFloat64, {static_cast<std::int64_t>(params.size())}};
    ForwardArgs args;
    args.params = engine.pack(spec, view, PackFor::kInference);
    args.max_time = args.batch = 1;
    args.x = &x;
    args.h0 = &h0;
    args.y = &y;
    args.hn = &hn;
    if (spec.has_cell()) {
      args.c0 = &c0;
      args.cn = &cn;
    }
    engine.forward(args);
    EXPECT_EQ(y, hn);
  }
};

OneStep one_step(RnnMode mode, std::vector<double> params) {
  OneStep step;
  step.spec.mode = mode;
  step.spec.num_units = step.spec.input_size = 1;
  step.spec.dtype = DType::kFloat64;
  step.params = std::move(params);
  return step;
}

TEST(ReferenceStep, LstmHasSlotsInputForgetMemoryOutput) {
  // W i f c o, R i f c o, bW i f c o, bR i f c o.
  OneStep s = one_step(RnnMode::kLstm, {0.1, -0.2, 0.3, 0.4, 0.5, 0.6, -0.7, 0.8, 0.01, 0.02, 0.03,
                                        0.04, 0.15, -0.26, 0.37, 0.48});
  s.run();
  const auto a = [&](std::size_t k) {
    return s.params[k] * 0.7 + s.params[4 + k] * -0.4 + s.params[8 + k] + s.params[12 + k];
  };
  const double c = sigmoid(a(1)) * 0.9 + sigmoid(a(0)) * std::tanh(a(2));
  EXPECT_NEAR(s.cn, c, 1e-15);
  EXPECT_NEAR(s.y, sigmoid(a(3)) * std::tanh(c), 1e-15);
}

TEST(ReferenceStep, GruResetsAfterTheRecurrentProduct) {
  // W r z n, R r z n, bW r z n, bR r z n.
  OneStep s = one_step(RnnMode::kGru,
                       {0.1, -0.2, 0.3, 0.5, 0.6, -0.7, 0.01, 0.02, 0.03, 0.15, -0.26, 0.37});
  s.run();
  const double r = sigmoid(0.1 * 0.7 + 0.5 * -0.4 + 0.01 + 0.15);
  const double z = sigmoid(-0.2 * 0.7 + 0.6 * -0.4 + 0.02 - 0.26);
  const double n = std::tanh(0.3 * 0.7 + 0.03 + r * (-0.7 * -0.4 + 0.37));
  EXPECT_NEAR(s.y, (1.0 - z) * n + z * -0.4, 1e-15);
}

TEST(ReferenceStep, PlainNetworksHaveOneGate) {
  const double a = 0.5 * 0.7 - 0.6 * -0.4 + 0.01 + 0.2;
  OneStep tanh = one_step(RnnMode::kRnnTanh, {0.5, -0.6, 0.01, 0.2});
  tanh.run();
  EXPECT_NEAR(tanh.y, std::tanh(a), 1e-15);
  OneStep relu = one_step(RnnMode::kRnnRelu, {0.5, -0.6, 0.01, 0.2});
  relu.run();
  EXPECT_NEAR(relu.y, a, 1e-15);
  OneStep negative = one_step(RnnMode::kRnnRelu, {-0.5, 0.6, 0.01, 0.2});
  negative.run();
  EXPECT_EQ(negative.y, 0.0);
}

TEST(ReferenceStep, SkippedInputTakesXForEveryGate) {
  // R r z n, bW r z n, bR r z n: there are no input matrices.
  OneStep s = one_step(RnnMode::kGru, {0.5, 0.6, -0.7, 0.01, 0.02, 0.03, 0.15, -0.26, 0.37});
  s.spec.input_mode = InputMode::kSkipInput;
  s.run();
  const double r = sigmoid(0.7 + 0.5 * -0.4 + 0.01 + 0.15);
  const double z = sigmoid(0.7 + 0.6 * -0.4 + 0.02 - 0.26);
  const double n = std::tanh(0.7 + 0.03 + r * (-0.7 * -0.4 + 0.37));
  EXPECT_NEAR(s.y, (1.0 - z) * n + z * -0.4, 1e-15);
}

TEST(ReferenceStep, ProjectionMapsTheEmittedUnits) {
  // U2, P1: the output is Wp times o * tanh(c), and R reads the projected h.
  OneStep s;
  s.spec.num_units = 2;
  s.spec.num_proj = 1;
  s.spec.input_size = 1;
  s.spec.dtype = DType::kFloat64;
  for (int k = 0; k < 34; ++k) s.params.push_back(0.05 * k - 0.7);
  double c0[2] = {0.9, -0.3}, cn[2] = {};
  const Engine& engine = reference_engine();
  ForwardArgs args;
  args.params = engine.pack(s.spec, {s.params.data(), DType::kFloat64, {34}}, PackFor::kInference);
  args.max_time = args.batch = 1;
  args.x = &s.x;
  args.h0 = &s.h0;
  args.c0 = c0;
  args.y = &s.y;
  args.cn = cn;
  engine.forward(args);
  double projected = 0.0;
  for (std::size_t u = 0; u < 2; ++u) {
    const auto a = [&](std::size_t k) {
      return s.params[2 * k + u] * 0.7 + s.params[8 + 2 * k + u] * -0.4 + s.params[18 + 2 * k + u] +
             s.params[26 + 2 * k + u];
    };
    const double c = sigmoid(a(1)) * c0[u] + sigmoid(a(0)) * std::tanh(a(2));
    EXPECT_NEAR(cn[u], c, 1e-15);
    projected += s.params[16 + u] * sigmoid(a(3)) * std::tanh(c);
  }
  EXPECT_NEAR(s.y, projected, 1e-15);
}

TEST(ReferenceStep, ClampedCellFeedsBothTheOutputAndTheState) {
  OneStep s = one_step(RnnMode::kLstm, {0.1, 2.0, 0.3, 0.4, 0.5, 0.6, -0.7, 0.8, 0.01, 2.0, 0.03,
                                        0.04, 0.15, -0.26, 0.37, 0.48});
  s.spec.cell_clip = {{-0.25, 0.5}};
  s.run();
  EXPECT_EQ(s.cn, 0.5);
  const double o = sigmoid(0.4 * 0.7 + 0.8 * -0.4 + 0.04 + 0.48);
  EXPECT_NEAR(s.y, o * std::tanh(0.5), 1e-15);
}

}  // namespace
}  // namespace openrnn
