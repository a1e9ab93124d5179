// The first half of a run: its options, its folder, its data, and what it is built of.
#include <algorithm>
#include <filesystem>

#include "base/excerpt.h"
#include "train/group/share_table.h"
#include "train/run/option_error.h"
#include "train/run/resolve.h"
#include "train/run/run_impl.h"

namespace openrnn::train {
namespace {

namespace fs = std::filesystem;

/// Throws: OptionError unless `path` names something that can be a file; what only reading it tells
/// is left to its reader.
void require_file(const char* reader, const char* option, const std::string& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  const auto refuse = [&](const char* what) {
    throw OptionError(reader, {{option, true}, {" '" + path + "'" + what}});
  };
  if (status.type() == fs::file_type::not_found) refuse(": no such file, expected one");
  if (fs::is_directory(status)) refuse(" is a folder, expected a file");
}

/// Of the values of all variables, in their order.
std::string fingerprint_of(const Graph& graph) {
  std::string all;
  for (const Variable& variable : graph.variables()) {
    const Array value = variable.to_host();
    all += fingerprint({static_cast<const char*>(value.data()), value.size_bytes()});
  }
  return fingerprint(all);
}

}  // namespace

Run::Impl::Impl(const RunOptions& given) : options(given) {
  const Graph::AsDefault current(graph);
  if (!options.communicator || options.communicator->size() == 1) {
    open();
    make();
    return;
  }
  group = std::make_shared<Group>(*options.communicator, options.reduction);
  // In this order: rank 0 takes the folder, and finishes there what another run has begun.
  group->first_works([&] { open(); });
  group->together([&] {
    if (!first()) open();
  });
  group->guarded(
      [&] { group->require_same("Run", "the run to resume", resumed_from.value_or("none")); });
  group->together([&] { make(); });
  group->guarded([&] { check_agreement(); });
}

void Run::Impl::open() {
  if (options.out.empty()) refuse_option(Option{"out"}, " is empty, expected a folder");
  check_ranges(options);
  const std::optional<std::string> run = find_run();
  if (run && !options.resume) refuse_run(*run);
  if (run) {
    if (first()) enter_folder();
    take_up(find_run().value_or(*run));
  } else {
    check_together(options, options.task.value_or("text"));
    config = new_config(options);
    if (config.input.empty()) {
      refuse_option("no ", Option{"input"}, ", expected a file to train on");
    }
  }
  config.model.network.compute.device = options.device;
  check_processes();
  check_files();
}

void Run::Impl::check_processes() const {
  if (!group) return;
  const std::int64_t parts = config.fit.micro_batches;
  const std::string expected = expected_parts(parts, group->size());
  if (expected.empty()) return;
  refuse_option(Option{"micro_batches"}, " ", parts, " with ", group->size(),
                " processes, expected ", expected);
}

void Run::Impl::check_agreement() {
  group->require_same("Run", "data of fingerprint", config.data_hash);
  group->require_same(
      "Run", "the arithmetic",
      std::string(model->rnn().math_kind()) + " with sums of version " + arithmetic_version());
  group->require_same("Run", "a configuration of fingerprint", fingerprint(to_json(config)));
  group->require_same("Run", "variables of fingerprint", fingerprint_of(graph));
}

void Run::Impl::make() {
  load_data();
  build();
}

void Run::Impl::refuse_run(const std::string& prefix) const {
  refuse_option(Option{"out"}, " '", options.out, "' holds a run ('", prefix,
                "'), expected another folder, or ", Option{"resume"}, " to go on");
}

std::optional<std::string> Run::Impl::find_run() const {
  std::error_code ignored;
  if (!fs::is_directory(options.out, ignored)) return std::nullopt;
  return latest_checkpoint(options.out);
}

void Run::Impl::enter_folder() {
  std::error_code ignored;
  if (fs::exists(options.out, ignored) && !fs::is_directory(options.out, ignored)) {
    refuse_option(Option{"out"}, " '", options.out, "' is a file, expected a folder or nothing");
  }
  const CheckpointManagerOptions keep{.keep = options.keep};
  auto made = std::make_unique<CheckpointManager>(options.out, keep);
  claim = std::make_unique<FolderClaim>(options.out);
  made->lock();
  manager = std::move(made);
}

void Run::Impl::take_up(const std::string& prefix) {
  resumed_from = prefix;
  const TensorBundleReader reader(prefix);
  resumed = read_extras(reader);
  if (!resumed->contains("config")) {
    refuse_option("checkpoint '", prefix, "' is not of a run of this tool, expected one to resume");
  }
  config = run_config_from_json(resumed->get_string("config"));
  check_size(config, reader);
  if (options.task && *options.task != config.task) agree(options, 1, config);
  check_together(options, config.task);
  if (options.input) config.input = *options.input;
  if (options.valid && config.valid.empty()) {
    refuse_option(
        Option{"valid"}, " '", *options.valid,
        "' contradicts the run to resume, expected none, as that holds out lines of its input");
  }
  if (options.valid) config.valid = *options.valid;
}

void Run::Impl::check_files() const {
  const char* const reader = config.task == "text" ? "load_text" : "load_series";
  require_file(reader, "input", config.input);
  if (!config.valid.empty()) require_file(reader, "valid", config.valid);
}

void Run::Impl::check_data_is_the_same(const std::string& hash) const {
  if (!resumed || hash == config.data_hash) return;
  const RunConfig old = run_config_from_json(resumed->get_string("config"));
  // The first half is of what is learnt, the second one of a file to validate on.
  const bool same_input =
      !config.valid.empty() &&
      hash.substr(0, hash.size() / 2) == old.data_hash.substr(0, old.data_hash.size() / 2);
  refuse_option(Option{same_input ? "valid" : "input"}, " '",
                same_input ? config.valid : config.input, "' has other data (fingerprint ", hash,
                ") than the run to resume, expected that of '", same_input ? old.valid : old.input,
                "' (fingerprint ", old.data_hash, ")");
}

void Run::Impl::load_data() {
  std::string hash;
  if (config.task == "text") {
    text = load_text({config.input, config.valid, config.level, config.valid_fraction});
    hash = fingerprint(text.train) + fingerprint(text.valid);
    config.model.vocabulary = config.model.outputs = text.vocabulary.size();
  } else {
    hash = load_table();
    config.model.columns = config.model.outputs = series->columns();
  }
  check_data_is_the_same(hash);
  config.data_hash = hash;
}

std::string Run::Impl::load_table() {
  SeriesFile file;
  first_works([&] { file = open_series(config.input, config.columns); });
  if (group) share_table(*group, config.input, file);
  const SeriesOptions windows = series_options(config);
  first_works([&] { series.emplace(file, windows); });
  if (group) {
    // Found in passes over all rows, by rank 0 alone.
    SeriesScaling scaling = first() ? series->scaling() : SeriesScaling{};
    share_scaling(*group, file.names.size(), scaling);
    if (!first()) {
      series.emplace(file, windows, scaling, SeriesWindows::ScalingOf::kTrainingRows);
    }
  }
  config.columns = file.names;
  return file.fingerprint;
}

void Run::Impl::build() {
  model = std::make_unique<SequenceModel>(config.model);
  model->set_recompute(options.recompute);
  if (series) {
    task = std::make_unique<SeriesTask>(*model, *series, config.to_sequence);
  } else {
    TextTask::Options sizes;
    sizes.batch = config.batch;
    sizes.seq_len = config.seq_len;
    task = std::make_unique<TextTask>(*model, text, sizes);
  }
  if (resumed) {
    agree(options, task->windows(), config);
  } else {
    resolve_steps(options, task->windows(), config);
  }
  optimizer = make_optimizer(config.optimizer, config.fit.schedule.learning_rate);
  FitOptions here = config.fit;
  here.overlap = options.overlap;
  fit.reset(new Fit(*task, *optimizer, here, group));
  saver = std::make_unique<Saver>();
  if (resumed) {
    saver->restore(*resumed_from);
    fit->load(*resumed);
    saved_step = fit->step();
    return;
  }
  if (!first()) return;
  enter_folder();
  if (const auto run = find_run()) refuse_run(*run);  // of a process that was faster
}

}  // namespace openrnn::train
