// Files of a run while it goes on, and those of a run that others have changed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "formats/temp_folder.h"
#include "openrnn/train.h"
#include "support/expect_error.h"

namespace openrnn::train {
namespace {

using formats::TempFolder;

constexpr std::int64_t kSteps = 12;

RunOptions options_of(const TempFolder& folder) {
  std::ofstream file(folder / "text.txt");
  for (int line = 0; line < 60; ++line) file << "line " << line * line % 17 << " of a text\n";
  return {.out = folder / "out",
          .input = folder / "text.txt",
          .network = {{"units", 5}},
          .embedding = 3,
          .batch = 2,
          .seq_len = 6,
          .steps = kSteps,
          .save_seconds = 0.0};
}

/// The last checkpoint of a run of these options, with another value of one of its extras.
std::string changed_run(const TempFolder& folder, const std::string& name,
                        const std::function<std::string(const std::string& before)>& change) {
  const RunOptions options = options_of(folder);
  train::Run(options).train();
  std::string prefix = options.out + "/model.ckpt-" + std::to_string(kSteps);
  std::vector<NamedTensor> tensors;
  const TensorBundleReader reader(prefix);
  for (const TensorInfo& info : reader.tensors()) {
    tensors.push_back({info.name, reader.read_value(info.name)});
    if (info.name != "openrnn/" + name) continue;
    tensors.back().value = StringTensor{{}, {change(reader.read_string(info.name))}};
  }
  write_tensor_bundle(prefix, tensors);
  return prefix;
}

/// Tag and step of what a run's file of events holds now.
std::vector<std::pair<std::string, std::int64_t>> events_in(const std::string& out) {
  std::vector<std::pair<std::string, std::int64_t>> found;
  for (const auto& entry : std::filesystem::directory_iterator(out)) {
    if (entry.path().filename().string().find("tfevents") == std::string::npos) continue;
    for (const ScalarEvent& event : read_scalar_events(entry.path().string())) {
      found.emplace_back(event.tag, event.step);
    }
  }
  return found;
}

// Who looks at a run that goes on sees what it has validated and saved.
TEST(RunFiles, EventsAreThereAfterAValidationAndAfterASave) {
  for (const bool validates : {true, false}) {
    const TempFolder folder;
    RunOptions options = options_of(folder);
    options.valid_every = validates ? 4 : 0;
    options.save_steps = validates ? 0 : 4;
    train::Run run(options);
    run.train({.after_step = [&](const StepReport& report) {
      if (report.step != 5) return true;
      const auto events = events_in(options.out);
      EXPECT_EQ(events.size(), 4U * 3U + (validates ? 1U : 0U));
      const std::string last = validates ? "valid/bits_per_byte" : "train/gradient_norm";
      EXPECT_TRUE(!events.empty() && events.back() == std::pair(last, std::int64_t{4}));
      return true;
    }});
  }
}

TEST(RunFiles, TheBestModelIsKeptWithAnyPatienceAtAll) {
  for (const std::int64_t patience : {0, 1, 2}) {
    const TempFolder folder;
    RunOptions options = options_of(folder);
    options.valid_every = 3;
    options.patience = patience;
    train::Run run(options);
    run.train();
    EXPECT_TRUE(run.best()) << "it is known in any case";
    EXPECT_EQ(run.best_prefix(), options.out + "/best");
    EXPECT_EQ(tensor_bundle_exists(run.best_prefix()), patience > 0) << patience;
    if (patience > 0) {
      TrainedModel best(run.best_prefix());
      EXPECT_EQ(best.extras().get_int("best_step"), run.best_step());
      EXPECT_EQ(best.extras().get_float("best"), *run.best());
      EXPECT_EQ(best.config().fit.patience, patience);
    }
  }
}

TEST(RunFiles, ARunThatGoesOnSaysWhatItsBitsDependOn) {
  const std::string rest = "; the run goes on, but not bit by bit as it would have";
  {
    const TempFolder folder;
    changed_run(folder, "math_kind", [](const std::string&) { return "elsewhere"; });
    train::Run run({.out = folder / "out", .resume = true});
    const std::string here(run.model().rnn().math_kind());
    EXPECT_EQ(run.notes(),
              std::vector<std::string>{"trained as 'elsewhere' so far, this machine computes '" +
                                       here + "'" + rest});
  }
  const TempFolder folder;
  changed_run(folder, "arithmetic", [](const std::string&) { return "2"; });
  const train::Run run({.out = folder / "out", .resume = true});
  EXPECT_EQ(run.notes(),
            std::vector<std::string>{"trained with sums of version '2' so far, this library's are "
                                     "of version '" +
                                     arithmetic_version() + "'" + rest});
}

// Before anything of that size is made.
TEST(RunFiles, AModelThatIsLargerThanItsFileIsNotGoneOnWith) {
  const TempFolder folder;
  const std::string prefix = changed_run(folder, "config", [](const std::string& before) {
    RunConfig config = run_config_from_json(before);
    config.model.network.num_units = 600;
    return to_json(config);
  });
  const std::string said = error_of<ArgumentError>(
      [&] { const train::Run run({.out = folder / "out", .resume = true}); });
  EXPECT_TRUE(said.starts_with("[check_size] " + prefix + " has ")) << said;
}

TEST(RunFiles, AConfigurationThatIsNoneIsNamed) {
  const std::string start = "[run_config_from_json] not the configuration of a run: ";
  for (const char* const text : {"{", "{}", "[]", "{\"task\": 3}"}) {
    const std::string said = error_of<ArgumentError>([&] { run_config_from_json(text); });
    EXPECT_TRUE(said.starts_with(start)) << said;
    EXPECT_TRUE(said.ends_with(", expected what to_json gives")) << said;
  }
}

// The task is what contradicts, not the options that go with it.
TEST(RunFiles, AnotherTaskIsNamedBeforeItsOptions) {
  const TempFolder folder;
  train::Run(options_of(folder)).train();
  EXPECT_EQ(error_of<OptionError>([&] {
              const train::Run run(
                  {.out = folder / "out", .resume = true, .task = "series", .horizon = 2});
            }),
            "[Run] task series contradicts the run to resume, expected task text");
}

// What a user is likely to give instead of a run, and what each of them is.
TEST(RunFiles, WhatIsNoRunIsRefusedByWhatItIs) {
  const TempFolder folder;
  const RunOptions options = options_of(folder);
  train::Run(options).train();
  const std::string prefix = options.out + "/model.ckpt-" + std::to_string(kSteps);
  EXPECT_EQ(resolve_run(options.out), prefix);
  EXPECT_EQ(resolve_run(prefix), prefix);
  const std::string saved = folder / "saved", text = folder / "text.txt";
  const std::string inside = saved + "/variables/variables";
  std::filesystem::create_directories(saved + "/variables");
  for (const char* const end : {".index", ".data-00000-of-00001"}) {
    std::filesystem::copy_file(prefix + end, inside + end);
  }
  const auto said = [](const std::string& run) {
    return error_of<ArgumentError>([&] { resolve_run(run); });
  };
  const std::string start = "[resolve_run] ";
  const std::string empty = " holds no checkpoint, expected the output folder of a run";
  const std::string rest = ", expected the output folder of a run or a checkpoint's prefix";
  EXPECT_EQ(said(saved), start + "folder '" + saved + "'" + empty) << "nothing says what it is";
  std::ofstream(saved + "/saved_model.pb") << "graph";
  EXPECT_EQ(said(saved), start + "folder '" + saved +
                             "' is a SavedModel, expected the prefix of its checkpoint, '" +
                             inside + "'");
  std::filesystem::remove(inside + ".index");
  EXPECT_EQ(said(saved), start + "folder '" + saved + "'" + empty);
  for (const char* const end : {".index", ".data-00000-of-00001"}) {
    EXPECT_EQ(said(prefix + end), start + "'" + prefix + end +
                                      "' is one file of a checkpoint, expected its prefix, '" +
                                      prefix + "'");
  }
  EXPECT_EQ(said(prefix + ".meta"), start + "'" + prefix + ".meta' does not exist" + rest);
  EXPECT_EQ(said("none"), start + "'none' does not exist" + rest);
  EXPECT_EQ(said("/dev/null"), start + "'/dev/null' is no regular file" + rest);
  const std::string file = said(text);
  EXPECT_TRUE(file.starts_with(start + "'" + text + "' is ") &&
              file.ends_with(" and no checkpoint" + rest))
      << file;
}

TEST(RunFiles, AFileIsNoPlaceForARun) {
  const TempFolder folder;
  RunOptions options = options_of(folder);
  options.out = folder / "text.txt";
  const auto before = std::filesystem::file_size(options.out);
  EXPECT_EQ(error_of<OptionError>([&] { train::Run(options).train(); }),
            "[Run] out '" + options.out + "' is a file, expected a folder or nothing");
  EXPECT_EQ(std::filesystem::file_size(options.out), before);
}

}  // namespace
}  // namespace openrnn::train
