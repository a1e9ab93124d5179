// Training runs by graphs have the bits of runs without them.
#include <gtest/gtest.h>

#include "cudnn/graphs/device_calls.h"
#include "openrnn/train.h"
#include "support/text_runs.h"

namespace openrnn::train {
namespace {

using openrnn::testing::Setting;

/// A language model's run: its variables at the end, and what every step said.
struct Trained {
  Bytes variables;
  std::vector<double> losses, norms;
  double validation = 0.0;
  friend bool operator==(const Trained&, const Trained&) = default;
};

constexpr std::int64_t kSteps = 14;

Trained run(DType dtype, RnnMode mode, double dropout) {
  const char* const words[] = {"one ", "two ", "three, ", "four\n", "five ", "six; "};
  const Text text = text_of_words(words, 1200, 200);
  Graph graph;
  const Graph::AsDefault current(graph);
  ModelConfig config;
  config.network.mode = mode;
  config.network.num_layers = 2;
  config.network.num_units = 7;
  config.embedding = 5;
  config.vocabulary = config.outputs = text.vocabulary.size();
  config.network.training.dropout = dropout;
  config.network.dtype = dtype;
  config.network.training.seed = 11;
  SequenceModel model(config);
  TextTask task(model, text, TextTask::Options{.batch = 3, .seq_len = 17});
  AdamOptimizer optimizer{0.01};
  FitOptions options;
  options.steps = kSteps;
  options.clip_norm = 0.5;
  options.validate_every = 5;
  // A rate of its own in every step.
  options.schedule.learning_rate = 0.02;
  options.schedule.warmup_steps = kSteps;
  Fit fit(task, optimizer, options);
  Trained found;
  fit.run({[&](const StepReport& report) {
    found.losses.push_back(report.metric());
    found.norms.push_back(report.gradient_norm());
    if (report.validation) found.validation = *report.validation;
    return true;
  }});
  found.variables = bytes_of(graph);
  return found;
}

class CudnnGraphRuns : public conformance::WithoutGraphs {
  Setting device_{"OPENRNN_DEVICE", "gpu:0"};
  // Runs that choose by time may differ.
  Setting algorithm_{"OPENRNN_CUDNN_ALGORITHM", "standard"};
};

TEST_F(CudnnGraphRuns, AreTheSameWithGraphs) {
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kFloat64}) {
      SCOPED_TRACE(dtype_name(dtype));
      const Trained without = run(dtype, mode, 0.0);
      const conformance::Graphs graphs;
      const long before = conformance::graph_launches();
      EXPECT_EQ(run(dtype, mode, 0.0), without);
      // Most steps are by graphs, forward and backward: not those that find out, or in which a
      // variable has moved.
      const long launches = conformance::graph_launches() - before;
      EXPECT_TRUE(before < 0 || launches >= kSteps) << launches;
    }
  }
}

TEST_F(CudnnGraphRuns, ThatDropOutAreTheSameWithoutGraphs) {
  const Trained without = run(DType::kFloat32, RnnMode::kLstm, 0.3);
  const conformance::Graphs graphs;
  EXPECT_EQ(run(DType::kFloat32, RnnMode::kLstm, 0.3), without);
}

}  // namespace
}  // namespace openrnn::train
