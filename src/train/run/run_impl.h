// What a Run is made of.
#pragma once

#include <chrono>

#include "openrnn/train_run.h"
#include "train/group/group.h"
#include "train/run/folder_claim.h"

namespace openrnn::train {

struct Run::Impl {
  explicit Impl(const RunOptions& options);

  /// The options and the run to resume; then data and model.
  void open();
  void make();
  bool first() const { return !group || group->first(); }
  void check_processes() const;
  /// Throws: StateError where another process has other data, options or values.
  void check_agreement();
  /// The latest checkpoint of `out`.
  std::optional<std::string> find_run() const;
  [[noreturn]] void refuse_run(const std::string& prefix) const;
  /// From here on the folder is this run's; before the run in it is read.
  void enter_folder();
  void take_up(const std::string& prefix);
  void check_files() const;
  void load_data();
  /// The windows of a series; returns its fingerprint.
  std::string load_table();
  void check_data_is_the_same(const std::string& hash) const;
  void build();

  /// All that a checkpoint says besides the variables.
  Extras extras() const;
  std::string save();
  void save_best(const std::string& prefix);
  /// Runs at rank 0; all wait for it.
  void first_works(const std::function<void()>& work);
  Group::Decision decide(const Group::Decision& mine);
  bool time_to_save(std::int64_t step) const;

  RunOptions options;
  std::shared_ptr<Group> group;  // null: this process alone
  Graph graph;
  std::optional<Extras> resumed;
  std::optional<std::string> resumed_from;
  RunConfig config;
  Text text;
  std::optional<SeriesWindows> series;
  std::unique_ptr<SequenceModel> model;
  std::unique_ptr<Task> task;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Fit> fit;
  std::unique_ptr<Saver> saver;
  std::unique_ptr<FolderClaim> claim;
  std::unique_ptr<CheckpointManager> manager;
  std::optional<EventWriter> events;
  std::chrono::steady_clock::time_point saved_at = std::chrono::steady_clock::now();
  std::int64_t saved_step = -1;
};

}  // namespace openrnn::train
