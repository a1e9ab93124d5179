// What the processes of a run must agree on before its first step: each difference is named.
#include <gtest/gtest.h>

#include <fstream>

#include "formats/temp_folder.h"
#include "support/tagged_device.h"
#include "support/text_runs.h"
#include "train/group/ranks.h"

namespace openrnn::train {
namespace {

using formats::TempFolder;
using Change = std::function<void(RunOptions&)>;

RunOptions options_of(const TempFolder& folder, const std::string& out = "out") {
  const char* const words[] = {"the ", "cat ", "sat ", "on ", "a ", "mat,\n"};
  const std::string text = folder / "text.txt";
  std::ofstream(text) << std::string_view(text_of_words(words, 900, 0).train) << "\n";
  return {.out = folder / out,
          .input = text,
          .network = {{"layers", 2}, {"units", 7}, {"seed", 5}},
          .embedding = 3,
          .batch = 4,
          .seq_len = 6,
          .steps = 4,
          .lr_schedule = ScheduleKind::kConstant,
          .micro_batches = 2,
          .save_seconds = 0.0};
}

/// The errors of two ranks, of which the second one has other options.
std::vector<std::string> errors_of(const RunOptions& options, const Change& change) {
  return on_ranks(2, [&](Communicator& all) {
    RunOptions mine = options;
    mine.communicator = &all;
    if (all.rank() == 1) change(mine);
    const train::Run run(mine);
  });
}

void expect_named(const std::vector<std::string>& errors, const std::string& what) {
  const std::string named = "[Run] rank 1 of 2 has " + what;
  EXPECT_EQ(errors[1].substr(0, named.size()), named);
  EXPECT_EQ(errors[0], "[Group] rank 1 of 2 has failed: " + errors[1]);
}

TEST(Agreement, EveryOptionThatDecidesTheBitsIsOfAll) {
  const TempFolder folder;
  const std::pair<const char*, Change> changes[] = {
      {"valid_fraction", [](auto& mine) { mine.valid_fraction = 0.0501; }},
      {"embedding", [](auto& mine) { mine.embedding = 4; }},
      {"batch", [](auto& mine) { mine.batch = 6; }},
      {"seq_len", [](auto& mine) { mine.seq_len = 7; }},
      {"steps", [](auto& mine) { mine.steps = 5; }},
      {"optimizer", [](auto& mine) { mine.optimizer = "rmsprop"; }},
      {"lr", [](auto& mine) { mine.lr = 0.005; }},
      {"lr_schedule", [](auto& mine) { mine.lr_schedule = ScheduleKind::kCosine; }},
      {"warmup", [](auto& mine) { mine.warmup = 3; }},
      {"clip_norm", [](auto& mine) { mine.clip_norm = 2.0; }},
      {"micro_batches", [](auto& mine) { mine.micro_batches = 4; }},
      {"valid_every", [](auto& mine) { mine.valid_every = 3; }},
      {"patience", [](auto& mine) { mine.patience = 3; }},
      {"layers", [](auto& mine) { mine.network["layers"] = 1; }},
      {"units", [](auto& mine) { mine.network["units"] = 8; }},
      {"seed", [](auto& mine) { mine.network["seed"] = 6; }},
      {"cell", [](auto& mine) { mine.network["cell"] = "gru"; }},
      {"dropout", [](auto& mine) { mine.network["dropout"] = 0.5; }},
      {"forget_bias", [](auto& mine) { mine.network["forget_bias"] = 1.0; }}};
  for (const auto& [name, change] : changes) {
    SCOPED_TRACE(name);
    expect_named(errors_of(options_of(folder), change), "a configuration of fingerprint ");
  }
}

// Such as where one machine has other instructions.
TEST(Agreement, TheArithmeticIsNamedBeforeTheOptionsThatChoseIt) {
  const TempFolder folder;
  const RunOptions options = options_of(folder);
  RunOptions lower = options;
  lower.out = folder / "lower";
  lower.network["math"] = "bf16";
  const std::string kind(train::Run(lower).model().rnn().math_kind());
  ASSERT_NE(kind, "float32");
  const std::string version = " with sums of version " + arithmetic_version();
  auto errors = errors_of(options, [](auto& mine) { mine.network["dtype"] = "float64"; });
  expect_named(errors, "the arithmetic float64" + version);
  errors = errors_of(options, [](auto& mine) { mine.network["math"] = "bf16"; });
  expect_named(errors,
               "the arithmetic " + kind + version + ", expected that of rank 0, float32" + version);
}

TEST(Agreement, ATextToValidateOnIsPartOfTheData) {
  const TempFolder folder;
  RunOptions options = options_of(folder);
  options.valid = folder / "valid.txt";
  std::ofstream(*options.valid) << "a cat sat\non a mat,\n";
  std::ofstream(folder / "other.txt") << "a cat sat\non the mat,\n";
  expect_named(errors_of(options, [&](auto& mine) { mine.valid = folder / "other.txt"; }),
               "data of fingerprint ");
}

TEST(Agreement, TheRunToResumeIsOne) {
  const TempFolder folder;
  for (const char* const out : {"one", "two"}) train::Run(options_of(folder, out)).train();
  RunOptions options = options_of(folder, "one");
  options.resume = true;
  const std::string one = folder / "one/model.ckpt-4", two = folder / "two/model.ckpt-4";
  expect_named(errors_of(options, [&](auto& mine) { mine.out = folder / "two"; }),
               "the run to resume " + two + ", expected that of rank 0, " + one);
  expect_named(errors_of(options, [&](auto& mine) { mine.out = folder / "three"; }),
               "the run to resume none, expected that of rank 0, " + one);
  EXPECT_EQ(errors_of(options, [](auto&) {}), std::vector<std::string>(2));
}

/// Gives the host one bit of the arrays of one size that is not the device's.
class Wrong : public openrnn::testing::TaggedDevice {
 public:
  explicit Wrong(std::size_t bytes) : TaggedDevice("wrong:0", false), bytes_(bytes) {}
  void download(void* host, const void* from, std::size_t bytes) const override {
    TaggedDevice::download(host, from, bytes);
    if (bytes == bytes_) static_cast<char*>(host)[bytes - 1] ^= 1;
  }

