// Steps in parts: the updates of whole steps, and the same bits from the same number of parts.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "openrnn/ops.h"
#include "support/expect_error.h"
#include "train/parts/whole_trial.h"

namespace openrnn::train {
namespace {

using ops::BatchPart;
using ops::PartScope;

constexpr std::int64_t kBatch = 6;
bool on_processor() { return !default_device().engine(); }

struct Options {
  bool series = false;
  std::int64_t parts = 1;
  RnnMode mode = RnnMode::kLstm;
  DType dtype = DType::kFloat64;
  std::string optimizer = "momentum";
  std::int64_t steps = 12;
  double clip_norm = 0.5;
  bool to_sequence = true;
};

/// Masks of every kind.
RnnSpec network_of(const Options& given) {
  RnnSpec network{.mode = given.mode, .dtype = given.dtype};
  network.training = {
      .dropout = 0.3, .seed = 11, .input_dropout = 0.2, .output_dropout = 0.2, .drop_connect = 0.2};
  if (on_processor()) {  // whose engines alone have masks inside a step
    network.training.recurrent_dropout = 0.2;
    network.zoneout = 0.2;
    network.zoneout_cell = given.mode == RnnMode::kLstm ? 0.1 : 0.0;
  }
  return network;
}

struct Trial : WholeTrial {
  explicit Trial(const Options& given)
      : WholeTrial({.series = given.series,
                    .to_sequence = given.to_sequence,
                    .batch = kBatch,
                    .words = 400,
                    .rows = 34,  // 3 windows of 6 rows and one of 2 after the held-out rows
                    .network = network_of(given),
                    .optimizer = given.optimizer,
                    .fit = {.steps = given.steps,
                            .clip_norm = given.clip_norm,
                            .micro_batches = given.parts}}),
        options(given) {}
  /// The loss of each step.
  std::vector<double> run() {
    std::vector<double> losses;
    EXPECT_EQ(fit->run({[&](const StepReport& report) {
      losses.push_back(report.result.loss());
      return true;
    }}),
              StopReason::kDone);
    return losses;
  }

  Options options;
};

std::vector<double> parameters(const Trial& trial) {
  std::vector<double> all;
  for (const Variable& variable : trial.task->variables()) {
    const Array value = variable.to_host();
    for (std::int64_t i = 0; i < value.size(); ++i) all.push_back(element(value.view(), i));
  }
  return all;
}

void expect_those_of_whole_steps(Options options) {
  options.parts = 1;
  Trial whole(options);
  const std::vector<double> losses = whole.run(), expected = parameters(whole);
  for (const std::int64_t parts : {2, 3, 6}) {
    SCOPED_TRACE(parts);
    options.parts = parts;
    Trial trial(options);
    const std::vector<double> found = trial.run();
    ASSERT_EQ(found.size(), losses.size());
    for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(found[i], losses[i], 1e-12);
    const std::vector<double> now = parameters(trial);
    ASSERT_EQ(now.size(), expected.size());
    for (std::size_t i = 0; i < now.size(); ++i) ASSERT_NEAR(now[i], expected[i], 1e-12) << i;
    EXPECT_EQ(trial.model->dropout_calls(), whole.model->dropout_calls()) << "one call a step";
  }
}

TEST(MicroBatches, UpdatesAreThoseOfWholeSteps) {
  for (const bool series : {false, true}) {
    for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru}) {
      for (const double clip_norm : {0.0, 0.05}) {
        SCOPED_TRACE(testing::Message() << series << to_string(mode) << clip_norm);
        expect_those_of_whole_steps({.series = series, .mode = mode, .clip_norm = clip_norm});
      }
    }
  }
  expect_those_of_whole_steps({.series = true, .to_sequence = false});
}

TEST(MicroBatches, EveryOptimizerSeesTheSumAlone) {
  for (const std::string_view name : optimizer_names()) {
    SCOPED_TRACE(name);
    expect_those_of_whole_steps({.optimizer = std::string(name), .steps = 5});
  }
}

