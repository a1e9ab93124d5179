#include "cli/train/session.h"

#include <fmt/core.h>

#include <filesystem>

#include "base/excerpt.h"
#include "cli/commands.h"
#include "cli/report/series_report.h"
#include "cli/train/interrupt.h"
#include "cli/train/resolve.h"

namespace openrnn::cli {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw ArgumentError("[train] " + what); }

/// The weights of the best validation, kept beside the run's checkpoints when it may stop early.
std::string best_prefix(const std::string& out) { return out + "/best"; }

}  // namespace

Session::Session(const TrainFlags& flags)
    : flags_(flags), current_(graph_), saved_at_(std::chrono::steady_clock::now()) {
  if (flags.out.empty()) refuse("--out is empty, expected a folder");
  const std::optional<std::string> run = find_run();
  if (run && !flags.resume) refuse_run(*run);
  if (run) {
    enter_folder();
    take_up(find_run().value_or(*run));
  } else {
    check_flags(flags, flags.task.value_or("text"));
    config_ = new_config(flags);
    if (config_.input.empty()) refuse("no --input, expected a file to train on");
  }
  load_data();
  build();
}

void Session::refuse_run(const std::string& prefix) const {
  refuse("--out '" + flags_.out + "' holds a run ('" + prefix +
         "'), expected another folder, or --resume to go on");
}

std::optional<std::string> Session::find_run() const {
  std::error_code ignored;
  if (!std::filesystem::is_directory(flags_.out, ignored)) return std::nullopt;
  return latest_checkpoint(flags_.out);
}

void Session::enter_folder() {
  std::error_code ignored;
  if (std::filesystem::exists(flags_.out, ignored) &&
      !std::filesystem::is_directory(flags_.out, ignored)) {
    refuse("--out '" + flags_.out + "' is a file, expected a folder or nothing");
  }
  manager_ = std::make_unique<CheckpointManager>(flags_.out,
                                                 CheckpointManagerOptions{.keep = flags_.keep});
  manager_->lock();
}

void Session::take_up(const std::string& prefix) {
  resumed_prefix_ = prefix;
  const TensorBundleReader reader(prefix);
  resumed_ = read_extras(reader);
  if (!resumed_->contains("config")) {
    refuse("checkpoint '" + prefix + "' is not of a run of this tool, expected one to resume");
  }
  config_ = train::run_config_from_json(resumed_->get_string("config"));
  train::check_size(config_, reader);
  if (flags_.task && *flags_.task != config_.task) agree(flags_, 1, config_);
  check_flags(flags_, config_.task);
  if (flags_.input) config_.input = *flags_.input;
  if (flags_.valid && config_.valid.empty()) {
    refuse("--valid '" + *flags_.valid +
           "' contradicts the run to resume, expected none, as that holds out lines of its input");
  }
  if (flags_.valid) config_.valid = *flags_.valid;
}

void Session::check_data_is_the_same(const std::string& hash) const {
  if (!resumed_ || hash == config_.data_hash) return;
  const train::RunConfig old = train::run_config_from_json(resumed_->get_string("config"));
  // The first half is of what is learnt, the second one of a file to validate on.
  const bool same_input =
      !config_.valid.empty() &&
      hash.substr(0, hash.size() / 2) == old.data_hash.substr(0, old.data_hash.size() / 2);
  refuse(
      fmt::format("{} '{}' has other data (fingerprint {}) than the run to resume, "
                  "expected that of '{}' (fingerprint {})",
                  same_input ? "--valid" : "--input", same_input ? config_.valid : config_.input,
                  hash, same_input ? old.valid : old.input, old.data_hash));
}

void Session::load_data() {
  std::string hash;
  require_file("--input", config_.input);
  if (!config_.valid.empty()) require_file("--valid", config_.valid);
  if (config_.task == "text") {
    text_ = train::load_text({config_.input, config_.valid, config_.level, config_.valid_fraction});
    hash = train::fingerprint(text_.train) + train::fingerprint(text_.valid);
    config_.model.vocabulary = config_.model.outputs = text_.vocabulary.size();
  } else {
    const train::SeriesTable table = train::load_series(config_.input, config_.columns);
    const auto values = table.values.as<double>();
    hash = train::fingerprint(
        {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)});
    series_.emplace(table, train::series_options(config_));
    config_.columns = table.names;
    config_.model.columns = config_.model.outputs = series_->columns();
  }
  check_data_is_the_same(hash);
  config_.data_hash = hash;
}

void Session::build() {
  model_ = std::make_unique<train::SequenceModel>(config_.model);
  if (series_) {
    task_ = std::make_unique<train::SeriesTask>(*model_, *series_, config_.to_sequence);
  } else {
    train::TextTask::Options options;
    options.batch = config_.batch;
    options.seq_len = config_.seq_len;
    task_ = std::make_unique<train::TextTask>(*model_, text_, options);
  }
  if (resumed_) {
    agree(flags_, task_->windows(), config_);
  } else {
    resolve_steps(flags_, task_->windows(), config_);
  }
  optimizer_ = train::make_optimizer(config_.optimizer, config_.fit.schedule.learning_rate);
  fit_ = std::make_unique<train::Fit>(*task_, *optimizer_, config_.fit);
  saver_ = std::make_unique<Saver>();
  if (resumed_) {
    saver_->restore(resumed_prefix_);
    fit_->load(*resumed_);
    saved_step_ = fit_->step();
  }
  if (!resumed_) {
    enter_folder();
    if (const auto run = find_run()) refuse_run(*run);  // of a process that was faster
  }
  progress_ =
      std::make_unique<Progress>(std::string(task_->metric_name()), series_ ? "rows" : "tokens");
}

