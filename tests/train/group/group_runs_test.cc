// train::Run of several processes, here threads: one folder, the checkpoints of one process.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "formats/temp_folder.h"
#include "support/text_runs.h"
#include "train/group/ranks.h"

namespace openrnn::train {
namespace {

using formats::TempFolder;

constexpr std::int64_t kSteps = 20;

RunOptions options_of(const TempFolder& folder, bool series, const std::string& out) {
  RunOptions options{.out = folder / out,
                     .network = {{"layers", 2}, {"units", 7}, {"dropout", 0.25}, {"seed", 5}},
                     .batch = 8,
                     .seq_len = 6,
                     .steps = kSteps,
                     .micro_batches = 4,
                     .valid_every = 5,
                     .patience = 30,
                     .save_seconds = 0.0};
  if (series) {
    options.task = "series";
    options.input = folder / "table.csv";
    std::ofstream file(*options.input);
    file << "a,b\n";
    for (int row = 0; row < 90; ++row) file << row % 7 << ',' << row * row % 11 << '\n';
  } else {
    const char* const words[] = {"the ", "cat ", "sat ", "on ", "a ", "mat,\n"};
    options.input = folder / "text.txt";
    std::ofstream(*options.input) << std::string_view(text_of_words(words, 1200, 0).train) << "\n";
  }
  return options;
}

/// All files of a run but its log of events, which holds times.
std::string files_of(const std::string& out, std::int64_t step) {
  std::string all;
  for (const std::string& prefix : {"/model.ckpt-" + std::to_string(step), std::string("/best")}) {
    all += read_file(out + prefix + ".index") + read_file(out + prefix + ".data-00000-of-00001");
  }
  return all;
}

std::vector<std::string> train_on(int ranks, const RunOptions& options, std::int64_t stop = 1000) {
  return on_ranks(ranks, [&](Communicator& all) {
    RunOptions mine = options;
    mine.communicator = &all;
    train::Run run(mine);
    int saves = 0, reports = 0;
    run.train({.after_step =
                   [&](const StepReport& report) { return all.rank() != 0 || report.step < stop; },
               .on_report = [&](const StepReport&) { ++reports; },
               .after_save = [&](const std::string&) { ++saves; }});
    EXPECT_EQ(run.step(), std::min(stop, kSteps));
    EXPECT_EQ(saves > 0, all.rank() == 0);
    EXPECT_EQ(reports > 0, all.rank() == 0);
    EXPECT_EQ(run.reduction_cost().steps > 0, all.size() > 1);
  });
}

TEST(GroupRuns, WriteTheCheckpointsOfOneProcess) {
  for (const bool series : {false, true}) {
    const TempFolder folder;
    const RunOptions one = options_of(folder, series, "one");
    EXPECT_EQ(train_on(1, one), std::vector<std::string>(1));
    const std::string expected = files_of(one.out, kSteps);
    for (const int ranks : {2, 4}) {
      SCOPED_TRACE(testing::Message() << series << ranks);
      const RunOptions options = options_of(folder, series, "of" + std::to_string(ranks));
      EXPECT_EQ(train_on(ranks, options),
                std::vector<std::string>(static_cast<std::size_t>(ranks)));
      EXPECT_EQ(files_of(options.out, kSteps), expected);
    }
    RunOptions pieces = options_of(folder, series, "pieces");
    EXPECT_EQ(train_on(4, pieces, 7), std::vector<std::string>(4));
    pieces.resume = true;
    EXPECT_EQ(train_on(2, pieces, 13), std::vector<std::string>(2));
    EXPECT_EQ(train_on(1, pieces), std::vector<std::string>(1));
    EXPECT_EQ(files_of(pieces.out, kSteps), expected);
  }
}

TEST(GroupRuns, NameTheRankWithOtherDataOrOptions) {
  const TempFolder folder;
  const auto errors_of = [&](const std::function<void(RunOptions&)>& change) {
    RunOptions options = options_of(folder, false, "");
    return on_ranks(2, [&](Communicator& all) {
      RunOptions mine = options;
      mine.out = folder / "none";
      mine.communicator = &all;
      if (all.rank() == 1) change(mine);
      train::Run run(mine);
    });
  };
  std::ofstream(folder / "other.txt") << "another text\nof two lines and more\n";
  auto errors = errors_of([&](RunOptions& mine) { mine.input = folder / "other.txt"; });
  EXPECT_EQ(errors[1].find("[Run] rank 1 of 2 has data of fingerprint "), 0U) << errors[1];
  EXPECT_EQ(errors[0], "[Group] rank 1 of 2 has failed: " + errors[1]);
  errors = errors_of([](RunOptions& mine) { mine.lr = 0.125; });
  EXPECT_EQ(errors[1].find("[Run] rank 1 of 2 has a configuration of fingerprint "), 0U)
      << errors[1];
  errors = errors_of([](RunOptions& mine) { mine.micro_batches = 1; });
  EXPECT_EQ(errors[1],
            "[Run] micro_batches 1 with 2 processes, expected that many times a power of two, so "
            "that each computes a subtree of the sum: 2, 4, 8, ..");
  errors = errors_of([&](RunOptions& mine) { mine.input = folder / "missing"; });
  EXPECT_EQ(errors[0], "[Group] rank 1 of 2 has failed: " + errors[1]);
}

TEST(GroupRuns, ADiskThatRefusesASaveEndsAll) {
  const TempFolder folder;
  RunOptions options = options_of(folder, false, "out");
  options.save_steps = 3;
  std::filesystem::create_directory(options.out);
  const auto errors = on_ranks(4, [&](Communicator& all) {
    RunOptions mine = options;
    mine.communicator = &all;
    train::Run run(mine);
    run.train({.after_step = [&](const StepReport& report) {
      // In place of a full disk, which a test cannot make: the next save finds no folder.
      if (all.rank() == 0 && report.step == 5) {
        std::filesystem::rename(options.out, folder / "gone");
        std::ofstream(options.out) << "a file";
      }
      return true;
    }});
  });
  EXPECT_NE(errors[0], "");
  for (std::size_t rank = 1; rank < 4; ++rank) {
    EXPECT_EQ(errors[rank].find("[Group] rank 0 of 4 has failed: "), 0U) << errors[rank];
  }
  // The last save is whole.
  EXPECT_EQ(read_extras(TensorBundleReader(folder / "gone/model.ckpt-3")).get_int("window"), 3);
}

/// Counts its sums, and takes calls of one thread alone.
class Counted : public Forwarding {
 public:
  using Forwarding::Forwarding;
  void all_reduce(DType dtype, std::int64_t count, void* values) override {
    ++sums;
    Forwarding::all_reduce(dtype, count, values);
  }

