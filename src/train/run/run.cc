// The second half of a run: training, saving, and what it shows of itself.
#include "base/message.h"
#include "train/run/run_impl.h"

namespace openrnn::train {
namespace {

/// What train() does after each step.
class Progress {
 public:
  /// `events` null: another process writes and reports.
  Progress(const RunCallbacks& callbacks, Graph& outer, EventWriter* events, std::string unit)
      : callbacks_(callbacks), outer_(outer), events_(events), unit_(std::move(unit)) {}

  bool goes_on(const StepReport& report) const {
    if (!callbacks_.after_step) return true;
    const Graph::AsDefault current(outer_);
    return callbacks_.after_step(report);
  }
  /// Writes and reports the numbers of a step, after those of the step before; unless `now`, only
  /// when nobody has to wait for them, which on a GPU is after the next step.
  void report(const StepReport& report, bool now) {
    if (unknown_) show(*std::exchange(unknown_, std::nullopt));
    if (now || report.known()) {
      show(report);
    } else {
      unknown_ = report;
    }
  }
  void flush() {
    if (unknown_) show(*std::exchange(unknown_, std::nullopt));
    if (events_) events_->flush();
  }
  void saved(const std::string& prefix) const {
    if (!callbacks_.after_save || !events_) return;
    const Graph::AsDefault current(outer_);
    callbacks_.after_save(prefix);
  }

 private:
  void show(const StepReport& report) {
    if (!events_) return;
    events_->add_scalar("train/" + unit_, report.step, report.metric());
    events_->add_scalar("train/learning_rate", report.step, report.learning_rate);
    events_->add_scalar("train/gradient_norm", report.step, report.gradient_norm());
    if (report.validation) events_->add_scalar("valid/" + unit_, report.step, *report.validation);
    if (!callbacks_.on_report) return;
    const Graph::AsDefault current(outer_);
    callbacks_.on_report(report);
  }

  const RunCallbacks& callbacks_;
  Graph& outer_;
  EventWriter* events_;
  std::string unit_;
  /// The last step while its numbers are not known.
  std::optional<StepReport> unknown_;
};

}  // namespace

Extras Run::Impl::extras() const {
  Extras extras;
  extras.set_string("config", to_json(config));
  if (!series) {
    const std::vector<std::int32_t>& codes = text.vocabulary.codes();
    extras.set("vocabulary", Array::of<std::int32_t>({static_cast<std::int64_t>(codes.size())},
                                                     std::span<const std::int32_t>(codes)));
  }
  fit->save(extras);
  save_arithmetic(*model, resumed, extras);
  return extras;
}

void Run::Impl::first_works(const std::function<void()>& work) {
  group ? group->first_works(work) : work();
}

Group::Decision Run::Impl::decide(const Group::Decision& mine) {
  return group ? group->decide(mine) : mine;
}

std::string Run::Impl::save() {
  fit->gather();
  std::string prefix;
  first_works([&] { prefix = manager->save(*saver, fit->step(), extras()); });
  if (group) prefix = group->text_of_first(prefix);
  saved_step = fit->step();
  saved_at = std::chrono::steady_clock::now();
  return prefix;
}

void Run::Impl::save_best(const std::string& prefix) {
  fit->gather();
  first_works([&] { saver->write(prefix, extras()); });
}

bool Run::Impl::time_to_save(std::int64_t step) const {
  if (options.save_steps > 0 && step % options.save_steps == 0) return true;
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - saved_at;
  return options.save_seconds > 0.0 && since.count() >= options.save_seconds;
}

Run::Run(const RunOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Run::~Run() = default;

StopReason Run::train(const RunCallbacks& callbacks) {
  Impl& run = *impl_;
  Graph& outer = Graph::current();
  const Graph::AsDefault current(run.graph);
  StopReason reason = StopReason::kDone;
  const auto train = [&] {
    run.first_works([&] {
      if (!run.events) run.events.emplace(run.options.out);
    });
    Progress progress(callbacks, outer, run.events ? &*run.events : nullptr,
                      run.series ? "loss" : "bits_per_byte");
    if (run.saved_step < 0) progress.saved(run.save());
    reason = run.fit->run({[&](const StepReport& report) {
      const auto [goes_on, is_time] =
          run.decide({progress.goes_on(report), run.time_to_save(report.step)});
      const bool saves = report.step == report.steps || !goes_on || is_time;
      progress.report(report, saves || report.validation);
      if (report.validation || saves) progress.flush();
      if (report.best && run.config.fit.patience > 0) run.save_best(best_prefix());
      if (saves) progress.saved(run.save());
      return goes_on;
    }});
    progress.flush();
    if (run.saved_step != run.fit->step()) progress.saved(run.save());
  };
  run.group ? run.group->guarded(train) : train();
  return reason;
}

std::string Run::save() {
  if (!impl_->group) return impl_->save();
  std::string prefix;
  impl_->group->guarded([&] { prefix = impl_->save(); });
  return prefix;
}

double Run::validate() {
  const Graph::AsDefault current(impl_->graph);
  return impl_->task->validate(false);
}

std::int64_t Run::step() const { return impl_->fit->step(); }
const std::optional<double>& Run::best() const { return impl_->fit->best(); }
std::int64_t Run::best_step() const { return impl_->fit->best_step(); }
std::string Run::best_prefix() const { return impl_->options.out + "/best"; }
const RunConfig& Run::config() const { return impl_->config; }
ReductionCost Run::reduction_cost() const { return impl_->fit->reduction_cost(); }
const std::optional<std::string>& Run::resumed_from() const { return impl_->resumed_from; }
const Task& Run::task() const { return *impl_->task; }
SequenceModel& Run::model() { return *impl_->model; }
const Text* Run::text() const { return impl_->series ? nullptr : &impl_->text; }
const SeriesWindows* Run::series() const { return impl_->series ? &*impl_->series : nullptr; }

std::vector<std::string> Run::notes() const {
  std::vector<std::string> found;
  if (!impl_->resumed) return found;
  constexpr const char* kGoesOn = "the run goes on, but not bit by bit as it would have";
  const TrainedArithmetic before = trained_arithmetic(*impl_->resumed);
  const std::string_view kind = impl_->model->rnn().math_kind();
  if (impl_->resumed->contains("math_kind") && before.kind != kind) {
    found.push_back(openrnn::message("trained as '", before.kind,
                                     "' so far, this machine computes '", kind, "'; ", kGoesOn));
  }
  if (const std::string now = arithmetic_version(); before.version != now) {
    found.push_back(openrnn::message("trained with sums of version '", before.version,
                                     "' so far, this library's are of version '", now, "'; ",
                                     kGoesOn));
  }
  return found;
}

}  // namespace openrnn::train
