// The fit loop and its two tasks.
#pragma once

#include "openrnn/checkpoint.h"
#include "openrnn/ops_part.h"
#include "openrnn/train_communicator.h"
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
  /// Rows of the batch of a step; 0: the task computes whole batches alone, as one that overrides
  /// none of these three.
  virtual std::int64_t batch() const { return 0; }
  /// Rows of this window: batch(), or fewer in the last window of an epoch.
  virtual std::int64_t rows(const DataPosition& position) const {
    static_cast<void>(position);
    return batch();
  }
  /// Mean loss of some of the rows of one window, as loss() is of all. Called for each part of a
  /// step in the order of the rows, in an ops::PartScope of that part, so that layers draw the
  /// masks of the whole batch; the state goes on row by row. Throws: StateError unless the task
  /// overrides it.
  virtual Tensor loss_of_part(const DataPosition& position, const ops::BatchPart& part);
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
  /// Of several processes each computes the rows `own` of every step. All call this before the
  /// first one calls save(), so that it can save the state of all rows. Nothing by default.
  virtual void gather(Communicator& communicator, const ops::BatchPart& own);
};

class CarriedState;

/// A window of which not all parts were computed yet.
struct LatestWindow {
  std::optional<DataPosition> position = {};
  Window window = {Array(DType::kFloat32, {0}), Array(DType::kFloat32, {0})};
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
  ~TextTask() override;
  Tensor loss(const DataPosition& position) override;
  std::int64_t batch() const override { return options_.batch; }
  Tensor loss_of_part(const DataPosition& position, const ops::BatchPart& part) override;
  std::int64_t items(const DataPosition& position) const override;
  double metric(double loss) const override;
  std::string_view metric_name() const override { return "bits per byte"; }
  double validate(bool quick) override;
  std::vector<Variable> variables() const override { return model_.variables(); }
  void save(Extras& extras) const override;
  void load(const Extras& extras) override;
  void gather(Communicator& communicator, const ops::BatchPart& own) override;

 private:
  SequenceModel& model_;
  const Text& text_;
  Options options_;
  TextStreams streams_;
  double symbols_per_byte_;
  std::unique_ptr<CarriedState> state_;
  LatestWindow latest_;
};

/// Forecasts of a table's changes, by mean squared error; windows in another order each epoch.
class OPENRNN_API SeriesTask : public Task {
 public:
  SeriesTask(SequenceModel& model, const SeriesWindows& data, bool to_sequence);
  std::int64_t windows() const override { return data_.windows(); }
  Tensor loss(const DataPosition& position) override;
  std::int64_t batch() const override { return data_.batch(); }
  std::int64_t rows(const DataPosition& position) const override { return data_.rows(position); }
  Tensor loss_of_part(const DataPosition& position, const ops::BatchPart& part) override;
  std::int64_t items(const DataPosition& position) const override { return data_.rows(position); }
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
  LatestWindow latest_;
};

/// The scaling that a SeriesTask has saved. Throws: ArgumentError, TypeError.
OPENRNN_API SeriesScaling load_scaling(const Extras& extras);

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
  /// Parts of consecutive rows into which each step's batch is cut, so that the memory of a forward
  /// and backward pass falls; a divisor of Task::batch(). A window with fewer rows is cut as
  /// rows_of_part says. Each part's loss counts by its share of the rows, gradients and losses are
  /// added as GradientSum says, and clipping, loss scaling and the optimizer see their sum once a
  /// step. Masks and states are those of the whole batch, so that only the order of sums depends on
  /// this number: the same one gives the same bits.
  std::int64_t micro_batches = 1;
  /// The processes that train together, each with this task, optimizer and options; null: this one
  /// alone. Each of W computes micro_batches / W parts of a step, a power of two, and all have the
  /// parameters after it. With kExact their bits do not depend on W. It must outlive the Fit.
  Communicator* communicator = nullptr;
  Reduction reduction = Reduction::kExact;
  /// Of several processes: a second thread sends the gradients of the last layers while the
  /// backward pass computes those below; on the cpu. No bit depends on it. It pays where a
  /// processor is to spare for that thread, or the network is slow.
  bool overlap = false;
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

class Group;
class Overlap;

/// Drives a task by an optimizer. The same task, data, seeds and options give the same bits,
/// whatever was saved, restored or interrupted in between; except on a GPU with
/// OPENRNN_CUDNN_DROPOUT=fast, whose masks follow the order of a process's calls.
class OPENRNN_API Fit {
 public:
  /// Makes the optimizer's slots and `global_step`, so that a Saver can store or restore them.
  /// Throws: ArgumentError for options out of range, micro_batches that do not divide the batch, or
  /// above 1 with a task that computes whole batches alone, or that the processes cannot share, and
  /// for overlap with a communicator that takes one thread's calls alone.
  Fit(Task& task, Optimizer& optimizer, FitOptions options);
  ~Fit();

  /// Runs to the last step, or until patience or a callback ends it, and waits for that step. Of
  /// several processes rank 0 validates, and all stop after the step at which a callback of one
  /// says so. Throws: ArgumentError for a loss, a gradient or a validation that is not finite;
  /// PeerError when another process has failed.
  StopReason run(const std::vector<Callback>& callbacks = {});
  std::int64_t step() const;
  const std::optional<double>& best() const noexcept { return best_; }
  std::int64_t best_step() const noexcept { return best_step_; }

  /// What sums of gradients over several processes have cost this one.
  ReductionCost reduction_cost() const;
  /// Of several processes: all call it before the first one saves, or all do.
  void gather();
  /// What a resumed run needs besides variables: the position in the data, early-stop values and
  /// what the task keeps. Throws: the error of the last step, as Optimizer::finish.
  void save(Extras& extras) const;
  /// Throws: ArgumentError, TypeError for what is missing, has another shape or type, or is out of
  /// range; nothing is changed then.
  void load(const Extras& extras);

 private:
  friend class Run;
  Fit(Task& task, Optimizer& optimizer, FitOptions options, std::shared_ptr<Group> group);
  StopReason steps(const std::vector<Callback>& callbacks);
  StepReport one_step();
  StepResult take_step();
  bool own_parts(const std::vector<Variable>& variables, GradientSum& sum);
  StepResult take_step_in_parts();
  bool goes_on(bool mine);
  void validate(StepReport& report);

  Task& task_;
  Optimizer& optimizer_;
  FitOptions options_;
  Variable global_step_;
  DataPosition position_;
  std::optional<double> best_;
  std::int64_t best_step_ = 0, worse_ = 0;
  std::shared_ptr<Group> group_;      // null: this process alone
  std::unique_ptr<Overlap> overlap_;  // null: gradients travel when all are there
};

}  // namespace openrnn::train
