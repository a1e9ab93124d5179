// train::Run: the same bits however it was stopped, and what it says of options that do not fit.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <tuple>

#include "formats/temp_folder.h"
#include "openrnn/runtime.h"
#include "openrnn/train.h"
#include "support/expect_error.h"
#include "support/in_child.h"
#include "support/setting.h"
#include "support/text_runs.h"

namespace openrnn::train {
namespace {

using formats::TempFolder;

constexpr std::int64_t kSteps = 24;

std::string write_text(const TempFolder& folder) {
  const char* const words[] = {"the ", "cat ", "sat ", "on ", "a ", "mat,\n"};
  std::string path = folder / "text.txt";
  std::ofstream(path) << std::string_view(text_of_words(words, 1200, 0).train) << "\n";
  return path;
}

std::string write_table(const TempFolder& folder) {
  std::string path = folder / "table.csv";
  std::ofstream file(path);
  file << "a,b\n";
  for (int row = 0; row < 90; ++row) file << row % 7 << ',' << row * row % 11 << '\n';
  return path;
}

RunOptions text_options(const TempFolder& folder, const std::string& out) {
  return {.out = folder / out,
          .input = write_text(folder),
          .network = {{"layers", 2}, {"units", 7}, {"dropout", 0.25}, {"seed", 5}},
          .embedding = 4,
          .batch = 3,
          .seq_len = 9,
          .steps = kSteps,
          .save_seconds = 0.0};
}

RunOptions series_options_of(const TempFolder& folder, const std::string& out) {
  return {.out = folder / out,
          .task = "series",
          .input = write_table(folder),
          .network = {{"units", 5}},
          .seq_len = 8,
          .steps = kSteps,
          .save_seconds = 0.0};
}

/// Both files of the checkpoint of one step.
std::string checkpoint_bytes(const std::string& out, std::int64_t step) {
  const std::string prefix = out + "/model.ckpt-" + std::to_string(step);
  return read_file(prefix + ".index") + read_file(prefix + ".data-00000-of-00001");
}

RunCallbacks stop_at(std::int64_t step) {
  return {.after_step = [step](const StepReport& report) { return report.step < step; }};
}

template <class Error = OptionError>
std::string what(const RunOptions& options) {
  try {
    const train::Run run(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void stops_and_resumes_to_the_same_bits(RunOptions options, const std::string& whole,
                                        const std::string& parts) {
  options.out = whole;
  EXPECT_EQ(train::Run(options).train(), StopReason::kDone);
  options.out = parts;
  const auto said = in_child([&] {
    train::Run run(options);
    const bool stopped = run.train(stop_at(kSteps / 2)) == StopReason::kCallback;
    return std::string(stopped && run.step() == kSteps / 2 ? "half" : "not half");
  });
  ASSERT_EQ(said.value_or("died"), "half");
  RunOptions rest{.out = parts, .resume = true};  // all else is as the run has it
  train::Run run(rest);
  EXPECT_EQ(run.resumed_from(), parts + "/model.ckpt-" + std::to_string(kSteps / 2));
  EXPECT_EQ(run.step(), kSteps / 2);
  EXPECT_EQ(run.notes(), std::vector<std::string>());
  EXPECT_EQ(run.train(), StopReason::kDone);
  EXPECT_EQ(checkpoint_bytes(parts, kSteps), checkpoint_bytes(whole, kSteps));
}

TEST(Run, ATextStoppedHalfWayAndResumedByAnotherProcessHasTheSameBits) {
  const TempFolder folder;
  stops_and_resumes_to_the_same_bits(text_options(folder, ""), folder / "whole", folder / "parts");
}

TEST(Run, ASeriesStoppedHalfWayAndResumedByAnotherProcessHasTheSameBits) {
  const TempFolder folder;
  stops_and_resumes_to_the_same_bits(series_options_of(folder, ""), folder / "whole",
                                     folder / "parts");
}

TEST(Run, ANetworkWithOptionsOfItsOwnHasTheSameBits) {
  const TempFolder folder;
  const RunOptions plain = text_options(folder, "plain");
  train::Run(plain).train();
  RunOptions options = plain;
  options.network["forget_bias"] = 1.5;
  options.network["cell_clip"] = std::array{-0.25, 0.125};
  stops_and_resumes_to_the_same_bits(options, folder / "whole", folder / "parts");
  EXPECT_NE(checkpoint_bytes(folder / "whole", kSteps), checkpoint_bytes(plain.out, kSteps));
  TrainedModel trained(folder / "parts");
  const RnnSpec& network = trained.model().rnn().spec();
  EXPECT_EQ(network.forget_bias, 1.5);
  EXPECT_EQ(network.cell_clip, (std::array{-0.25, 0.125}));
}

TEST(Run, GoesOnInOneObject) {
  const TempFolder folder;
  EXPECT_EQ(train::Run(text_options(folder, "whole")).train(), StopReason::kDone);
  train::Run run(text_options(folder, "parts"));
  for (const std::int64_t step : {5, 6, 17}) {
    EXPECT_EQ(run.train(stop_at(step)), StopReason::kCallback);
    EXPECT_EQ(run.step(), step);
    EXPECT_FALSE(checkpoint_bytes(folder / "parts", step).empty());
  }
  EXPECT_EQ(run.train(), StopReason::kDone);
  EXPECT_EQ(run.train(), StopReason::kDone);  // nothing is left to do
  EXPECT_EQ(checkpoint_bytes(folder / "parts", kSteps), checkpoint_bytes(folder / "whole", kSteps));
}

TEST(Run, CallbacksSeeEveryStepAndSave) {
  const TempFolder folder;
  RunOptions options = text_options(folder, "out");
  options.save_steps = 10;
  options.valid_every = 12;
  train::Run run(options);
  std::vector<std::int64_t> steps, reported;
  std::vector<std::string> saved;
  std::optional<double> validation;
  const RunCallbacks callbacks{
      .after_step =
          [&](const StepReport& report) {
            steps.push_back(report.step);
            return true;
          },
      .on_report =
          [&](const StepReport& report) {
            EXPECT_TRUE(report.known());
            EXPECT_GT(report.metric(), 0.0);
            reported.push_back(report.step);
            if (report.validation) validation = report.validation;
          },
      .after_save = [&](const std::string& prefix) { saved.push_back(prefix); }};
  run.train(callbacks);
  ASSERT_EQ(steps.size(), static_cast<std::size_t>(kSteps));
  EXPECT_EQ(reported, steps);
  const std::string prefix = folder / "out" + "/model.ckpt-";
  EXPECT_EQ(saved, (std::vector{prefix + "0", prefix + "10", prefix + "20", prefix + "24"}));
  // The held-out text is shorter than what a quick validation reads.
  EXPECT_EQ(validation, run.validate());
  EXPECT_TRUE(run.best() && *run.best() <= *validation);
  EXPECT_EQ(run.save(), prefix + "24-2");
}

// What TensorBoard shows are the numbers of the reports, each at its step.
TEST(Run, WritesTheNumbersOfItsReports) {
  for (const bool text : {true, false}) {
    const TempFolder folder;
    RunOptions options = text ? text_options(folder, "out") : series_options_of(folder, "out");
    options.valid_every = 9;
    train::Run run(options);
    using Event = std::tuple<std::string, std::int64_t, float>;
    std::vector<Event> expected;
    const std::string unit = text ? "bits_per_byte" : "loss";
    run.train({.on_report = [&](const StepReport& report) {
      const auto add = [&](const std::string& tag, double value) {
        expected.emplace_back(tag, report.step, static_cast<float>(value));
      };
      add("train/" + unit, report.metric());
      add("train/learning_rate", report.learning_rate);
      add("train/gradient_norm", report.gradient_norm());
      if (report.validation) add("valid/" + unit, *report.validation);
    }});
    ASSERT_EQ(expected.size(), 3U * kSteps + 3U);
    std::vector<Event> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "out")) {
      if (entry.path().filename().string().find("tfevents") == std::string::npos) continue;
      for (const ScalarEvent& event : read_scalar_events(entry.path().string())) {
        found.emplace_back(event.tag, event.step, static_cast<float>(event.value));
      }
    }
    EXPECT_EQ(found, expected);
  }
}

TEST(Run, ResumedSavesOnlyWhatIsNew) {
  const TempFolder folder;
  const std::string prefix = folder / "out" + "/model.ckpt-";
  train::Run(text_options(folder, "out")).train(stop_at(5));
  for (const bool done : {false, true}) {
    train::Run run({.out = folder / "out", .resume = true, .save_seconds = 0.0});
    std::vector<std::string> saved;
    run.train({.after_save = [&](const std::string& at) { saved.push_back(at); }});
    EXPECT_EQ(saved, done ? std::vector<std::string>{} : std::vector{prefix + "24"});
  }
}

// The time counts from the last save, whichever it was.
TEST(Run, SavesAgainAfterItsSecondsAlone) {
  const TempFolder folder;
  RunOptions options = text_options(folder, "out");
  options.save_seconds = 0.5;
  std::vector<std::string> saved;
  train::Run(options).train(
      {.after_step =
           [](const StepReport& report) {
             if (report.step == 4) std::this_thread::sleep_for(std::chrono::milliseconds(600));
             return true;
           },
       .after_save = [&](const std::string& prefix) { saved.push_back(prefix); }});
  EXPECT_EQ(std::count(saved.begin(), saved.end(), folder / "out" + "/model.ckpt-4"), 1);
  EXPECT_LT(saved.size(), 10U) << "not after each of the other twenty";
}

TEST(Run, ValidatesOnTheWholeText) {
  const TempFolder folder;
  RunOptions options = text_options(folder, "out");
  options.steps = 1;
  options.valid = folder / "valid.txt";
  const char* const words[] = {"the ", "cat ", "on ", "mat,\n"};
  std::ofstream(*options.valid) << std::string_view(text_of_words(words, 40000, 0).train);
  train::Run run(options);
  const std::string_view valid = run.text()->valid;
  ASSERT_GT(valid.size(), 33000U);  // a quick validation reads 32 KiB
  const auto score = [&](std::size_t bytes) {
    return score_text(run.model(), run.text()->vocabulary, valid.substr(0, bytes)).bits_per_byte();
  };
  EXPECT_EQ(run.validate(), score(valid.size()));
  run.train();
  EXPECT_EQ(run.best(), score(32768));
  EXPECT_EQ(run.validate(), score(valid.size()));
}

TEST(Run, ComputesOnTheDeviceThatIsGiven) {
  const TempFolder folder;
  RunOptions options = text_options(folder, "out");
  options.device = &device("cpu");
  train::Run run(options);
  for (const Variable& variable : run.model().variables()) {
    EXPECT_EQ(&variable.device(), options.device) << variable.name();
  }
}

TEST(Run, LeavesTheCurrentGraphAlone) {
  const TempFolder folder;
  Graph mine;
  const Graph::AsDefault current(mine);
  train::Run run(text_options(folder, "out"));
  run.train({.after_step = [&](const StepReport&) { return &Graph::current() == &mine; },
             .on_report = [&](const StepReport&) { EXPECT_EQ(&Graph::current(), &mine); },
             .after_save = [&](const std::string&) { EXPECT_EQ(&Graph::current(), &mine); }});
  EXPECT_EQ(run.step(), kSteps);
  run.validate();
  EXPECT_TRUE(mine.variables().empty());
  EXPECT_TRUE(mine.saveables().empty());
}

TEST(Run, AnErrorOfACallbackEndsItWithoutASave) {
  const TempFolder folder;
  train::Run run(text_options(folder, "out"));
  const RunCallbacks broken{.after_step = [](const StepReport& report) -> bool {
    if (report.step == 3) throw StateError("mine");
    return true;
  }};
  EXPECT_THROW(run.train(broken), StateError);
  EXPECT_EQ(run.step(), 3);
  EXPECT_EQ(latest_checkpoint(folder / "out"), folder / "out" + "/model.ckpt-0");
  EXPECT_EQ(run.save(), folder / "out" + "/model.ckpt-3");
}

TEST(Run, PatienceKeepsTheBestWeights) {
  const TempFolder folder;
  RunOptions options = text_options(folder, "out");
  options.valid_every = 1;
  options.patience = 2;
  options.lr = 3.0;  // too high to learn anything
  options.warmup = 0;
  options.lr_schedule = ScheduleKind::kConstant;
  train::Run run(options);
  EXPECT_EQ(run.train(), StopReason::kPatience);
  EXPECT_EQ(run.step(), run.best_step() + 2);
  TrainedModel best(run.best_prefix());
  EXPECT_EQ(best.extras().get_int("best_step"), run.best_step());
  // What it ends with is saved, too.
  EXPECT_EQ(latest_checkpoint(folder / "out"),
            folder / "out" + "/model.ckpt-" + std::to_string(run.step()));
}

TEST(Run, AnotherOptionIsRefusedWithBothValues) {
  const TempFolder folder;
  train::Run(text_options(folder, "out")).train(stop_at(1));
  const auto refused = [&](const auto& change) {
    RunOptions options{.out = folder / "out", .resume = true};
    change(options);
    return what(options);
  };
  const std::string middle = " contradicts the run to resume, expected ";
  EXPECT_EQ(refused([](auto& o) { o.network["units"] = 8; }), "[Run] units 8" + middle + "units 7");
  EXPECT_EQ(refused([](auto& o) { o.network["cell"] = "gru"; }),
            "[Run] cell gru" + middle + "cell lstm");
  EXPECT_EQ(refused([](auto& o) { o.network["dtype"] = "float64"; }),
            "[Run] dtype float64" + middle + "dtype float32");
  EXPECT_EQ(refused([](auto& o) { o.lr = 0.5; }), "[Run] lr 0.5" + middle + "lr 0.004");
  EXPECT_EQ(refused([](auto& o) { o.lr_schedule = ScheduleKind::kConstant; }),
            "[Run] lr_schedule constant" + middle + "lr_schedule cosine");
  EXPECT_EQ(refused([](auto& o) { o.steps = 30; }), "[Run] steps 30" + middle + "steps 24");
  EXPECT_EQ(refused([](auto& o) { o.task = "series"; }),
            "[Run] task series" + middle + "task text");
  EXPECT_EQ(refused([](auto& o) { o.level = TextLevel::kChar; }),
            "[Run] level char" + middle + "level byte");
  const std::string input = text_options(folder, "out").input.value();
  EXPECT_EQ(refused([&](auto& o) { o.valid = input; }),
            "[Run] valid '" + input + "'" + middle + "none, as that holds out lines of its input");
  // The same values are no contradiction.
  EXPECT_EQ(refused([&](auto& o) {
              o = text_options(folder, "out");
              o.resume = true;
            }),
            "no error");
}

TEST(Run, OptionsOutOfRangeAreRefusedBeforeAnythingIsMade) {
  const TempFolder folder;
  const auto refused = [&](const auto& change) {
    RunOptions options = text_options(folder, "out");
    change(options);
    return what<ArgumentError>(options);
  };
  EXPECT_EQ(refused([](auto& o) { o.network["units"] = 0; }), "[Run] units 0, expected 1 or more");
  EXPECT_EQ(refused([](auto& o) { o.network["seed"] = -1; }), "[Run] seed -1, expected 0 or more");
  EXPECT_EQ(refused([](auto& o) { o.keep = -1; }), "[Run] keep -1, expected 0 or more");
  EXPECT_EQ(refused([](auto& o) { o.save_seconds = -1.0; }),
            "[Run] save_seconds -1, expected a finite number of 0 or more");
  EXPECT_EQ(refused([](auto& o) { o.task = "speech"; }),
            "[Run] task 'speech', expected one of text, series");
  EXPECT_EQ(refused([](auto& o) { o.target = "one"; }),
            "[Run] target with task text, expected it with task series alone");
  EXPECT_EQ(refused([](auto& o) { o.epochs = 2; }),
            "[Run] steps and epochs, expected one of the two");
  EXPECT_EQ(refused([](auto& o) { o.patience = 1, o.valid_every = 0; }),
            "[Run] patience and valid_every 0, expected one of the two");
  EXPECT_EQ(refused([](auto& o) { o.input.reset(); }),
            "[Run] no input, expected a file to train on");
  EXPECT_EQ(refused([](auto& o) { o.input = "/no/file"; }),
            "[load_text] input '/no/file': no such file, expected one");
  EXPECT_EQ(refused([](auto& o) { o.out = ""; }), "[Run] out is empty, expected a folder");
  EXPECT_NE(refused([](auto& o) { o.network["dropout"] = 1.5; }).find("1.5"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

TEST(Run, AFolderInUseSaysSo) {
  const TempFolder folder;
  const RunOptions options = text_options(folder, "out");
  RunOptions resumed = options;
  resumed.resume = true;
  const std::string user = " is in use by ", expected = ", expected one run at a time in a folder";
  {
    train::Run run(options);
    const std::string here = what<StateError>(options);
    EXPECT_EQ(here, "[Run] " + options.out + user + "another run of this process" + expected);
    run.train(stop_at(2));
    EXPECT_EQ(what<StateError>(resumed), here);
    // Whatever link leads to it.
    std::filesystem::create_directory_symlink(options.out, folder / "link");
    RunOptions linked = resumed;
    linked.out = folder / "link";
    EXPECT_EQ(what<StateError>(linked),
              "[Run] " + linked.out + user + "another run of this process" + expected);
  }
  EXPECT_EQ(what<Error>(resumed), "no error");
  EXPECT_EQ(what(options), "[Run] out '" + options.out + "' holds a run ('" + options.out +
                               "/model.ckpt-2'), expected another folder, or resume to go on");
}

TEST(Run, AFolderThatAnotherProcessUsesSaysSo) {
  const TempFolder folder;
  const RunOptions options = text_options(folder, "out");
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    try {
      const train::Run run(options);
      char go = 'r';
      (void)!write(ready[1], &go, 1);
      pause();  // until it is killed
    } catch (...) {
    }
    _exit(1);
  }
  char go = 0;
  close(ready[1]);
  ASSERT_EQ(read(ready[0], &go, 1), 1);
  const std::string said = what<StateError>(options);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  EXPECT_NE(said.find(options.out + " is in use by process " + std::to_string(child)),
            std::string::npos)
      << said;
  EXPECT_EQ(what<Error>(options), "no error");  // the lock went with its holder
}

// The reference engine keeps all that a backward pass reads.
TEST(Run, RecomputesWhereItIsAsked) {
  const TempFolder folder;
  const openrnn::testing::Setting engine("OPENRNN_ENGINE", "reference");
  RunOptions options = text_options(folder, "out");
  options.device = &device("cpu");
  options.steps = 1;
  options.recompute = 5;
  train::Run run(options);
  EXPECT_THROW(run.train(), UnsupportedError);
  options.out = folder / "other";
  options.recompute = 0;
  EXPECT_EQ(train::Run(options).train(), StopReason::kDone);
}

TEST(Run, OtherDataThanThoseOfTheRunAreNamed) {
  const TempFolder folder;
  RunOptions options = text_options(folder, "out");
  options.valid = folder / "valid.txt";
  const std::string input = *options.input, valid = *options.valid;
  const auto write = [](const std::string& path, const char* bytes) {
    std::ofstream(path) << bytes;
    return fingerprint(bytes);
  };
  const std::string held_out = write(valid, "the cat sat\n"), text = fingerprint(read_file(input));
  train::Run(options).train(stop_at(1));
  const std::string other = folder / "other.txt", words = write(other, "a mat, on a mat\n");
  const auto refused = [&](const char* option, const std::string& hash, const std::string& path) {
    return "[Run] " + std::string(option) + " '" + other + "' has other data (fingerprint " + hash +
           ") than the run to resume, expected that of '" + path + "' (fingerprint " + text +
           held_out + ")";
  };
  RunOptions again{.out = options.out, .resume = true};
  again.input = other;
  EXPECT_EQ(what(again), refused("input", words + held_out, input));
  again.input.reset();
  again.valid = other;
  EXPECT_EQ(what(again), refused("valid", text + words, valid));
  // What is given is looked for, and what the run has.
  again.valid = folder.path();
  EXPECT_EQ(what<ArgumentError>(again),
            "[load_text] valid '" + folder.path() + "' is a folder, expected a file");
  again.valid.reset();
  std::filesystem::remove(valid);
  EXPECT_EQ(what<ArgumentError>(again),
            "[load_text] valid '" + valid + "': no such file, expected one");
}

TEST(Run, ACheckpointOfNoRunIsNotGoneOnWith) {
  const TempFolder folder;
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable variable("v", Array(DType::kFloat32, {2}));
  const std::string prefix = CheckpointManager(folder / "out", {}).save(Saver(), 3, {});
  EXPECT_EQ(
      what({.out = folder / "out", .resume = true}),
      "[Run] checkpoint '" + prefix + "' is not of a run of this tool, expected one to resume");
  EXPECT_EQ(
      error_of<ArgumentError>([] { TrainedModel("/dev/null"); }),
      "[resolve_run] '/dev/null' is no regular file, expected the output folder of a run or a "
      "checkpoint's prefix");
}

TEST(OptionError, NamesOptionsAsItsReaderDoes) {
  const OptionError error("Run", {{"seq_len", true}, {" 0, expected 1 or more"}});
  EXPECT_STREQ(error.what(), "[Run] seq_len 0, expected 1 or more");
  EXPECT_EQ(error.call(), "Run");
  EXPECT_EQ(error.text([](const std::string& option) { return "--" + option; }),
            "--seq_len 0, expected 1 or more");
}

}  // namespace
}  // namespace openrnn::train
