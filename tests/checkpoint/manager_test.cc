// Names, order and removal of a run's checkpoints; what a killed process leaves.
#include "formats/temp_folder.h"
#include "openrnn/checkpoint.h"
#include "saveables/support.h"

namespace openrnn {
namespace {

using formats::TempFolder;
using testing::thrown;
using Names = std::vector<std::string>;

struct SmallRun {
  Graph graph;
  Graph::AsDefault current{graph};
  Variable step{"global_step", Array(DType::kInt64, {}), false};

  std::string save(CheckpointManager& manager, std::int64_t at) const {
    step.assign(Array::of<std::int64_t>({}, {&at, 1}).view());
    Extras extras;
    extras.set_string("config", "{}");
    return manager.save(Saver(), at, extras);
  }
  std::int64_t restored(const std::string& prefix) const {
    Saver().restore(prefix);
    return step.to_host().as<std::int64_t>()[0];
  }
};

Names files_of(const Names& stems) {
  Names files{"checkpoint"};
  for (const std::string& stem : stems) {
    files.push_back(stem + ".data-00000-of-00001");
    files.push_back(stem + ".index");
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(CheckpointManager, KeepsTheNewest) {
  const TempFolder folder;
  const SmallRun run;
  EXPECT_EQ(latest_checkpoint(folder.path()), std::nullopt);
  CheckpointManager manager(folder.path(), {.keep = 2});
  EXPECT_EQ(run.save(manager, 0), folder / "model.ckpt-0");
  EXPECT_EQ(run.save(manager, 5), folder / "model.ckpt-5");
  EXPECT_EQ(run.save(manager, 10), folder / "model.ckpt-10");
  EXPECT_EQ(folder.names(), files_of({"model.ckpt-10", "model.ckpt-5"}));
  EXPECT_EQ(manager.checkpoints(), (Names{folder / "model.ckpt-5", folder / "model.ckpt-10"}));
  EXPECT_EQ(latest_checkpoint(folder.path()), folder / "model.ckpt-10");
  EXPECT_EQ(run.restored(*manager.latest()), 10);
  const auto state = read_checkpoint_state(folder.path());
  EXPECT_EQ(state->timestamps.size(), 2u);
}

TEST(CheckpointManager, AResumedRunGoesOnInItsFolder) {
  const TempFolder folder;
  const SmallRun run;
  CheckpointManager first(folder.path(), {.keep = 2});
  run.save(first, 1);
  run.save(first, 2);
  CheckpointManager second(folder.path() + "//", {.keep = 2});
  EXPECT_EQ(second.checkpoints(), first.checkpoints());
  // The one that the state file names is never written over.
  EXPECT_EQ(run.save(second, 2), folder / "model.ckpt-2-2");
  EXPECT_EQ(run.save(second, 2), folder / "model.ckpt-2-3");
  EXPECT_EQ(folder.names(), files_of({"model.ckpt-2-2", "model.ckpt-2-3"}));
}

TEST(CheckpointManager, LeftoversGoAtTheNextSave) {
  const TempFolder folder;
  const SmallRun run;
  CheckpointManager first(folder.path(), {.keep = 3});
  run.save(first, 1);
  Extras extras;
  extras.set_string("config", "{}");
  Saver().save(folder / "model.ckpt-2", extras);  // killed before the state file
  formats::write_raw(folder / "model.ckpt-3.data-00000-of-00001.new", "half");
  formats::write_raw(folder / "model.ckpt-4.data-00000-of-00001", "its index is gone");
  Saver().save(folder / "model.ckpt-100");  // not of a run: no extras
  Saver().save(folder / "model.ckpt-1-best", extras);
  formats::write_raw(folder / "model.ckpt-7.index", "broken");
  CheckpointManager second(folder.path(), {.keep = 3});
  EXPECT_EQ(*second.latest(), folder / "model.ckpt-1");
  run.save(second, 9);
  Names expected =
      files_of({"model.ckpt-1", "model.ckpt-1-best", "model.ckpt-100", "model.ckpt-9"});
  expected.push_back("model.ckpt-7.index");
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(folder.names(), expected);
}

TEST(CheckpointManager, AFolderWithoutStateIsNotCleaned) {
  const TempFolder folder;
  const SmallRun run;
  Extras extras;
  extras.set_string("config", "{}");
  Saver().save(folder / "model.ckpt-1", extras);
  CheckpointManager manager(folder.path());
  run.save(manager, 2);
  EXPECT_EQ(folder.names(), files_of({"model.ckpt-1", "model.ckpt-2"}));
}

TEST(CheckpointManager, AFailedSaveLeavesTheOldOnes) {
  const TempFolder folder;
  const SmallRun run;
  CheckpointManager manager(folder.path(), {.keep = 1});
  run.save(manager, 1);
  const Variable clash("openrnn/config", Array(DType::kFloat32, {1}));
  EXPECT_NE(thrown<ArgumentError>([&] { run.save(manager, 2); }), "");
  EXPECT_EQ(folder.names(), files_of({"model.ckpt-1"}));
  EXPECT_EQ(*manager.latest(), folder / "model.ckpt-1");
}

TEST(LatestCheckpoint, PassesOverFilesThatAreGone) {
  const TempFolder folder;
  const SmallRun run;
  CheckpointManager manager(folder.path(), {.keep = 0});
  for (const std::int64_t step : {1, 2, 3}) run.save(manager, step);
  remove_tensor_bundle(folder / "model.ckpt-3");
  EXPECT_EQ(latest_checkpoint(folder.path()), folder / "model.ckpt-2");
  remove_tensor_bundle(folder / "model.ckpt-1");
  remove_tensor_bundle(folder / "model.ckpt-2");
  EXPECT_EQ(latest_checkpoint(folder.path()), std::nullopt);
  EXPECT_TRUE(CheckpointManager(folder.path()).checkpoints().empty());
}

TEST(CheckpointManager, BadArguments) {
  const TempFolder folder;
  EXPECT_EQ(thrown<ArgumentError>([&] { CheckpointManager(folder.path(), {.keep = -1}); }),
            "[CheckpointManager] keep -1, expected 0 or more");
  CheckpointManager manager(folder.path());
  EXPECT_EQ(thrown<ArgumentError>([&] { manager.save(Saver(), -2); }),
            "[CheckpointManager] step -2, expected 0 or more");
  formats::write_raw(folder / "file", "");
  EXPECT_NE(thrown<IoError>([&] {
              CheckpointManager(folder / "file");
            }).find("cannot be made, expected a folder"),
            std::string::npos);
  CheckpointManager deep(folder / "a/b");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b"));
}

}  // namespace
}  // namespace openrnn
