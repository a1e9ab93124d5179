// Optimizers with the formulas and names of tf.train, gradient clipping, learning-rate schedules.
#pragma once

#include <map>
#include <optional>

#include "openrnn/checkpoint.h"

namespace openrnn::train {

// ---- Learning-rate schedules -------------------------------------------------------------------

enum class ScheduleKind : std::uint8_t { kConstant, kExponential, kCosine };
/// 'constant', 'exponential', 'cosine'.
OPENRNN_API std::string_view to_string(ScheduleKind kind);
/// The inverse. Throws: ArgumentError listing the names.
OPENRNN_API ScheduleKind parse_schedule(std::string_view name);

/// A learning rate for every step. Its bits are the same on every machine.
struct OPENRNN_API Schedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  double learning_rate = 1e-3;
  /// Linear warm-up over this many steps: step s has (s + 1) / warmup_steps of the rate.
  std::int64_t warmup_steps = 0;
  /// Exponential: after the warm-up the rate is multiplied by `decay_rate` every `decay_steps`
  /// steps, smoothly. Cosine: the step at which it reaches `final_fraction`, counting the warm-up.
  std::int64_t decay_steps = 0;
  double decay_rate = 0.5;
  /// Cosine: the final fraction of the learning rate.
  double final_fraction = 0.0;

  /// The rate of step 0, 1, 2, ...
  double at(std::int64_t step) const;
  /// Throws: ArgumentError naming the field: a learning rate that is not finite or below 0,
  /// negative steps, decay_steps 0 where the kind needs them.
  void validate() const;
};

// ---- Clipping ----------------------------------------------------------------------------------

/// sqrt of the sum of all squares, summed in double; empty gradients count as zero.
OPENRNN_API double global_norm(const std::vector<DeviceArray>& gradients);

/// Every tensor times clip_norm * min(1 / norm, 1 / clip_norm), as tf.clip_by_global_norm. Empty
/// gradients stay empty. Returns the norm before clipping.
/// Throws: ArgumentError for a clip_norm that is not above 0, or a norm that is not finite; then
/// nothing was changed.
OPENRNN_API double clip_by_global_norm(std::vector<DeviceArray>& gradients, double clip_norm);

// ---- Optimizers --------------------------------------------------------------------------------

/// A slot, a variable that an optimizer keeps for each variable X: `X/<optimizer name>`, then `_1`,
/// `_2`.
struct SlotRule {
  double initial_value = 0.0;
  /// What TensorFlow calls it: 'm', 'momentum'.
  std::string_view name = {};
};

/// The values of one training step.
struct StepValues {
  /// False when a gradient was not finite and loss scaling skipped the step.
  bool applied = true;
  /// Global norm of the gradients before clipping.
  double gradient_norm = 0.0;
  /// The loss that was given; 0 without one.
  double loss = 0.0;
};

class PendingStep;

/// The result of one training step. On a GPU reading it waits until the GPU has computed the step;
/// after the optimizer's next step there is nothing to wait for. Cheap to copy.
class OPENRNN_API StepResult {
 public:
  StepResult() = default;
  explicit StepResult(const StepValues& values) : values_(values) {}
  explicit StepResult(std::shared_ptr<PendingStep> step) : step_(std::move(step)) {}
  /// Whether the values can be read without waiting.
  bool known() const;
  /// Throws: ArgumentError when a gradient or the loss of the step was not finite and the loss
  /// scale could not be lowered, unless that was reported before.
  const StepValues& values() const;
  bool applied() const { return values().applied; }
  double gradient_norm() const { return values().gradient_norm; }
  double loss() const { return values().loss; }

 private:
  StepValues values_;
  std::shared_ptr<PendingStep> step_;
};

