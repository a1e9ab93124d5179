// The training loop.
#include <cmath>

#include "openrnn/train_fit.h"
#include "train/group/overlap.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

void check_parts(const Task& task, std::int64_t parts) {
  if (parts == 1) return;
  if (parts < 1) {
    throw ArgumentError(message("Fit", "micro_batches ", parts, ", expected 1 or more"));
  }
  if (task.batch() == 0) {
    throw ArgumentError(message("Fit", "micro_batches ", parts, " of a task that computes whole ",
                                "batches alone, expected 1, or a task that overrides batch and ",
                                "loss_of_part"));
  }
  if (task.batch() % parts == 0) return;
  throw ArgumentError(message("Fit", "micro_batches ", parts, " of a batch of ", task.batch(),
                              " rows, expected parts of equal size: a divisor"));
}

void check_processes(std::int64_t parts, const Group& group) {
  const std::string expected = expected_parts(parts, group.size());
  if (expected.empty()) return;
  throw ArgumentError(message("Fit", "micro_batches ", parts, " of ", group.size(),
                              " processes, expected ", expected));
}

std::shared_ptr<Group> group_of(const FitOptions& options) {
  if (!options.communicator || options.communicator->size() == 1) return nullptr;
  return std::make_shared<Group>(*options.communicator, options.reduction);
}

}  // namespace

Fit::Fit(Task& task, Optimizer& optimizer, FitOptions options)
    : Fit(task, optimizer, options, group_of(options)) {}

Fit::Fit(Task& task, Optimizer& optimizer, FitOptions options, std::shared_ptr<Group> group)
    : task_(task), optimizer_(optimizer), options_(options), group_(std::move(group)) {
  const auto refuse = [](auto... parts) { throw ArgumentError(message("Fit", parts...)); };
  options_.schedule.validate();
  if (options_.steps < 0) refuse("steps ", options_.steps, ", expected 0 or more");
  if (!(options_.clip_norm >= 0.0) || !std::isfinite(options_.clip_norm)) {
    refuse("clip_norm ", options_.clip_norm, ", expected a finite number of at least 0");
  }
  if (options_.validate_every < 0 || options_.patience < 0) {
    refuse("validate_every ", options_.validate_every, " and patience ", options_.patience,
           ", expected 0 or more of each");
  }
  check_parts(task_, options_.micro_batches);
  if (group_) check_processes(options_.micro_batches, *group_);
  if (group_ && options_.overlap) {
    if (!group_->takes_any_thread()) {
      refuse("overlap with a communicator that takes the calls of one thread alone, expected one ",
             "whose takes_any_thread() is true: of threads, or MPI's with MPI_THREAD_SERIALIZED");
    }
    overlap_ = std::make_unique<Overlap>(*group_);
  }
  optimizer_.prepare(task_.variables());
  global_step_ = get_or_create_global_step();
}

Fit::~Fit() = default;

// Read, not copied to the host: that would wait for the last step.
std::int64_t Fit::step() const { return global_step_.read().to_host().as<std::int64_t>()[0]; }

StepResult Fit::take_step() {
  // The tape is destroyed before the update, which would have to copy what it keeps.
  std::optional<GradientTape> tape(std::in_place);
  const Tensor loss = task_.loss(position_);
  tape->close();
  const std::vector<Variable> variables = task_.variables();
  std::vector<DeviceArray> gradients = optimizer_.compute_gradients(*tape, loss, variables);
  tape.reset();
  return optimizer_.clip_and_apply(std::move(gradients), variables, global_step_,
                                   options_.clip_norm, loss);
}

// Returns whether any has rows.
bool Fit::own_parts(const std::vector<Variable>& variables, GradientSum& sum) {
  const std::int64_t rows = task_.rows(position_), parts = options_.micro_batches;
  const std::uint64_t step = ops::new_step_of_parts();
  const Group::Range own = group_ ? group_->own_of(parts) : Group::Range{0, parts};
  bool any = false;
  ops::BatchPart part{.whole_batch = rows};
  for (std::int64_t i = 0; i < own.end; ++i, part.first_row += part.rows) {
    part.rows = rows_of_part(rows, parts, i);
    if (i < own.begin) continue;
    if (part.rows == 0) {
      sum.skip();
      continue;
    }
    GradientTape tape;
    const ops::PartScope scope(part, step);
    const Tensor loss = task_.loss_of_part(position_, part);
    tape.close();
    const double share = static_cast<double>(part.rows) / static_cast<double>(rows);
    if (overlap_ && i + 1 == own.end) {
      overlap_->last_part(sum, optimizer_, tape, loss, share);
    } else {
      sum.add(optimizer_, tape, loss, variables, share);
    }
    any = true;
  }
  if (any) return true;
  // The layers count the step's masks all the same, as those of the other processes do.
  const ops::BatchPart first{0, rows_of_part(rows, parts, 0), rows};
  const ops::PartScope scope(first, step);
  task_.loss_of_part(position_, first);
  return false;
}

