// Several processes, here threads, end with the bits of one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>

#include "openrnn/ops.h"
#include "support/expect_error.h"
#include "train/group/ranks.h"
#include "train/parts/whole_trial.h"

namespace openrnn::train {
namespace {

constexpr std::int64_t kBatch = 8, kParts = 4;

struct Options {
  bool series = false;
  DType dtype = DType::kFloat32;
  double clip_norm = 0.05;
  std::int64_t steps = 12;
  Communicator* communicator = nullptr;
  Reduction reduction = Reduction::kExact;
  std::int64_t parts = kParts;
  bool overlap = false;
};

/// One process's run, with masks.
struct Trial : WholeTrial {
  explicit Trial(const Options& given)
      : WholeTrial(
            {.series = given.series,
             .batch = kBatch,
             .words = 500,
             .rows = 50,  // 4 windows of 8 rows, then one of 3: the last of the 4 parts has none
             .network = {.dtype = given.dtype,
                         .training = {.dropout = 0.3, .seed = 11, .output_dropout = 0.2}},
             .optimizer = "adam",
             .fit = {.steps = given.steps,
                     .clip_norm = given.clip_norm,
                     .validate_every = 5,
                     .micro_batches = given.parts,
                     .communicator = given.communicator,
                     .reduction = given.reduction,
                     .overlap = given.overlap}}) {}
  /// The values that each step reports, and at last what the graph holds.
  Bytes run(std::int64_t stop = 1000) {
    fit->run({[&](const StepReport& report) {
      const std::array values{report.result.loss(), report.gradient_norm(),
                              report.validation.value_or(-1.0)};
      reports.append(reinterpret_cast<const char*>(values.data()), sizeof(values));
      return report.step < stop;
    }});
    Bytes all = bytes_of(graph);
    all["reports"] = reports;
    return all;
  }

  std::string reports;
};

Bytes alone(const Options& options) { return Trial(options).run(); }

void expect_no_errors(const std::vector<std::string>& errors) {
  for (const std::string& each : errors) EXPECT_EQ(each, "");
}

void expect_bits_of_one_process(const Options& options, const std::vector<int>& counts) {
  const Bytes expected = alone(options);
  for (const int ranks : counts) {
    SCOPED_TRACE(testing::Message() << dtype_name(options.dtype) << options.series
                                    << options.clip_norm << options.parts << ranks);
    expect_no_errors(on_ranks(ranks, [&](Communicator& all) {
      Options mine = options;
      mine.communicator = &all;
      EXPECT_EQ(Trial(mine).run(), expected) << "rank " << all.rank();
    }));
  }
}

TEST(GroupBits, AreThoseOfOneProcess) {
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16, DType::kFloat16, DType::kFloat64}) {
    if (dtype == DType::kBfloat16 && default_device().engine()) continue;
    for (const bool series : {false, true}) {
      for (const double clip_norm : {0.0, 0.05}) {
        expect_bits_of_one_process({.series = series, .dtype = dtype, .clip_norm = clip_norm},
                                   {2, 4});
      }
      for (const std::int64_t parts : {4, 8}) {
        expect_bits_of_one_process(
            {.series = series, .dtype = dtype, .parts = parts, .overlap = true}, {2, 4});
      }
    }
  }
}

// Otherwise equal bits would prove nothing.
TEST(GroupBits, DependOnTheNumberOfParts) {
  const Bytes four = alone({});
  EXPECT_NE(alone({.parts = 2}), four);
  EXPECT_NE(alone({.parts = 8}), four);
}

// With fewer rows in the last window than processes.
TEST(GroupBits, EightProcessesOfOneRowEach) {
  expect_bits_of_one_process({.series = true, .parts = 8}, {8});
}

TEST(GroupBits, FastIsNearAndEqualOnAllRanks) {
  std::array<Bytes, 4> ends;
  expect_no_errors(on_ranks(4, [&](Communicator& all) {
    Trial trial({.dtype = DType::kFloat64,
                 .steps = 4,
                 .communicator = &all,
                 .reduction = Reduction::kFast});
    ends[static_cast<std::size_t>(all.rank())] = trial.run();
    EXPECT_EQ(trial.fit->reduction_cost().steps, 4);
    EXPECT_GT(trial.fit->reduction_cost().bytes, 0);
  }));
  for (const Bytes& each : ends) EXPECT_EQ(each, ends[0]);
  const Bytes exact = alone({.dtype = DType::kFloat64, .steps = 4});
  const auto numbers = [](const Bytes& of) {
    const std::string& bytes = of.at("dense/kernel");
    return std::span(reinterpret_cast<const double*>(bytes.data()), bytes.size() / sizeof(double));
  };
  for (std::size_t i = 0; i < numbers(exact).size(); ++i) {
    EXPECT_NEAR(numbers(ends[0])[i], numbers(exact)[i], 1e-6) << i;
  }
}

