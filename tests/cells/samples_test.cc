// Gradients of samples of cells, whose variables each step reads anew.
#include "cells/support.h"
#include "ops/per_sample/per_sample.h"

namespace openrnn::testing {
namespace {

TEST(CellSamples, OfLoopsOverSteps) {
  if (on_other_device()) GTEST_SKIP() << "on the cpu only";
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnTanh}) {
    const OwnGraph own;
    const auto cell = make_compatible_cell(mode, units(3, DType::kFloat64));
    DynamicRnnOptions options;
    options.time_major = true;
    options.sequence_lengths = {2, 4, 0};
    options.dtype = DType::kFloat64;
    const Tensor x = varied({4, 3, 5}, 1, DType::kFloat64);
    dynamic_rnn(*cell, x, options);
    GradientTape tape;
    const Tensor target = ops::square(dynamic_rnn(*cell, x, options).outputs);
    tape.close();
    std::vector<Tensor> sources;
    for (const Variable& variable : own.graph.variables()) sources.push_back(variable.read());
    ASSERT_GT(sources.size(), 1U);
    expect_samples(tape, target, sources, 1);
  }
}

}  // namespace
}  // namespace openrnn::testing
