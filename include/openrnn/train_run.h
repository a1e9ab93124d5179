// A whole training run: made from options, trained, saved, stopped and resumed; and its model
// alone.
#pragma once

#include <map>

#include "openrnn/spec_fields.h"
#include "openrnn/train_fit.h"

namespace openrnn::train {

// ---- What a run is -----------------------------------------------------------------------------

/// Everything that decides the bits of a run; stored as `openrnn/config`, JSON.
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

// ---- A run -------------------------------------------------------------------------------------

/// Options of a Run: those of `openrnn train`, with the same names and defaults (docs/tool.md). An
/// option that is unset has the value of the run to resume, in a new run its default.
struct RunOptions {
  /// Folder of the checkpoints and events; created once data and options have been checked.
  std::string out = "out";
  /// Continue the run in `out`; if there is none, a new one starts.
  bool resume = false;

  // Data.
  std::optional<std::string> task = {};   // 'text': next-symbol model; or 'series': forecast
  std::optional<std::string> input = {};  // file to train on: a text, or a CSV table
  std::optional<std::string> valid = {};  // text to validate on; default: the last lines of input
  std::optional<double> valid_fraction = {};  // part held out: 0.05 of a text, 0.2 of a series
  std::optional<TextLevel> level = {};        // symbols of a text: kByte
  std::optional<std::vector<std::string>> columns = {};  // of a series, by name or number: all
  std::optional<std::int64_t> horizon = {};              // rows ahead to forecast: 1
  std::optional<std::string> target =
      {};  // 'sequence': forecast after each row; or 'one': the last

  // Model.
  /// Fields of the network by name: any of rnn_fields() but `input_size`, `direction` and
  /// `weights_dtype`, with `cell` for `rnn_mode`, `layers` for `num_layers` and `units` for
  /// `num_units`. Defaults are those of RnnSpec; 256 units, 32 of a series; seed 0.
  std::map<std::string, FieldValue> network = {};
  std::optional<std::int64_t> embedding = {};  // width, 0 for one-hot: 64

  // Fit.
  std::optional<std::int64_t> batch = {};        // parallel streams, or windows of a series: 32
  std::optional<std::int64_t> seq_len = {};      // time steps of a window: 100; series 24
  std::optional<std::int64_t> epochs = {};       // passes over the data: 10, but 500 to 20000 steps
  std::optional<std::int64_t> steps = {};        // in place of epochs
  std::optional<std::string> optimizer = {};     // as make_optimizer: 'adam'
  std::optional<double> lr = {};                 // 0.004; sgd and its kin 0.5, adagrad 0.05
  std::optional<ScheduleKind> lr_schedule = {};  // kCosine, down to 1/20 at the last step
  std::optional<std::int64_t> warmup = {};       // steps in which the rate rises: 1/20, at most 100
  std::optional<double> clip_norm = {};          // global norm of gradients, 0: off: 1
  std::optional<std::int64_t> micro_batches = {};  // parts of each step's batch, a divisor of it: 1
  std::optional<std::int64_t> valid_every = {};    // steps between validations: 1/20 of all
  std::optional<std::int64_t> patience = {};       // validations without a better one; 0: no limit

  // These change no bit of the run.
  std::int64_t save_steps = 0;     // also save every N steps; 0: off
  double save_seconds = 20.0;      // save every N seconds; 0: off
  int keep = 5;                    // checkpoints to keep; 0: all
  std::int64_t recompute = 0;      // steps of a chunk, as ForwardArgs::recompute; 0: off
  const Device* device = nullptr;  // null: the default device; a run resumes on any
  /// The processes that train together, each with these options; null: this one alone. All see the
  /// same `out`, in which rank 0 alone writes. It must outlive the Run.
  Communicator* communicator = nullptr;
  Reduction reduction = Reduction::kExact;  // kFast: the bits depend on the number of processes
  bool overlap = false;                     // as FitOptions::overlap
};

/// An invalid option, or one that contradicts another or the run to resume. Python: ValueError.
class OPENRNN_API OptionError : public ArgumentError {
 public:
  /// A part of the text, or the name of an option: a member of RunOptions, or of its `network`.
  struct Piece {
    std::string text;
    bool is_option = false;
  };
  /// what() is '[CALL] ' and the pieces.
  OptionError(const std::string& call, std::vector<Piece> pieces);
  const std::string& call() const noexcept { return call_; }
  /// The text without the call, with the options renamed: to a tool's flags, or a form's fields.
  std::string text(const std::function<std::string(const std::string& option)>& name_of) const;

 private:
  std::string call_;
  std::vector<Piece> pieces_;
};

/// Called by Run::train; empty functions are not. Inside them the current graph is that of the
/// caller of train(). An exception of theirs ends train() without a save. Of several processes each
/// calls its after_step, and all stop when one returns false; the others are called at rank 0
/// alone.
struct RunCallbacks {
  /// After each step; returns false to save and stop. On a GPU, reading the values of the report
  /// waits for the step.
  Callback after_step = {};
  /// The same reports, each when its values are known: on a GPU one step later.
  std::function<void(const StepReport&)> on_report = {};
  /// After each save.
  std::function<void(const std::string& prefix)> after_save = {};
};

/// A training run as `openrnn train` makes it: data, model, optimizer, loop, checkpoints and
/// TensorBoard events, in a graph of its own. A run that was stopped and resumed, in any process
/// and with any number of threads, ends with the same bits as an uninterrupted one. Not for use by
/// two threads at once. docs/tool.md describes the tasks and the files. Of several processes each
/// makes a Run, and all call its functions in the same order.
class OPENRNN_API Run {
 public:
  /// Loads the data and builds the model, or restores them; writes no file.
  /// Throws: OptionError for an option out of range, of the other task, or different from the run
  /// to resume (with both values), for other data than that run's, for a missing input, and for an
  /// `out` that holds a run when `resume` is false; StateError naming the process that uses `out`,
  /// or the rank that has other data or another checkpoint; PeerError;
  /// and as load_text, load_series, the layers, Fit and CheckpointManager.
  explicit Run(const RunOptions& options);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// Trains to the last step, or until patience or a callback ends it. Saves before the first step,
  /// at the intervals of the options, and at the end. Can be called again to continue.
  /// Throws: as Fit::run and save().
  StopReason train(const RunCallbacks& callbacks = {});
  /// Saves a checkpoint and returns its prefix. Throws: as CheckpointManager::save.
  std::string save();
  /// The metric on all held-out data: bits per byte of a text; for a series the root mean squared
  /// error in units of the columns' standard deviations. Does not affect training. Of several
  /// processes any may call it alone.
  double validate();

  /// Steps taken so far, of config().fit.steps.
  std::int64_t step() const;
  /// The best validation so far and its step. With patience, its weights are at best_prefix().
  const std::optional<double>& best() const;
  std::int64_t best_step() const;
  std::string best_prefix() const;
  const RunConfig& config() const;
  /// What sums of gradients over several processes have cost this one.
  ReductionCost reduction_cost() const;
  /// The checkpoint that the run was resumed from; empty for a new run.
  const std::optional<std::string>& resumed_from() const;
  /// Why a resumed run will not have the bits of an uninterrupted one (other arithmetic), in
  /// sentences; usually empty.
  std::vector<std::string> notes() const;
  const Task& task() const;
  SequenceModel& model();
  /// The data; the one of the other task is null.
  const Text* text() const;
  const SeriesWindows* series() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ---- The model of a run ------------------------------------------------------------------------

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