/// Changes variables by their gradients. Slots are variables of the current Graph, so a Saver
/// stores them: `X/Adam`, `X/Adam_1`, `beta1_power`. A variable of float16 or bfloat16 gets a
/// float32 master copy `X/master` and float32 slots. Losses of float16 variables are scaled by
/// `loss_scale` before gradients are taken (bfloat16 has the range of float32 and needs none):
/// start 2^15, halved when a gradient is not finite (that step is skipped), doubled after 2000 good
/// steps (`loss_scale_good_steps`). On a GPU a step does not wait for its own values. The GPU
/// computes the norm and changes nothing if it is not finite; the host learns of it in the next
/// step, when gradients are asked for. The error is then thrown there, by finish(), by the
/// StepResult, or when a variable of the step is copied to the host (as a Saver does), whichever
/// comes first. What such a step counted in `global_step` is reverted.
class OPENRNN_API Optimizer {
 public:
  /// Waits for the last step; an error that was not reported is lost.
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// 'GradientDescent', 'Momentum', 'Adagrad', 'RMSProp', 'Adam'.
  const std::string& name() const noexcept { return name_; }
  double learning_rate() const noexcept { return learning_rate_; }
  /// Throws: ArgumentError unless finite and not negative.
  void set_learning_rate(double learning_rate);

  /// Makes the slots of these variables; apply_gradients does so too, of those with a gradient, but
  /// a checkpoint can only be restored into variables that exist. No-op for variables that have
  /// slots.
  void prepare(const std::vector<Variable>& variables);
  /// Makes the loss scale that these variables need; compute_gradients does so too.
  void prepare_scale(const std::vector<Variable>& variables);
  /// The slots of one variable, in order. Throws: ArgumentError when it has none.
  std::vector<Variable> slots(const Variable& variable) const;
  /// What `slots` are called, in that order: 'm', 'v'.
  std::vector<std::string> slot_names() const;
  /// 1 unless a prepared variable is float16.
  double loss_scale() const;
  /// For object-based checkpoints: slots, 'master' among them, and scalars under TensorFlow's
  /// names. A restore makes the slots that it needs. The optimizer must outlive it.
  Trackable trackable();

  /// d (weight * loss) / d variables without loss scale: float32 for variables of float16 and
  /// bfloat16, else the variable's dtype. An empty array where the loss does not depend on the
  /// variable.
  std::vector<DeviceArray> compute_gradients(const GradientTape& tape, const Tensor& loss,
                                             const std::vector<Variable>& variables,
                                             double weight = 1.0);
  /// One update. Gradients in the variables' order; empty ones leave their variable alone. Adds 1
  /// to `global_step` when given. Throws: ArgumentError naming the variable and both shapes.
  void apply_gradients(const std::vector<DeviceArray>& gradients,
                       const std::vector<Variable>& variables, const Variable& global_step = {});
  /// compute_gradients, then clip_and_apply.
  StepResult minimize(const GradientTape& tape, const Tensor& loss,
                      const std::vector<Variable>& variables, const Variable& global_step = {},
                      double clip_norm = 0.0);
  /// clip_by_global_norm when clip_norm > 0, apply_gradients. A step that loss scaling skips counts
  /// in `global_step` too. A given loss is read with the norm and, without loss scaling, must be
  /// finite too. Throws: ArgumentError naming the step when a gradient or the loss is not finite
  /// and the loss scale cannot be lowered; then no variable has changed.
  StepResult clip_and_apply(std::vector<DeviceArray> gradients,
                            const std::vector<Variable>& variables,
                            const Variable& global_step = {}, double clip_norm = 0.0,
                            const Tensor& loss = {});
  /// Waits for the last step. Throws: its error, if that was not reported yet.
  void finish();

 protected:
  Optimizer(std::string name, double learning_rate, std::vector<SlotRule> slots);
  /// The kind and constants of this step; sizes and pointers are filled in by the caller.
  virtual OptimizerStep rule() const = 0;
  /// Before the first slot of all is made.
  virtual void make_scalars() {}
  /// Advances the scalars after an applied step; runs later, and must not need the optimizer.
  /// Empty: nothing.
  virtual std::function<void()> advance_scalars() const { return {}; }
  /// The scalars made so far, by TensorFlow's names.
  virtual NamedTrackables scalars() const { return {}; }

