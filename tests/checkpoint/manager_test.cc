// Names, order and removal of a run's checkpoints; what a killed process leaves; memory that ends
// anywhere in a save, state files that name other people's files, and other processes.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "formats/temp_folder.h"
#include "openrnn/checkpoint.h"
#include "openrnn/layers.h"
#include "saveables/support.h"
#include "support/file_calls.h"

namespace {
// Allocations of this thread until one fails; negative: none does.
thread_local long until_failure = -1;
}  // namespace

void* operator new(std::size_t size) {
  if (until_failure >= 0 && until_failure-- == 0) throw std::bad_alloc();
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  if (until_failure >= 0 && until_failure-- == 0) return nullptr;
  return std::malloc(size ? size : 1);
}
// Inlined alone, without its operator new, it would look to g++ as if it freed what it may not.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

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
  std::int64_t latest(const std::string& folder) const {
    return restored(latest_checkpoint(folder).value());
  }
  std::int64_t restored(const std::string& prefix) const {
    Saver().restore(prefix);
    return step.to_host().as<std::int64_t>()[0];
  }
};

// Beside a manager that has saved.
Names files_of(const Names& stems) {
  Names files{"checkpoint", "openrnn.lock"};
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

TEST(CheckpointManager, AResumedRunKeepsTheTimesOfOldCheckpoints) {
  const TempFolder folder;
  const SmallRun run;
  const auto times = [&] { return read_checkpoint_state(folder.path())->timestamps; };
  CheckpointManager first(folder.path());
  run.save(first, 1);
  run.save(first, 2);
  const std::vector<double> before = times();
  ASSERT_EQ(before.size(), 2U);
  EXPECT_GT(before[0], 1.6e9);
  CheckpointManager second(folder.path());
  run.save(second, 3);
  std::vector<double> after = times();
  ASSERT_EQ(after.size(), 3U);
  EXPECT_GE(after[2], before[1]);
  after.pop_back();
  EXPECT_EQ(after, before);
}

TEST(CheckpointManager, TimesGoWithTheirCheckpoints) {
  const TempFolder folder;
  const SmallRun run;
  CheckpointManager manager(folder.path(), {.keep = 2});
  std::vector<double> all;
  for (std::int64_t step = 1; step <= 5; ++step) {
    run.save(manager, step);
    const std::vector<double> now = read_checkpoint_state(folder.path())->timestamps;
    ASSERT_FALSE(now.empty());
    all.push_back(now.back());
    const std::size_t kept = std::min<std::size_t>(all.size(), 2);
    EXPECT_EQ(now, std::vector<double>(all.end() - static_cast<std::ptrdiff_t>(kept), all.end()));
    if (all.size() > 1) {
      EXPECT_GT(all.back(), all[all.size() - 2]);
    }
  }
}

// Names that begin as a checkpoint's do, but have no number.
TEST(CheckpointManager, FilesWithoutANumberStay) {
  const TempFolder folder;
  const SmallRun run;
  CheckpointManager manager(folder.path(), {.keep = 1});
  run.save(manager, 1);
  Names expected;
  for (const std::string stem : {"model.ckpt-", "model.ckpt", "model.ckpt-x", "model.ckpt-3x"}) {
    expected.push_back(stem + ".data-00000-of-00001");
    formats::write_raw(folder / expected.back(), "no checkpoint of this run");
  }
  run.save(manager, 2);
  for (const std::string& file : files_of({"model.ckpt-2"})) expected.push_back(file);
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(folder.names(), expected);
}

TEST(CheckpointManager, LeftoversGoAtTheNextSave) {
  const TempFolder folder;
  const SmallRun run;
  CheckpointManager first(folder.path(), {.keep = 3});
  run.save(first, 1);
  Extras extras;
  extras.set_string("config", "{}");
  Saver().write(folder / "model.ckpt-2", extras);  // killed before the state file
  formats::write_raw(folder / "model.ckpt-3.data-00000-of-00001.new", "half");
  formats::write_raw(folder / "model.ckpt-4.data-00000-of-00001", "its index is gone");
  Saver().write(folder / "model.ckpt-100");  // not of a run: no extras
  Saver().write(folder / "model.ckpt-1-best", extras);
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
  Saver().write(folder / "model.ckpt-1", extras);
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

// ---- Under stress
// ----------------------------------------------------------------------------------

Names stems_of(const CheckpointManager& manager) {
  Names stems;
  for (const std::string& prefix : manager.checkpoints()) {
    stems.push_back(std::filesystem::path(prefix).filename());
  }
  return stems;
}

TEST(SaveSafety, MemoryThatEndsIsAnErrorAndTheOldCheckpointStays) {
  const TempFolder folder;
  const SmallRun run;
  layers::CudnnLSTM layer({.num_units = 2, .training = {.seed = 1}});
  layer.build({1, 1, 1});
  CheckpointManager manager(folder.path(), {.keep = 2});
  testing::skip_syncs = true;
  std::int64_t failures = 0, step = 0;
  for (long count = 0; until_failure < 0; ++count) {
    // One that removes what the failed one left, so that all have the same to do.
    run.save(manager, ++step);
    ASSERT_EQ(folder.names(), files_of(stems_of(manager)));
    until_failure = count;
    try {
      run.save(manager, ++step);
    } catch (const std::bad_alloc&) {
      ++failures;
    } catch (const Error&) {
      ++failures;  // where there was memory for saying what could not be done
    }
    if (until_failure >= 0) break;  // it had all that it asked for
    const std::int64_t found = run.latest(folder.path());
    ASSERT_TRUE(found == step - 1 || found == step) << found << " after " << count;
    for (const std::string& name : folder.names()) {
      ASSERT_FALSE(name.ends_with(".new")) << name << " after " << count;
    }
  }
  until_failure = -1;
  testing::skip_syncs = false;
  EXPECT_GT(failures, 100);
}

TEST(SaveSafety, TheStateFileNamesTheNewOneBeforeOldOnesGo) {
  const TempFolder folder;
  const SmallRun run;
  CheckpointManager manager(folder.path(), {.keep = 1});
  run.save(manager, 1);
  Names calls;
  {
    const testing::WatchFiles watch([&](const std::string& call, const std::string& name) {
      if (call == "rename" || call == "remove") calls.push_back(call + " " + name);
      EXPECT_TRUE(latest_checkpoint(folder.path()).has_value());  // at every moment
      return 0;
    });
    run.save(manager, 2);
  }
  EXPECT_EQ(calls, (Names{"rename model.ckpt-2.data-00000-of-00001", "rename model.ckpt-2.index",
                          "rename checkpoint", "remove model.ckpt-1.index.new",
                          "remove model.ckpt-1.index", "remove model.ckpt-1.data-00000-of-00001"}));
}

TEST(SaveSafety, FilesOfOthersStayWhateverTheStateFileNames) {
  const TempFolder folder, elsewhere;
  const SmallRun run;
  Extras extras;
  extras.set_string("config", "{}");
  const std::string run_folder = folder / "run";
  std::filesystem::create_directories(run_folder + "/sub");
  const Names others{elsewhere / "model.ckpt-1", folder / "model.ckpt-2",
                     run_folder + "/sub/model.ckpt-3", run_folder + "/best",
                     run_folder + "/model.ckpt-4x"};
  for (const std::string& prefix : others) Saver().write(prefix, extras);
  Saver().write(run_folder + "/model.ckpt-5", extras);
  // A link into another folder is that folder.
  std::filesystem::create_directory_symlink(elsewhere.path(), run_folder + "/link");
  formats::write_raw(run_folder + "/checkpoint",
                     "model_checkpoint_path: \"model.ckpt-5\"\n"
                     "all_model_checkpoint_paths: \"" +
                         others[0] +
                         "\"\n"
                         "all_model_checkpoint_paths: \"../model.ckpt-2\"\n"
                         "all_model_checkpoint_paths: \"sub/model.ckpt-3\"\n"
                         "all_model_checkpoint_paths: \"best\"\n"
                         "all_model_checkpoint_paths: \"model.ckpt-4x\"\n"
                         "all_model_checkpoint_paths: \"link/model.ckpt-1\"\n"
                         "all_model_checkpoint_paths: \"sub/../model.ckpt-5\"\n");
  CheckpointManager manager(run_folder, {.keep = 1});
  EXPECT_EQ(manager.checkpoints(), Names{run_folder + "/model.ckpt-5"});
  run.save(manager, 6);
  run.save(manager, 7);
  for (const std::string& prefix : others) EXPECT_NO_THROW(TensorBundleReader{prefix}) << prefix;
  EXPECT_FALSE(tensor_bundle_exists(run_folder + "/model.ckpt-5"));
  EXPECT_FALSE(tensor_bundle_exists(run_folder + "/model.ckpt-6"));
}

// Its only slash is not one at the end.
TEST(CheckpointManager, TheRootIsNotTheCurrentFolder) {
  const TempFolder folder;
  const SmallRun run;
  CheckpointManager manager(folder.path());
  run.save(manager, 1);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  for (const std::string root : {"/", "//"}) {
    EXPECT_EQ(CheckpointManager(root).latest(), latest_checkpoint("/")) << root;
  }
  EXPECT_EQ(CheckpointManager("").latest(), "model.ckpt-1");
  std::filesystem::current_path(before);
}

TEST(SaveSafety, ABaseIsTheNameOfAFile) {
  const TempFolder folder;
  for (const std::string& base : {std::string(), std::string("../m"), std::string("a\0b", 3)}) {
    EXPECT_NE(thrown<ArgumentError>([&] {
                CheckpointManager(folder.path(), {.base = base});
              }).find("expected the name of a file"),
              std::string::npos);
  }
  EXPECT_NE(thrown<ArgumentError>([&] {
              CheckpointManager(std::string("a\0b", 3));
            }).find("holds a zero byte"),
            std::string::npos);
}

// A process that saved once in the folder and then waits to be killed.
class OtherRun {
 public:
  OtherRun(const SmallRun& run, const std::string& folder) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      CheckpointManager manager(folder);
      run.save(manager, 1);
      if (::write(ends[1], "x", 1) == 1) ::pause();
      ::_exit(1);
    }
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~OtherRun() { end(); }
  OtherRun(const OtherRun&) = delete;
  OtherRun& operator=(const OtherRun&) = delete;
  void end() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

TEST(SaveSafety, OneProcessAtATimeSavesInAFolder) {
  const TempFolder folder;
  const SmallRun run;
  CheckpointManager manager(folder.path());
  OtherRun other(run, folder.path());
  // Reading goes on.
  EXPECT_EQ(run.latest(folder.path()), 1);
  EXPECT_EQ(*CheckpointManager(folder.path()).latest(), folder / "model.ckpt-1");
  const std::string text = thrown<StateError>([&] { run.save(manager, 2); });
  EXPECT_EQ(text.rfind("[CheckpointManager] " + folder.path() + " is in use by process " +
                           std::to_string(other.pid()) + " on ",
                       0),
            0u)
      << text;
  other.end();
  // The lock of a dead process holds nobody out, and what it saved is taken up.
  EXPECT_EQ(run.save(manager, 1), folder / "model.ckpt-1-2");
  // Managers of one process share the folder.
  CheckpointManager second(folder.path());
  run.save(second, 3);
  EXPECT_EQ(manager.checkpoints().size(), 2u);
}

TEST(SaveSafety, ManagersOfOneProcessKeepEachOthersCheckpoints) {
  const TempFolder folder;
  const SmallRun run;
  CheckpointManager first(folder.path(), {.keep = 3}), second(folder.path(), {.keep = 3});
  for (const std::int64_t step : {1, 3}) {
    run.save(first, step);
    run.save(second, step + 1);
  }
  EXPECT_EQ(second.checkpoints(),
            (Names{folder / "model.ckpt-2", folder / "model.ckpt-3", folder / "model.ckpt-4"}));
  EXPECT_EQ(folder.names(), files_of({"model.ckpt-2", "model.ckpt-3", "model.ckpt-4"}));
}

// Neither at the first save nor at another one.
TEST(SaveSafety, ABrokenStateFileIsNotWrittenOver) {
  const TempFolder folder;
  const SmallRun run;
  CheckpointManager manager(folder.path());
  formats::write_raw(folder / "checkpoint", "model_checkpoint_path: 5\n");
  for (int again = 0; again < 2; ++again) EXPECT_THROW(run.save(manager, 1), FormatError);
  EXPECT_EQ(folder.names(), (Names{"checkpoint", "openrnn.lock"}));
}

TEST(SaveSafety, TheLockGoesWithItsManagers) {
  const TempFolder folder;
  const SmallRun run;
  auto manager = std::make_unique<CheckpointManager>(folder.path());
  EXPECT_FALSE(std::filesystem::exists(folder / "openrnn.lock"));
  manager->lock();
  EXPECT_TRUE(std::filesystem::exists(folder / "openrnn.lock"));
  const pid_t child = ::fork();
  if (child == 0) {  // what goes in a child takes no lock along
    manager.reset();
    std::_Exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "openrnn.lock"));
  manager.reset();
  EXPECT_FALSE(std::filesystem::exists(folder / "openrnn.lock"));
}

// Whoever may write into the folder could have another file written over by it.
TEST(SaveSafety, ALockThatIsALinkIsNotFollowed) {
  const TempFolder folder, elsewhere;
  const SmallRun run;
  formats::write_raw(elsewhere / "precious", "text");
  CheckpointManager manager(folder.path());
  std::filesystem::create_symlink(elsewhere / "precious", folder / "openrnn.lock");
  EXPECT_NE(thrown<IoError>([&] { run.save(manager, 1); }), "");
  EXPECT_EQ(read_file(elsewhere / "precious"), "text");
  EXPECT_EQ(folder.names(), Names{"openrnn.lock"});
  std::filesystem::remove(folder / "openrnn.lock");
  EXPECT_EQ(run.save(manager, 1), folder / "model.ckpt-1");
}

// Equal sizes are not equal shapes.
TEST(Restore, AShapeOfTheSameSizeIsRefused) {
  const TempFolder folder;
  Graph graph, other;
  {
    const Graph::AsDefault current(graph);
    const Variable x("x", Array(DType::kFloat32, {2, 3}));
    Saver().save(folder / "name");
    Checkpoint({{"x", x}}).write(folder / "object");
  }
  const Graph::AsDefault current(other);
  const Variable x("x", Array(DType::kFloat32, {3, 2}));
  EXPECT_EQ(thrown<ArgumentError>([&] { Saver().restore(folder / "name"); }),
            "[Saver::restore] " + (folder / "name") +
                ": tensor x is float32 [2, 3], expected float32 [3, 2]");
  EXPECT_EQ(thrown<ArgumentError>([&] {
              Checkpoint({{"x", x}}).read(folder / "object");
            }),
            "[Checkpoint::read] " + (folder / "object") +
                ": x is float32 [2, 3], expected float32 [3, 2]");
}

}  // namespace
}  // namespace openrnn