/// The same bits; on a device, whose products may depend on the number of rows, nearly.
void expect_rows(const Array& found, const Array& expected) {
  if (on_processor()) {
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size_bytes()), 0);
    return;
  }
  for (std::int64_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(element(found.view(), i), element(expected.view(), i), 1e-12) << i;
  }
}

TEST(MicroBatches, OutputsOfAPartAreRowsOfTheWhole) {
  for (const bool series : {false, true}) {
    const Trial trial({.series = series});
    const Window window = series
                              ? trial.windows.window({0, 0})
                              : Window{Array(DType::kInt32, {5, 6}), Array(DType::kInt32, {5, 6})};
    const SequenceModel::Call training{.training = true, .sequence_lengths = {}};
    const Tensor whole = (*trial.model)(window.x, {}, training).outputs;
    trial.model->set_dropout_calls(0);
    const std::uint64_t step = ops::new_step_of_parts();
    for (const BatchPart& part : {BatchPart{0, 1, 6}, {1, 3, 6}, {4, 2, 6}}) {
      const PartScope scope(part, step);
      const Window rows = window.part(part.first_row, part.rows);
      const Array found = (*trial.model)(rows.x, {}, training).outputs.to_host();
      const Array expected = ops::slice(whole, {1, part.first_row, part.rows}).to_host();
      ASSERT_EQ(found.shape(), expected.shape());
      expect_rows(found, expected);
    }
    EXPECT_EQ(trial.model->dropout_calls(), 1U);
  }
}

Bytes after(const Options& options) {
  Trial trial(options);
  trial.run();
  return bytes_of(trial.graph);
}

TEST(MicroBatches, ThreadsChangeNoBit) {
  const int before = num_threads();
  for (const bool series : {false, true}) {
    const Options options{.series = series, .parts = 3, .dtype = DType::kFloat32};
    set_num_threads(1);
    const Bytes one = after(options);
    for (const int threads : {2, 4}) {
      set_num_threads(threads);
      EXPECT_EQ(after(options), one);
    }
  }
  set_num_threads(before);
}

/// Stops after these steps, each time taken up by a run of another process's kind.
Bytes in_pieces(const Options& options, const std::vector<std::int64_t>& stops) {
  const std::string prefix =
      testing::TempDir() + "openrnn_parts_" + std::to_string(::getpid()) + ".ckpt";
  bool started = false;
  Bytes last;
  for (std::size_t i = 0; i <= stops.size(); ++i) {
    Trial trial(options);
    Saver saver;
    if (started) trial.fit->load(saver.restore(prefix));
    started = true;
    trial.fit->run(
        {[&](const StepReport& report) { return i == stops.size() || report.step < stops[i]; }});
    Extras extras;
    trial.fit->save(extras);
    saver.write(prefix, extras);
    last = bytes_of(trial.graph);
  }
  remove_tensor_bundle(prefix);
  return last;
}

TEST(MicroBatches, ResumedInTheMiddleOfAnEpochHasTheSameBits) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    if (dtype == DType::kBfloat16 && !on_processor()) continue;
    for (const bool series : {false, true}) {
      SCOPED_TRACE(testing::Message() << dtype_name(dtype) << series);
      const Options options{
          .series = series, .parts = 3, .dtype = dtype, .optimizer = "adam", .steps = 11};
      EXPECT_EQ(in_pieces(options, {1, 3, 4, 9}), after(options));
    }
  }
}

TEST(MicroBatches, StatesOfAllRowsAreSavedWhateverTheParts) {
  const auto saved = [](std::int64_t parts) {
    Trial trial({.parts = parts, .steps = 1});
    trial.run();
    Extras extras;
    trial.fit->save(extras);
    return extras;
  };
  const Extras whole = saved(1), parts = saved(3);
  for (const char* name : {"state_0", "state_1"}) {
    const Array a = whole.get_array(name, DType::kFloat64, {2, kBatch, 5});
    const Array b = parts.get_array(name, DType::kFloat64, {2, kBatch, 5});
    SCOPED_TRACE(name);
    expect_rows(b, a);
  }
  // A task takes them up in other parts.
  Trial trial({.parts = 2, .steps = 2});
  trial.task->load(parts);
  const std::uint64_t step = ops::new_step_of_parts();
  for (const BatchPart& part : {BatchPart{0, 3, 6}, {3, 3, 6}}) {
    const PartScope scope(part, step);
    EXPECT_TRUE(std::isfinite(trial.task->loss_of_part({0, 1}, part).item()));
  }
}