 private:
  TrackedObject tracked();
  struct Kept {
    Variable variable, master;
    std::vector<Variable> slots;
    std::uint64_t written_version = 0;
  };
  void check_floating(const Variable& variable) const;
  void make_kept(const Variable& variable);
  struct Step;
  void make_loss_scale();
  void check_gradients(const Step& step);
  void update_all(const Step& step);
  void update_one(Kept& kept, const DeviceArray& given, const StepDecision* decision);
  void constrain(const Step& step);
  void apply(Step& step);
  StepResult take_now(Step& step);
  StepResult take_later(const Device& device, Step& step);
  /// What the step may still change once it is enqueued.
  std::vector<std::pair<Variable, SettledBy>> undecided(const Step& step) const;
  /// The step that is about to be taken: `global_step`, or how many this optimizer took.
  std::int64_t number_of(const Variable& global_step);
  void count(const Variable& global_step);

  std::string name_;
  double learning_rate_;
  std::vector<SlotRule> slot_rules_;
  std::map<std::uint64_t, Kept> kept_;  // by leaf id, which renaming does not change
  Variable loss_scale_, good_steps_;
  std::shared_ptr<PendingStep> pending_;  // the last step; null: known and reported
  std::int64_t steps_ = 0;
  /// What count() wrote last, so that a counter on a GPU need not be read back.
  struct Counted {
    Variable variable;
    std::uint64_t version = 0;
    std::int64_t value = 0;
  } counted_;
  /// Expires with the optimizer.
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

// ---- Steps in parts ----------------------------------------------------------------------------

/// Rows of a part where `rows` are cut into `parts` parts of consecutive rows: equal ones, or the
/// first rows % parts ones have one more. With fewer rows than parts the last ones have none.
OPENRNN_API std::int64_t rows_of_part(std::int64_t rows, std::int64_t parts, std::int64_t part);

class TreeSum;

/// The gradients and the loss of a step that is computed in parts (micro-batches), one after
/// another, so that only one part's activations are in memory. They are added by a binary tree over
/// the parts: 0 and 1, 2 and 3, .., then pairs of pairs, to the next power of two, without the
/// parts that are not there; the gradients in their own dtypes, the losses in float64. The norm and
/// everything else that Optimizer::clip_and_apply computes is of the sum alone. With n parts at
/// most log2(n) + 1 gradients are in memory.
class OPENRNN_API GradientSum {
 public:
  GradientSum();
  ~GradientSum();
  GradientSum(const GradientSum&) = delete;
  GradientSum& operator=(const GradientSum&) = delete;
  /// The next part: the mean loss of its rows, which are `share` of the batch. On a GPU nothing
  /// waits for it. Throws: ArgumentError for a loss of several elements, and as compute_gradients.
  void add(Optimizer& optimizer, const GradientTape& tape, const Tensor& loss,
           const std::vector<Variable>& variables, double share);
  /// The next part has no rows.
  void skip();
  /// What clip_and_apply takes.
  struct Step {
    std::vector<DeviceArray> gradients;
    Tensor loss;  // float64
  };
  /// The whole step; the next one begins. Throws: ArgumentError without any part.
  Step take();

 private:
  friend class Overlap;
  std::unique_ptr<TreeSum> sum_;
};

// ---- The optimizers by name --------------------------------------------------------------------

/// var -= lr * g.
class OPENRNN_API GradientDescentOptimizer : public Optimizer {
 public:
  /// Throws: ArgumentError unless the learning rate is finite and not negative.
  explicit GradientDescentOptimizer(double learning_rate);