Extras Session::extras() const {
  Extras extras;
  extras.set_string("config", train::to_json(config_));
  if (!series_) {
    const std::vector<std::int32_t>& codes = text_.vocabulary.codes();
    extras.set("vocabulary", Array::of<std::int32_t>({static_cast<std::int64_t>(codes.size())},
                                                     std::span<const std::int32_t>(codes)));
  }
  fit_->save(extras);
  train::save_arithmetic(*model_, resumed_, extras);
  return extras;
}

void Session::save() {
  const std::string prefix = manager_->save(*saver_, fit_->step(), extras());
  saved_step_ = fit_->step();
  saved_at_ = std::chrono::steady_clock::now();
  progress_->say(fmt::format("saved {} (step {})", prefix, saved_step_));
}

bool Session::time_to_save(std::int64_t step) const {
  if (flags_.save_steps > 0 && step % flags_.save_steps == 0) return true;
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - saved_at_;
  return flags_.save_seconds > 0.0 && since.count() >= flags_.save_seconds;
}

void Session::show(const train::StepReport& report, EventWriter& events) {
  if (const auto before = std::exchange(unknown_, std::nullopt)) show(*before, events);
  const std::string unit = series_ ? "loss" : "bits_per_byte";
  events.add_scalar("train/" + unit, report.step, report.metric());
  events.add_scalar("train/learning_rate", report.step, report.learning_rate);
  events.add_scalar("train/gradient_norm", report.step, report.gradient_norm());
  if (report.validation) events.add_scalar("valid/" + unit, report.step, *report.validation);
  progress_->step(report);
}

void Session::after_step(const train::StepReport& report, EventWriter& events) {
  const bool saves = report.step == report.steps || interrupted() || time_to_save(report.step);
  // On a GPU the numbers of a step are shown after the next one, so that nobody waits for them.
  if (report.known() || report.validation || saves) {
    show(report, events);
  } else {
    if (unknown_) show(*std::exchange(unknown_, std::nullopt), events);
    unknown_ = report;
  }
  if (report.validation) {
    events.flush();
    if (report.best && config_.fit.patience > 0) saver_->write(best_prefix(flags_.out), extras());
  }
  if (saves) {
    events.flush();
    save();
  }
}

void Session::say_other_arithmetic() {
  if (!resumed_) return;
  const train::TrainedArithmetic before = train::trained_arithmetic(*resumed_);
  const std::string_view kind = model_->rnn().math_kind();
  constexpr const char* kGoesOn = "the run goes on, but not bit by bit as it would have";
  if (resumed_->contains("math_kind") && before.kind != kind) {
    progress_->say(fmt::format("note: trained as '{}' so far, this machine computes '{}'; {}",
                               before.kind, kind, kGoesOn));
  }
  if (const std::string now = train::arithmetic_version(); before.version != now) {
    progress_->say(
        fmt::format("note: trained with sums of version '{}' so far, this library's are "
                    "of version '{}'; {}",
                    before.version, now, kGoesOn));
  }
}

bool Session::train() {
  if (resumed_) {
    progress_->say(fmt::format("resumed {} (step {} of {})", resumed_prefix_, fit_->step(),
                               config_.fit.steps));
  } else if (flags_.resume) {
    progress_->say("nothing to resume in '" + flags_.out + "': starting afresh");
  }
  say_other_arithmetic();
  progress_->say(fmt::format("{}, {} threads, {} steps, {} windows an epoch, network: {}",
                             default_device().name(), num_threads(), config_.fit.steps,
                             task_->windows(), describe(model_->rnn().spec())));
  watch_for_interrupts();
  if (!resumed_) save();
  EventWriter events(flags_.out);
  const train::StopReason reason = fit_->run({[&](const train::StepReport& report) {
    after_step(report, events);
    return !interrupted();
  }});
  if (unknown_) show(*std::exchange(unknown_, std::nullopt), events);
  if (saved_step_ != fit_->step()) save();
  if (reason == train::StopReason::kPatience) {
    progress_->say(fmt::format("stopped early: best validation {:.4f} at step {} is in {}",
                               fit_->best().value_or(0.0), fit_->best_step(),
                               best_prefix(flags_.out)));
  }
  return reason != train::StopReason::kCallback;
}

void Session::print_result() {
  if (series_) {
    print_series_score(train::score_series(*model_, *series_), config_.columns);
    return;
  }
  const double value = task_->validate(false);
  fmt::print("validation {:.4f} bits per byte of the file (step {})\n", value, fit_->step());
}

}  // namespace openrnn::cli