// From states that were left by parts of other sizes, begin and end where they may.
TEST(MicroBatches, EachPartTakesItsRowsOfTheStatesBefore) {
  using Parts = std::vector<BatchPart>;
  const Parts whole{{0, 6, 6}}, pairs{{0, 2, 6}, {2, 2, 6}, {4, 2, 6}},
      halves{{0, 3, 6}, {3, 3, 6}}, uneven{{0, 1, 6}, {1, 4, 6}, {5, 1, 6}};
  const auto losses = [](const Parts& first, const Parts& second) {
    Trial trial({});
    std::vector<double> rows;
    for (const std::int64_t window : {0, 1}) {
      const std::uint64_t step = ops::new_step_of_parts();
      double sum = 0.0;
      for (const BatchPart& part : window == 0 ? first : second) {
        const PartScope scope(part, step);
        sum += trial.task->loss_of_part({0, window}, part).item() * static_cast<double>(part.rows);
      }
      rows.push_back(sum / 6.0);
    }
    return rows;
  };
  const std::vector<double> expected = losses(whole, whole);
  for (const Parts& first : {whole, pairs, halves, uneven}) {
    for (const Parts& second : {whole, pairs, halves, uneven}) {
      const std::vector<double> found = losses(first, second);
      EXPECT_NEAR(found[0], expected[0], 1e-12);
      EXPECT_NEAR(found[1], expected[1], 1e-12) << first.size() << " then " << second.size();
    }
  }
}

// A step that was given up leaves its window behind: the next one has its own.
TEST(MicroBatches, AnotherPositionHasItsOwnWindow) {
  Trial trial({.series = true});
  const auto loss = [&](const DataPosition& at) {
    const PartScope scope({0, 2, 6}, ops::new_step_of_parts());
    trial.model->set_dropout_calls(0);
    return trial.task->loss_of_part(at, {0, 2, 6}).item();
  };
  const double first = loss({0, 0}), second = loss({0, 1}), later = loss({1, 1});
  EXPECT_NE(first, second);
  EXPECT_NE(second, later) << "an epoch has an order of its own";
  EXPECT_EQ(loss({0, 0}), first);
  EXPECT_EQ(loss({0, 1}), second);
  EXPECT_EQ(loss({1, 1}), later);
}

TEST(MicroBatches, AStateOfSomeRowsIsNoneToGoOnFrom) {
  const Trial trial({.parts = 2});
  {
    const PartScope scope({0, 3, 6}, ops::new_step_of_parts());
    trial.task->loss_of_part({0, 0}, {0, 3, 6});
  }
  EXPECT_THROW(trial.task->loss({0, 1}), StateError);
  EXPECT_NO_THROW(trial.task->loss({0, 0})) << "a fresh window needs none";
}

TEST(MicroBatches, WindowsWithFewerRowsAreCutAsFarAsTheyGo) {
  const Trial trial({.series = true, .parts = 6});
  const std::int64_t last = trial.task->windows() - 1;
  EXPECT_EQ(trial.task->batch(), kBatch);
  EXPECT_EQ(trial.task->rows({0, 0}), kBatch);
  EXPECT_LT(trial.task->rows({0, last}), kBatch);
  EXPECT_EQ(trial.task->rows({0, last}), trial.windows.window({0, last}).x.shape()[1]);
  EXPECT_GE(trial.options.steps, 2 * trial.task->windows()) << "so the other tests have some";
}