 protected:
  OptimizerStep rule() const override;
};

/// a = momentum * a + g; var -= lr * a; with nesterov var -= lr * g + lr * momentum * a.
class OPENRNN_API MomentumOptimizer : public Optimizer {
 public:
  /// Throws: ArgumentError unless the learning rate is finite and not negative.
  MomentumOptimizer(double learning_rate, double momentum, bool use_nesterov = false);

 protected:
  OptimizerStep rule() const override;

 private:
  double momentum_;
  bool use_nesterov_;
};

/// a += g^2; var -= lr * g / sqrt(a).
class OPENRNN_API AdagradOptimizer : public Optimizer {
 public:
  /// Throws: ArgumentError unless the learning rate is finite and not negative.
  explicit AdagradOptimizer(double learning_rate, double initial_accumulator_value = 0.1);

 protected:
  OptimizerStep rule() const override;
};

/// ms = decay * ms + (1 - decay) * g^2; mom = momentum * mom + lr * g / sqrt(ms + epsilon);
/// var -= mom. Centered: mg = decay * mg + (1 - decay) * g, and ms - mg^2 + epsilon under the root.
class OPENRNN_API RMSPropOptimizer : public Optimizer {
 public:
  /// Throws: ArgumentError unless the learning rate is finite and not negative.
  explicit RMSPropOptimizer(double learning_rate, double decay = 0.9, double momentum = 0.0,
                            double epsilon = 1e-10, bool centered = false);

 protected:
  OptimizerStep rule() const override;

 private:
  double decay_, momentum_, epsilon_;
  bool centered_;
};

/// lr_t = lr * sqrt(1 - beta2^t) / (1 - beta1^t); m = beta1 * m + (1 - beta1) * g;
/// v = beta2 * v + (1 - beta2) * g^2; var -= lr_t * m / (sqrt(v) + epsilon). The betas are rounded
/// to float32, because the powers `beta1_power` and `beta2_power` are kept so.
class OPENRNN_API AdamOptimizer : public Optimizer {
 public:
  /// Throws: ArgumentError unless the learning rate is finite and not negative.
  explicit AdamOptimizer(double learning_rate = 0.001, double beta1 = 0.9, double beta2 = 0.999,
                         double epsilon = 1e-8);

 protected:
  OptimizerStep rule() const override;
  void make_scalars() override;
  std::function<void()> advance_scalars() const override;
  NamedTrackables scalars() const override;

 private:
  float beta1_, beta2_;
  double epsilon_;
  Variable beta1_power_, beta2_power_;
};

/// PyTorch's Adam, whose epsilon stands beside the corrected root:
/// m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2;
/// var -= lr * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon). With a weight decay it is
/// AdamW: var *= 1 - lr * weight_decay before that. Slots `X/Adam` and `X/Adam_1`, or `X/AdamW` and
/// `X/AdamW_1`; the int64 scalar `adam_step` counts t.
class OPENRNN_API AdamWOptimizer : public Optimizer {
 public:
  /// Throws: ArgumentError unless the learning rate is finite and not negative.
  explicit AdamWOptimizer(double learning_rate = 0.001, double beta1 = 0.9, double beta2 = 0.999,
                          double epsilon = 1e-8, double weight_decay = 0.0);

 protected:
  OptimizerStep rule() const override;
  void make_scalars() override;
  std::function<void()> advance_scalars() const override;
  NamedTrackables scalars() const override;

 private:
  double beta1_, beta2_, epsilon_, weight_decay_;
  Variable step_;
};

/// 'sgd', 'momentum', 'nesterov', 'adagrad', 'rmsprop', 'adam', with the usual constants (momentum
/// 0.9). Throws: ArgumentError listing the names.
OPENRNN_API std::unique_ptr<Optimizer> make_optimizer(std::string_view name, double learning_rate);
/// The names that make_optimizer takes.
OPENRNN_API std::span<const std::string_view> optimizer_names();

/// The int64 variable `global_step` of the current Graph, made with value 0 when it is not there.
OPENRNN_API Variable get_or_create_global_step();

}  // namespace openrnn::train