StepResult Fit::take_step_in_parts() {
  const std::vector<Variable> variables = task_.variables();
  GradientSum sum;
  if (overlap_) overlap_->begin(variables);
  const bool any = own_parts(variables, sum);
  GradientSum::Step whole;
  if (overlap_) {
    whole = overlap_->finish(sum, any);
  } else if (group_) {
    whole = group_->sum(any ? std::optional(sum.take()) : std::nullopt, variables);
  } else {
    whole = sum.take();
  }
  return optimizer_.clip_and_apply(std::move(whole.gradients), variables, global_step_,
                                   options_.clip_norm, whole.loss);
}

StepReport Fit::one_step() {
  StepReport report;
  report.steps = options_.steps;
  report.items = task_.items(position_);
  report.learning_rate = options_.schedule.at(step());
  optimizer_.set_learning_rate(report.learning_rate);

  report.result = options_.micro_batches == 1 ? take_step() : take_step_in_parts();
  if (++position_.window == task_.windows()) position_ = {position_.epoch + 1, 0};

  report.step = step();
  report.task = &task_;
  return report;
}

void Fit::validate(StepReport& report) {
  optimizer_.finish();
  // All by the same measure, the last one too, so that it can be compared with the best.
  double value = 0.0;
  if (!group_ || group_->first()) value = task_.validate(true);
  if (group_) value = group_->number_of_first(value);
  // Nothing is less than NaN: it would be the best for ever.
  if (!std::isfinite(value)) {
    throw ArgumentError(message("Fit", "a validation of ", value, " at step ", report.step,
                                ", expected a finite one (a lower learning rate may help)"));
  }
  report.validation = value;
  report.best = !best_ || *report.validation < *best_;
  if (report.best) {
    best_ = report.validation;
    best_step_ = report.step;
    worse_ = 0;
  } else {
    ++worse_;
  }
}

StopReason Fit::run(const std::vector<Callback>& callbacks) {
  StopReason reason = StopReason::kDone;
  const auto work = [&] {
    reason = steps(callbacks);
    optimizer_.finish();
  };
  group_ ? group_->guarded(work) : work();
  return reason;
}

bool Fit::goes_on(bool mine) { return group_ ? group_->decide({.goes_on = mine}).goes_on : mine; }

ReductionCost Fit::reduction_cost() const { return group_ ? group_->cost() : ReductionCost{}; }

void Fit::gather() {
  if (!group_) return;
  const std::int64_t rows = task_.batch() / group_->size();
  const ops::BatchPart own{group_->rank() * rows, rows, task_.batch()};
  group_->guarded([&] {
    optimizer_.finish();
    group_->with_messages([&](Communicator& all) { task_.gather(all, own); });
  });
}

StopReason Fit::steps(const std::vector<Callback>& callbacks) {
  while (step() < options_.steps) {
    if (options_.patience > 0 && worse_ >= options_.patience) return StopReason::kPatience;
    StepReport report = one_step();
    const bool last = report.step == options_.steps;
    if (last || (options_.validate_every > 0 && report.step % options_.validate_every == 0)) {
      validate(report);
    }
    bool go_on = true;
    for (const Callback& callback : callbacks) go_on = callback(report) && go_on;
    if (!goes_on(go_on)) return StopReason::kCallback;
  }
  return StopReason::kDone;
}

void Fit::save(Extras& extras) const {
  optimizer_.finish();
  extras.set_int("epoch", position_.epoch);
  extras.set_int("window", position_.window);
  extras.set_int("worse", worse_);
  extras.set_int("best_step", best_step_);
  if (best_) extras.set("best", Array::of<double>({}, std::span<const double>(&*best_, 1)));
  task_.save(extras);
}

void Fit::load(const Extras& extras) {
  const DataPosition position{extras.get_int("epoch"), extras.get_int("window")};
  if (position.epoch < 0 || position.window < 0 || position.window >= task_.windows()) {
    throw ArgumentError(message("Fit", "epoch ", position.epoch, " and window ", position.window,
                                " of the saved run, expected 0 or more, and 0 to ",
                                task_.windows() - 1, " with this data"));
  }
  const std::int64_t worse = extras.get_int("worse"), best_step = extras.get_int("best_step");
  if (worse < 0 || best_step < 0 || step() < 0) {
    throw ArgumentError(message("Fit", "worse ", worse, ", best_step ", best_step, " and step ",
                                step(), " of the saved run, expected 0 or more of each"));
  }
  std::optional<double> best;
  if (extras.contains("best")) best = extras.get_float("best");
  if (best && !std::isfinite(*best)) {
    throw ArgumentError(message("Fit", "best ", *best, " of the saved run, expected a finite one"));
  }
  task_.load(extras);
  position_ = position;
  worse_ = worse;
  best_step_ = best_step;
  best_ = best;
}

}  // namespace openrnn::train