TEST(MicroBatches, AnOverflowInOnePartSkipsTheStep) {
  Trial trial({.series = true, .parts = 3, .dtype = DType::kFloat16, .steps = 1});
  // The largest scale: its product with a gradient has no float16.
  trial.optimizer->prepare_scale(trial.task->variables());
  trial.graph.variable("loss_scale").assign(Array::of<float>({}, {{3e38F}}).view());
  const std::vector<double> before = parameters(trial);
  std::vector<bool> applied;
  trial.fit->run({[&](const StepReport& report) {
    applied.push_back(report.applied());
    return true;
  }});
  EXPECT_EQ(applied, std::vector<bool>{false});
  EXPECT_EQ(parameters(trial), before);
  EXPECT_EQ(trial.optimizer->loss_scale(), static_cast<double>(1.5e38F));
}

TEST(MicroBatches, AfterAStepThatWasNotFinishedNoneGoesOn) {
  Trial trial({.parts = 2}), resumed({.parts = 2});
  const auto loss_at = [&](Trial& of, std::int64_t window) {
    double sum = 0.0;
    const std::uint64_t step = ops::new_step_of_parts();
    of.model->set_dropout_calls(static_cast<std::uint64_t>(window));
    for (const BatchPart& part : {BatchPart{0, 3, 6}, {3, 3, 6}}) {
      const PartScope scope(part, step);
      sum += of.task->loss_of_part({0, window}, part).item();
    }
    return sum;
  };
  loss_at(trial, 0);
  const double once = loss_at(trial, 1);
  Trial other({.parts = 2});
  loss_at(other, 0);
  {
    const PartScope scope({0, 3, 6}, ops::new_step_of_parts());
    other.task->loss_of_part({0, 1}, {0, 3, 6});
  }
  // What is saved then is of the step before.
  Extras extras;
  other.task->save(extras);
  resumed.task->load(extras);
  EXPECT_EQ(loss_at(resumed, 1), once);
  EXPECT_EQ(error_of<StateError>([&] { loss_at(other, 1); }),
            "[TextTask] a state of 0 of rows 3 to 6, expected one of all: an earlier step was not "
            "finished");
}

/// Knows whole batches alone.
class OwnTask : public Task {
 public:
  OwnTask() : weight_("w", Array(DType::kFloat32, {})) {}
  std::int64_t windows() const override { return 1; }
  Tensor loss(const DataPosition&) override { return ops::square(weight_.read()); }
  std::int64_t items(const DataPosition&) const override { return 1; }
  double metric(double loss) const override { return loss; }
  std::string_view metric_name() const override { return "loss"; }
  double validate(bool) override { return 0.0; }
  std::vector<Variable> variables() const override { return {weight_}; }
  void save(Extras&) const override {}
  void load(const Extras&) override {}

 private:
  Variable weight_;
};

TEST(MicroBatches, RefusesPartsThatCannotBe) {
  expect_error<ArgumentError>([] { Trial({.parts = 4}); },
                              "[Fit] micro_batches 4 of a batch of 6 rows, expected parts of equal "
                              "size: a divisor");
  expect_error<ArgumentError>(
      [] { Trial({.parts = 12}); },
      "[Fit] micro_batches 12 of a batch of 6 rows, expected parts of equal "
      "size: a divisor");
  expect_error<ArgumentError>([] { Trial({.parts = 0}); },
                              "[Fit] micro_batches 0, expected 1 or more");
  Graph graph;
  const Graph::AsDefault current(graph);
  OwnTask task;
  GradientDescentOptimizer optimizer(0.1);
  FitOptions options;
  options.micro_batches = 2;
  expect_error<ArgumentError>([&] { Fit(task, optimizer, options); },
                              "[Fit] micro_batches 2 of a task that computes whole batches alone, "
                              "expected 1, or a task that overrides batch and loss_of_part");
  EXPECT_THROW(task.loss_of_part({}, {0, 1, 2}), StateError);
  options.micro_batches = 1;
  EXPECT_NO_THROW(Fit(task, optimizer, options));
}

}  // namespace
}  // namespace openrnn::train