/// Stopped by one rank's callback at each of `stops`, saved by rank 0 and taken up by another
/// number of ranks.
Bytes in_pieces(Options options, const std::vector<std::pair<int, std::int64_t>>& pieces) {
  const std::string prefix =
      testing::TempDir() + "openrnn_group_" + std::to_string(::getpid()) + ".ckpt";
  Bytes last;
  std::string reports;
  bool started = false;
  for (const auto& [ranks, stop] : pieces) {
    expect_no_errors(on_ranks(ranks, [&, stop = stop](Communicator& all) {
      Options mine = options;
      mine.communicator = &all;
      Trial trial(mine);
      Saver saver;
      if (started) trial.fit->load(saver.restore(prefix));
      all.barrier();
      // Rank 0 goes on, and stops with the others all the same.
      const Bytes end = trial.run(all.rank() == all.size() - 1 ? stop : 1000);
      EXPECT_EQ(trial.fit->step(), stop);
      trial.fit->gather();
      if (all.rank() != 0) return;
      Extras extras;
      trial.fit->save(extras);
      saver.write(prefix, extras);
      last = end;
      reports += end.at("reports");
    }));
    started = true;
  }
  remove_tensor_bundle(prefix);
  last["reports"] = reports;
  return last;
}

TEST(GroupBits, GoOnWithAnotherNumberOfProcesses) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16}) {
    for (const bool series : {false, true}) {
      SCOPED_TRACE(testing::Message() << dtype_name(dtype) << series);
      const Options options{.series = series, .dtype = dtype, .steps = 11};
      const Bytes expected = alone(options);
      EXPECT_EQ(in_pieces(options, {{1, 2}, {4, 3}, {2, 7}, {4, 11}}), expected);
      EXPECT_EQ(in_pieces(options, {{4, 6}, {1, 11}}), expected);
    }
  }
}

TEST(GroupBits, CheckpointsHoldTheStatesOfAllRows) {
  const auto states = [](Communicator* all) {
    Trial trial({.dtype = DType::kFloat64, .steps = 2, .communicator = all});
    trial.run();
    trial.fit->gather();
    trial.fit->gather();  // nothing is left to do
    Extras extras;
    trial.fit->save(extras);
    Bytes found;
    for (const char* name : {"state_0", "state_1"}) {
      const Array state = extras.get_array(name, DType::kFloat64, {2, kBatch, 5});
      found[name].assign(static_cast<const char*>(state.data()), state.size_bytes());
    }
    return found;
  };
  const Bytes expected = states(nullptr);
  expect_no_errors(
      on_ranks(4, [&](Communicator& all) { EXPECT_EQ(states(&all), expected) << all.rank(); }));
}

TEST(GroupBits, ACallbackOfOneRankStopsAllAtItsStep) {
  expect_no_errors(on_ranks(4, [](Communicator& all) {
    Trial trial({.communicator = &all});
    trial.run(all.rank() == 2 ? 3 : 1000);
    EXPECT_EQ(trial.fit->step(), 3);
  }));
}

TEST(GroupBits, AnExceptionOfOneRankEndsAll) {
  for (const int bad : {0, 3}) {
    const auto errors = on_ranks(4, [&](Communicator& all) {
      Trial trial({.communicator = &all});
      trial.fit->run({[&](const StepReport& report) {
        if (all.rank() == bad && report.step == 2) throw IoError("[log] the disk is full");
        return true;
      }});
    });
    for (int rank = 0; rank < 4; ++rank) {
      const std::string told =
          "[Group] rank " + std::to_string(bad) + " of 4 has failed: [log] the disk is full";
      EXPECT_EQ(errors[static_cast<std::size_t>(rank)],
                rank == bad ? "[log] the disk is full" : told);
    }
  }
}

TEST(GroupBits, RefusesPartsThatTheProcessesCannotShare) {
  const auto errors =
      on_ranks(4, [](Communicator& all) { Trial({.communicator = &all, .parts = 2}); });
  for (const std::string& each : errors) {
    EXPECT_EQ(each,
              "[Fit] micro_batches 2 of 4 processes, expected that many times a power of two, so "
              "that each computes a subtree of the sum: 4, 8, 16, ..");
  }
}

}  // namespace
}  // namespace openrnn::train
