// The fit loop, its two tasks, and the configuration of a whole run.
#pragma once

#include "openrnn/checkpoint.h"
#include "openrnn/train_model.h"
#include "openrnn/train_optimizer.h"

namespace openrnn::train {

// ---- What is trained ---------------------------------------------------------------------------

/// A model and its data, as Fit uses them.
class OPENRNN_API Task {
 public:
  virtual ~Task() = default;
  /// Steps of one epoch.
  virtual std::int64_t windows() const = 0;
  /// Loss of one window, in training mode. Called in the order of the data: the recurrent state of
  /// a stateful task goes on from call to call, without history.
  virtual Tensor loss(const DataPosition& position) = 0;
  /// Symbols or rows that this window predicts.
  virtual std::int64_t items(const DataPosition& position) const = 0;
  /// Converts a loss to the unit of metric_name().
  virtual double metric(double loss) const = 0;
  /// 'bits per byte' or 'loss'.
  virtual std::string_view metric_name() const = 0;
  /// The metric on held-out data; does not affect training. `quick`: on part of it.
  virtual double validate(bool quick) = 0;
  virtual std::vector<Variable> variables() const = 0;
  /// Everything besides variables that the next step depends on.
  virtual void save(Extras& extras) const = 0;
  virtual void load(const Extras& extras) = 0;
};

/// Next-symbol prediction over parallel streams, by stateful truncated back-propagation.
class OPENRNN_API TextTask : public Task {
 public:
  /// Sizes of a TextTask.
  struct Options {
    std::int64_t batch = 32;
    std::int64_t seq_len = 100;
    /// Bytes of the held-out text that a quick validation reads.
    std::int64_t quick_bytes = 32768;
  };
  TextTask(SequenceModel& model, const Text& text, const Options& options);
  std::int64_t windows() const override { return streams_.windows(); }
  Tensor loss(const DataPosition& position) override;
  std::int64_t items(const DataPosition& position) const override;
  double metric(double loss) const override;
  std::string_view metric_name() const override { return "bits per byte"; }
  double validate(bool quick) override;
  std::vector<Variable> variables() const override { return model_.variables(); }
  void save(Extras& extras) const override;
  void load(const Extras& extras) override;

 private:
  SequenceModel& model_;
  const Text& text_;
  Options options_;
  TextStreams streams_;
  double symbols_per_byte_;
  std::vector<Tensor> state_;
};

/// Forecasts of a table's changes, by mean squared error; windows in another order each epoch.
class OPENRNN_API SeriesTask : public Task {
 public:
  SeriesTask(SequenceModel& model, const SeriesWindows& data, bool to_sequence);
  std::int64_t windows() const override { return data_.windows(); }
  Tensor loss(const DataPosition& position) override;
  std::int64_t items(const DataPosition& position) const override;
  double metric(double loss) const override { return loss; }
  std::string_view metric_name() const override { return "loss"; }
  double validate(bool quick) override;
  std::vector<Variable> variables() const override { return model_.variables(); }
  void save(Extras& extras) const override;
  void load(const Extras& extras) override;

 private:
  SequenceModel& model_;
  const SeriesWindows& data_;
  bool to_sequence_;
};

// ---- The loop ----------------------------------------------------------------------------------

/// Options of Fit.
struct FitOptions {
  /// Steps of the whole run, including those before a resume.
  std::int64_t steps = 1000;
  Schedule schedule = {};
  /// 0: no clipping.
  double clip_norm = 1.0;
  /// Steps between validations; 0: only after the last.
  std::int64_t validate_every = 0;
  /// Validations without a better value after which training stops; 0: never.
  std::int64_t patience = 0;
};

/// Passed to callbacks after each step. On a GPU the step's values are known when the GPU has
/// computed it: a callback that reads them waits. Read one step later, they are there without
/// waiting.
struct OPENRNN_API StepReport {
  std::int64_t step = 0;  // steps taken so far
  std::int64_t steps = 0;
  std::int64_t items = 0;  // of this step
  double learning_rate = 0.0;
  StepResult result;
  const Task* task = nullptr;

  /// Whether the values below can be read without waiting.
  bool known() const { return result.known(); }
  /// Metric of this step's loss; valid while the task exists. Throws: as StepResult::values, as all
  /// below.
  double metric() const { return task->metric(result.loss()); }
  double gradient_norm() const { return result.gradient_norm(); }
  bool applied() const { return result.applied(); }
  /// Only after a step that validated.
  std::optional<double> validation;
  /// This validation is the best so far.
  bool best = false;
};
/// Returns false to stop after this step.
using Callback = std::function<bool(const StepReport&)>;

enum class StopReason : std::uint8_t { kDone, kPatience, kCallback };

/// Drives a task by an optimizer. The same task, data, seeds and options give the same bits,
/// whatever was saved, restored or interrupted in between; except on a GPU with
/// OPENRNN_CUDNN_DROPOUT=fast, whose masks follow the order of a process's calls.
class OPENRNN_API Fit {
 public:
  /// Makes the optimizer's slots and `global_step`, so that a Saver can store or restore them.
  /// Throws: ArgumentError for options out of range.
  Fit(Task& task, Optimizer& optimizer, FitOptions options);