 private:
  const std::size_t bytes_;
};

TEST(Agreement, EveryVariableHasTheValuesOfTheFirstRank) {
  const TempFolder folder;
  const RunOptions options = options_of(folder);
  std::vector<std::size_t> sizes{0};  // of nothing: as the others have it
  {
    train::Run run(options_of(folder, "sizes"));
    for (const Variable& variable : run.model().variables()) {
      sizes.push_back(variable.to_host().size_bytes());
    }
  }
  ASSERT_EQ(sizes.size(), 5U);
  for (const std::size_t bytes : sizes) {
    SCOPED_TRACE(bytes);
    const Wrong device(bytes);
    const auto errors = errors_of(options, [&](auto& mine) { mine.device = &device; });
    if (bytes == 0) {
      EXPECT_EQ(errors, std::vector<std::string>(2));
    } else {
      expect_named(errors, "variables of fingerprint ");
    }
  }
}

TEST(Agreement, EveryRankIsToldWhereTheFirstHasSaved) {
  const TempFolder folder;
  const RunOptions options = options_of(folder);
  const auto errors = on_ranks(2, [&](Communicator& all) {
    RunOptions mine = options;
    mine.communicator = &all;
    train::Run run(mine);
    EXPECT_EQ(run.save(), options.out + "/model.ckpt-0");
    run.train();
    EXPECT_EQ(run.step(), 4);
    EXPECT_EQ(run.save(), options.out + "/model.ckpt-4-2");
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

}  // namespace
}  // namespace openrnn::train
