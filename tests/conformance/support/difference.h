// Gradients against central differences of the engine's own forward pass, in float64.
#pragma once

#include <gtest/gtest.h>

#include "conformance/support/run.h"

namespace openrnn::conformance {

/// The weighted sum of outputs and final states whose gradient backward gives: its weights are dy,
/// dhn and dcn.
inline double weighted_sum(const Engine& engine, const Case& c, const Data& d) {
  ForwardBuffers out = forward_buffers(c);
  engine.forward(
      forward_args(c, d, out, engine.pack(c.spec, d.params.view(), PackFor::kInference), true));
  double sum = 0.0;
  const auto add = [&sum](const Array& values, const Array& weights) {
    for (std::size_t i = 0; i < values.as<double>().size(); ++i) {
      sum += values.as<double>()[i] * weights.as<double>()[i];
    }
  };
  add(out.y, d.dy);
  add(out.hn, d.dhn);
  add(out.cn, d.dcn);
  return sum;
}

/// Compares every element of `gradient` with the difference when that element of `input` moves.
inline void expect_differences(const Engine& engine, const Case& c, Data& d, Array& input,
                               const Array& gradient, const char* name) {
  constexpr double kDelta = 1e-4, kTolerance = 5e-6;
  for (std::size_t i = 0; i < input.as<double>().size(); ++i) {
    double& value = input.as<double>()[i];
    const double old = value;
    value = old + kDelta;
    const double above = weighted_sum(engine, c, d);
    value = old - kDelta;
    const double below = weighted_sum(engine, c, d);
    value = old;
    const double expected = (above - below) / (2 * kDelta);
    const double found = gradient.as<double>()[i];
    ASSERT_LE(std::abs(found - expected), kTolerance + kTolerance * std::abs(expected))
        << name << "[" << i << "] is " << found << ", the difference " << expected;
  }
}

inline void expect_right_gradients(const Engine& engine, const Case& c, Data& d) {
  const Result result = run_training(engine, c, d);
  expect_differences(engine, c, d, d.x, result["dx"], "dx");
  if (!c.null_states) {
    expect_differences(engine, c, d, d.h0, result["dh0"], "dh0");
    if (c.spec.has_cell()) expect_differences(engine, c, d, d.c0, result["dc0"], "dc0");
  }
  expect_differences(engine, c, d, d.params, result["dparams"], "dparams");
}

/// The settings of the usual gradient checks, L2 U3 I4 B3 T4, and what those leave out.
inline std::vector<Case> difference_cases() {
  std::vector<Case> cases;
  const auto add = [&cases](const std::string& text, const std::string& reason) {
    cases.push_back(parse_case(text, reason));
  };
  for (const std::string mode : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
    for (const std::string drop : {"", " D0.5", " D1"}) {
      add(mode + " L2 U3 I4 B3 T4 f64" + drop, "usual");
    }
    add(mode + " L2 U3 I4 B3 T4 bi f64 D0.5", "bidirectional");
    add(mode + " L2 U3 I3 B3 T4 skip f64", "skipped_input");
    add(mode + " L2 U3 I3 B3 T4 skip bi f64 lengths", "skipped_input_and_lengths");
    add(mode + " L3 U2 I2 B4 T5 f64 lengths D0.5", "lengths_and_three_layers");
    add(mode + " L2 U2 I3 B4 T3 bi f64 lengths batch_major", "batch_major");
    add(mode + " L1 U3 I4 B3 T3 f64 null_states", "no_initial_states");
  }
  add("lstm L2 U4 I3 B3 T4 P2 f64", "projection");
  add("lstm L2 U3 I3 B4 T4 P1 bi skip f64 lengths", "projection");
  add("lstm L2 U4 I3 B3 T5 clip f64", "clamped_cells");
  for (const std::string norm : {"products", "gates"}) {
    for (const char* cell : {"", " cell_norm=output", " cell_norm=carried clip"}) {
      add("lstm L2 U4 I3 B3 T4 bi peepholes lengths f64 norm=" + norm + cell, "layer_norm");
    }
  }
  add("lstm L1 U4 I4 B3 T4 skip P2 f64 norm=gates cell_norm=carried", "layer_norm");
  add("gru L2 U4 I3 B3 T4 bi lengths f64 norm=products", "layer_norm");
  add("gru L1 U5 I5 B3 T4 skip f64 norm=split_products", "layer_norm");
  return cases;
}

}  // namespace openrnn::conformance