  /// Runs to the last step, or until patience or a callback ends it, and waits for that step.
  /// Throws: ArgumentError for a loss, a gradient or a validation that is not finite.
  StopReason run(const std::vector<Callback>& callbacks = {});
  std::int64_t step() const;
  const std::optional<double>& best() const noexcept { return best_; }
  std::int64_t best_step() const noexcept { return best_step_; }

  /// What a resumed run needs besides variables: the position in the data, early-stop values and
  /// what the task keeps. Throws: the error of the last step, as Optimizer::finish.
  void save(Extras& extras) const;
  /// Throws: ArgumentError, TypeError for what is missing, has another shape or type, or is out of
  /// range; nothing is changed then.
  void load(const Extras& extras);

 private:
  StopReason steps(const std::vector<Callback>& callbacks);
  StepReport one_step();
  void validate(StepReport& report);

  Task& task_;
  Optimizer& optimizer_;
  FitOptions options_;
  Variable global_step_;
  DataPosition position_;
  std::optional<double> best_;
  std::int64_t best_step_ = 0, worse_ = 0;
};

// ---- A run -------------------------------------------------------------------------------------

/// Everything that decides the bits of a run of the tool; stored as `openrnn/config`, JSON.
struct RunConfig {
  std::string task = "text";  // or 'series'
  ModelConfig model;
  FitOptions fit;
  std::string optimizer = "adam";
  std::int64_t batch = 32;
  std::int64_t seq_len = 100;
  std::int64_t epochs = 0;  // 0: the steps were given
  // text
  TextLevel level = TextLevel::kByte;
  // series
  std::vector<std::string> columns;
  std::int64_t horizon = 1;
  bool to_sequence = false;
  double valid_fraction = 0.05;
  /// Where the data came from, and a fingerprint of it.
  std::string input, valid, data_hash;
};

OPENRNN_API std::string to_json(const RunConfig& config);
/// Throws: ArgumentError naming what is missing or wrong.
OPENRNN_API RunConfig run_config_from_json(std::string_view json);
/// Throws: ArgumentError for a model larger than its checkpoint, before memory is allocated for it.
OPENRNN_API void check_size(const RunConfig& config, const TensorBundleReader& reader);
/// What a run's configuration says of its series.
OPENRNN_API SeriesOptions series_options(const RunConfig& config);
/// The scaling that a SeriesTask has saved. Throws: ArgumentError, TypeError.
OPENRNN_API SeriesScaling load_scaling(const Extras& extras);
/// 16 hexadecimal digits that differ for different bytes.
OPENRNN_API std::string fingerprint(std::string_view bytes);

/// The arithmetic that a run was trained with, stored as `openrnn/math`, `openrnn/math_kind` and
/// `openrnn/arithmetic`.
struct TrainedArithmetic {
  std::string math = "float32";
  /// Engine::math_kind of each machine that took part, in their order: 'dot', or 'dot, amx'.
  std::string kind = "float32";
  /// Versions of the order of sums (docs/numerics.md) of the libraries that took part, in their
  /// order: '2', or '1, 2'.
  std::string version = "1";
};
/// The version of this library.
OPENRNN_API std::string arithmetic_version();
/// Of any checkpoint; where it says nothing: float32, version 1.
OPENRNN_API TrainedArithmetic trained_arithmetic(const Extras& extras);
/// Writes the arithmetic of `model`, appended to what `resumed` (empty: nothing) says of earlier
/// steps.
OPENRNN_API void save_arithmetic(const SequenceModel& model, const std::optional<Extras>& resumed,
                                 Extras& extras);

/// Overrides the arithmetic of a trained model; unset: the run's own. A weights_dtype alone implies
/// math float32.
struct ArithmeticChoice {
  std::optional<Math> math = {};
  std::optional<WeightsDType> weights_dtype = {};
};

/// A trained model, restored from a checkpoint into a graph of its own.
class OPENRNN_API TrainedModel {
 public:
  /// `run` is a folder with a `checkpoint` file, or a prefix. Throws: ArgumentError when it holds
  /// no run of this library, or parts that do not fit together; TypeError, IoError, FormatError.
  /// `device` null: the default one.
  explicit TrainedModel(const std::string& run, const ArithmeticChoice& choice = {},
                        const Device* device = nullptr);
  /// From an open file.
  TrainedModel(const TensorBundleReader& reader, const ArithmeticChoice& choice,
               const Device* device);
  ~TrainedModel();
  TrainedModel(const TrainedModel&) = delete;
  TrainedModel& operator=(const TrainedModel&) = delete;

  const std::string& prefix() const noexcept { return prefix_; }
  const RunConfig& config() const noexcept { return config_; }
  /// Empty unless the task is text.
  const Vocabulary& vocabulary() const noexcept { return vocabulary_; }
  SequenceModel& model() noexcept { return *model_; }
  const Extras& extras() const noexcept { return extras_; }

 private:
  std::string prefix_;
  Extras extras_;
  RunConfig config_;
  Vocabulary vocabulary_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<SequenceModel> model_;
};

/// The latest prefix of a run's folder, or `run` itself when it is a prefix.
/// Throws: ArgumentError when there is neither.
OPENRNN_API std::string resolve_run(const std::string& run);
/// Opens the latest checkpoint, also while a run is saving into the folder.
/// Throws: as resolve_run and TensorBundleReader.
OPENRNN_API TensorBundleReader open_run(const std::string& run);

}  // namespace openrnn::train