  int sums = 0;
};

TEST(GroupRuns, AddAndOverlapAsTheyAreAsked) {
  for (const Reduction reduction : {Reduction::kExact, Reduction::kFast}) {
    const TempFolder folder;
    RunOptions options = options_of(folder, false, "out");
    options.steps = 2;
    options.reduction = reduction;
    const auto errors = on_ranks(2, [&](Communicator& inner) {
      Counted all(inner);
      RunOptions mine = options;
      mine.communicator = &all;
      train::Run(mine).train();
      EXPECT_EQ(all.sums, reduction == Reduction::kFast ? 2 : 0);
      mine.out = folder / "other";
      mine.overlap = true;
      train::Run run(mine);
    });
    for (const std::string& each : errors) {
      EXPECT_NE(each.find("[Fit] overlap with a communicator that takes the calls of one thread"),
                std::string::npos)
          << each;
    }
  }
}

/// Of rank 0: makes a checkpoint in the folder after all ranks have looked for one there.
class Interrupted : public Forwarding {
 public:
  Interrupted(Communicator& inner, std::string out) : Forwarding(inner), out_(std::move(out)) {}
  void all_gather(const void* send, void* receive, std::size_t bytes) override {
    if (rank() == 0 && ++calls_ == 3) {
      Graph graph;
      const Graph::AsDefault current(graph);
      const Variable variable("v", Array(DType::kFloat32, {2}));
      CheckpointManager(out_, {}).save(Saver(), 3, {});
    }
    Forwarding::all_gather(send, receive, bytes);
  }

 private:
  const std::string out_;
  int calls_ = 0;
};

TEST(GroupRuns, ARunThatWasBegunMeanwhileIsNotWrittenOver) {
  const TempFolder folder;
  const RunOptions options = options_of(folder, false, "out");
  const auto errors = on_ranks(2, [&](Communicator& inner) {
    Interrupted all(inner, options.out);
    RunOptions mine = options;
    mine.communicator = &all;
    train::Run run(mine);
  });
  const std::string other = options.out + "/model.ckpt-3";
  EXPECT_EQ(errors[0], "[Run] out '" + options.out + "' holds a run ('" + other +
                           "'), expected another folder, or resume to go on");
  EXPECT_EQ(errors[1], "[Group] rank 0 of 2 has failed: " + errors[0]);
  EXPECT_EQ(latest_checkpoint(options.out), other);
}

}  // namespace
}  // namespace openrnn::train
