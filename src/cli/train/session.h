// One training run of the tool: data, model, optimizer, loop and checkpoints.
#pragma once

#include "cli/flags.h"
#include "cli/report/progress.h"
#include "openrnn/train.h"

namespace openrnn::cli {

class Session {
 public:
  /// Starts a run, or takes up the one in --out. Throws: ArgumentError when --out holds a run and
  /// --resume is not given, for contradicting flags, and as the data's readers do.
  explicit Session(const TrainFlags& flags);
  /// Trains to the end; returns false when a signal ended it.
  bool train();
  /// Prints the held-out figure, on stdout.
  void print_result();

 private:
  std::optional<std::string> find_run() const;
  [[noreturn]] void refuse_run(const std::string& prefix) const;
  /// From here on the folder is this process's; before the run in it is read.
  void enter_folder();
  void take_up(const std::string& prefix);
  void load_data();
  void check_data_is_the_same(const std::string& hash) const;
  void build();
  /// All that a checkpoint says besides the variables.
  Extras extras() const;
  void save();
  void say_other_arithmetic();
  void after_step(const train::StepReport& report, EventWriter& events);
  /// Writes and shows the numbers of a step, after those of the step before.
  void show(const train::StepReport& report, EventWriter& events);
  bool time_to_save(std::int64_t step) const;

  TrainFlags flags_;
  Graph graph_;
  Graph::AsDefault current_;
  std::optional<Extras> resumed_;
  std::string resumed_prefix_;
  train::RunConfig config_;
  train::Text text_;
  std::optional<train::SeriesWindows> series_;
  std::unique_ptr<train::SequenceModel> model_;
  std::unique_ptr<train::Task> task_;
  std::unique_ptr<train::Optimizer> optimizer_;
  std::unique_ptr<train::Fit> fit_;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<CheckpointManager> manager_;
  std::unique_ptr<Progress> progress_;
  /// The last step while its numbers are not known.
  std::optional<train::StepReport> unknown_;
  std::chrono::steady_clock::time_point saved_at_;
  std::int64_t saved_step_ = -1;
};

}  // namespace openrnn::cli
