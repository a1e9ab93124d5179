// Saving over an existing prefix: what reaches the disk in which order, and that a reader finds one
// whole pair at any moment and changes nothing, whether the writer goes on, dies or fails there.

#include <gtest/gtest.h>
#include <openrnn/formats.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <thread>

#include "formats/temp_folder.h"
#include "support/file_calls.h"

namespace openrnn::formats {
namespace {

namespace fs = std::filesystem;

constexpr const char* kData = ".data-00000-of-00001";

using testing::WatchFiles;
using Calls = std::vector<std::string>;

// More than the buffer and the chunk that is verified at once; not a multiple of either.
constexpr std::int64_t kLarge = 300'001;

void save(const std::string& prefix, float version, std::int64_t size = kLarge) {
  TensorBundleWriter writer(prefix);
  writer.add("version", array_of<float>({1}, {version}));
  writer.add("body",
             Array::of<float>({size}, std::vector<float>(static_cast<std::size_t>(size), version)));
  writer.finish();
}

float load(const std::string& prefix) {
  const TensorBundleReader reader(prefix);
  reader.verify();
  const float version = reader.read("version").as<float>()[0];
  const Array body = reader.read("body");
  for (const float value : body.as<float>()) EXPECT_EQ(value, version);
  return version;
}

class Exchange : public ::testing::Test {
 protected:
  // Old is 1, new is 2; `stage` makes the files that a save of 2 over 1 has at that moment.
  void stage(bool old_there, bool data_renamed) {
    if (old_there) save(prefix, 1);
    save(folder / "other", 2);
    fs::rename(folder / "other" + kData, prefix + kData + (data_renamed ? "" : ".new"));
    fs::rename(folder / "other.index", prefix + ".index.new");
  }
  void cut(const std::string& path) { fs::resize_file(path, fs::file_size(path) / 2); }
  void expect_only_the_pair() {
    EXPECT_EQ(folder.names(), (std::vector<std::string>{"m" + std::string(kData), "m.index"}));
  }

  const TempFolder folder;
  const std::string prefix = folder / "m";
};

TEST_F(Exchange, DiedBeforeTheFirstRenameOldStands) {
  stage(true, false);
  EXPECT_EQ(load(prefix), 1);
  save(prefix, 3);
  EXPECT_EQ(load(prefix), 3);
  expect_only_the_pair();
}

TEST_F(Exchange, DiedWhileWritingOldStands) {
  for (const std::string& name : {std::string(kData) + ".new", std::string(".index.new")}) {
    stage(true, false);
    cut(prefix + name);
    EXPECT_EQ(load(prefix), 1) << name;
  }
  save(prefix, 3);
  EXPECT_EQ(load(prefix), 3);
  expect_only_the_pair();
}

TEST_F(Exchange, DiedBetweenTheRenamesNewStandsAndReadersLeaveItThere) {
  stage(true, true);
  EXPECT_EQ(load(prefix), 2);
  EXPECT_EQ(folder.names(),
            (std::vector<std::string>{"m" + std::string(kData), "m.index", "m.index.new"}));
  EXPECT_EQ(load(prefix), 2);
  save(prefix, 3);
  EXPECT_EQ(load(prefix), 3);
  expect_only_the_pair();
}

TEST_F(Exchange, DiedBetweenTheRenamesNextWriterFinishesFirst) {
  stage(true, true);
  TensorBundleWriter unfinished_writer(prefix);  // and this one dies too: nothing may be lost
  unfinished_writer.add("version", array_of<float>({1}, {3}));
  EXPECT_EQ(load(prefix), 2);
}

TEST_F(Exchange, FirstSaveEverIsReadAndTheNextWriterFinishesIt) {
  stage(false, false);
  EXPECT_TRUE(tensor_bundle_exists(prefix));
  EXPECT_EQ(load(prefix), 2);
  EXPECT_TRUE(fs::exists(prefix + ".index.new"));
  { TensorBundleWriter next(prefix); }
  EXPECT_EQ(load(prefix), 2);
  expect_only_the_pair();
}

TEST_F(Exchange, AFolderThatCannotBeWrittenIsReadAsItLies) {
  stage(true, true);
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(load(prefix), 2);
  fs::permissions(folder.path(), fs::perms::owner_all);
}

TEST_F(Exchange, FirstSaveEverDiedWhileWriting) {
  stage(false, false);
  cut(prefix + kData + ".new");
  EXPECT_MESSAGE(IoError, load(prefix), "m.index is missing");
  save(prefix, 3);
  EXPECT_EQ(load(prefix), 3);
  expect_only_the_pair();
}

TEST_F(Exchange, StrayIndexThatFitsNothingIsPassedOver) {
  save(prefix, 1);
  save(folder / "other", 2);
  fs::rename(folder / "other.index", prefix + ".index.new");
  EXPECT_EQ(load(prefix), 1);
}

TEST_F(Exchange, FailureInTheMiddleOfASaveKeepsTheOld) {
  save(prefix, 1);
  // A folder in the way of the unfinished index, so that it cannot be created.
  fs::create_directory(prefix + ".index.new");
  EXPECT_THROW(save(prefix, 2), IoError);
  EXPECT_EQ(load(prefix), 1);
}

TEST_F(Exchange, KilledAtAnyMoment) {
  save(prefix, 1);
  float least = 1;
  for (int round = 0; round < 12; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (float version = least + 1;; ++version) save(prefix, version);
    }
    ::usleep(static_cast<useconds_t>(3000 + 1777 * round));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const float found = load(prefix);
    EXPECT_GE(found, least);
    least = found;
  }
}

// ---- A save call by call
// ---------------------------------------------------------------------------

/// Every file's bytes.
std::map<std::string, std::string> contents(const TempFolder& folder) {
  std::map<std::string, std::string> found;
  for (const std::string& name : folder.names()) found[name] = read_file(folder / name);
  return found;
}

/// The version that a reader finds; it must leave all files as they are, in a folder that cannot be
/// written as well.
float load_only(const TempFolder& folder) {
  const auto before = contents(folder);
  const float version = load(folder / "m");
  EXPECT_EQ(contents(folder), before);
  return version;
}

TEST(SaveSteps, ReachTheDiskInThisOrder) {
  const TempFolder folder;
  const std::string name = std::filesystem::path(folder.path()).filename();
  Calls calls;
  {
    const WatchFiles watch([&](const std::string& call, const std::string& file) {
      if (calls.empty() || calls.back() != call + " " + file) calls.push_back(call + " " + file);
      return 0;
    });
    save(folder / "m", 1);
  }
  const std::string data = "m.data-00000-of-00001";
  EXPECT_EQ(calls,
            (Calls{"create " + data + ".new", "write " + data + ".new", "sync " + data + ".new",
                   "create m.index.new", "write m.index.new", "sync m.index.new", "sync " + name,
                   "rename " + data, "sync " + name, "rename m.index", "sync " + name}));
}

TEST(SaveSteps, OneFileReachesTheDiskInThisOrder) {
  const TempFolder folder;
  const std::string name = std::filesystem::path(folder.path()).filename();
  Calls calls;
  {
    const WatchFiles watch([&](const std::string& call, const std::string& file) {
      calls.push_back(call + " " + file);
      return 0;
    });
    write_checkpoint_state(folder.path(), {folder / "m", {folder / "m"}, {}, std::nullopt});
  }
  EXPECT_EQ(calls, (Calls{"create checkpoint.new", "write checkpoint.new", "sync checkpoint.new",
                          "rename checkpoint", "sync " + name}));
}

TEST(SaveSteps, AReaderFindsOnePairAtEachAndChangesNothing) {
  for (const bool old_there : {true, false}) {
    const TempFolder folder;
    if (old_there) save(folder / "m", 1);
    bool renamed = false, whole = false;
    int steps = 0;
    {
      const WatchFiles watch([&](const std::string& call, const std::string& name) {
        ++steps;
        if (old_there) {
          EXPECT_EQ(load_only(folder), renamed ? 2 : 1) << steps;
        } else if (whole) {
          EXPECT_EQ(load_only(folder), 2) << steps;
        } else {
          EXPECT_THROW(load_only(folder), Error) << steps;
        }
        renamed |= call == "rename";
        whole |= call == "write" && name == "m.index.new";
        return 0;
      });
      save(folder / "m", 2);
    }
    EXPECT_GT(steps, 10);
    EXPECT_EQ(load_only(folder), 2);
  }
}

// Returns false when the save needs fewer steps.
bool save_and_die_at(int step, const std::string& prefix, float version) {
  const pid_t child = ::fork();
  if (child == 0) {
    int at = 0;
    const WatchFiles watch([&](const std::string&, const std::string&) {
      if (at++ == step) ::_exit(7);
      return 0;
    });
    save(prefix, version);
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status) == 7;
}

TEST(SaveSteps, KilledAtEachStep) {
  const TempFolder folder;
  save(folder / "m", 1);
  float least = 1;
  int step = 0;
  for (bool died = true; died; ++step) {
    const float version = least + 1;
    died = save_and_die_at(step, folder / "m", version);
    const float found = load_only(folder);
    EXPECT_TRUE(found == least || found == version) << step;
    EXPECT_EQ(load_only(folder), found) << step;
    least = found;
    // And again in what the dead one left: nothing may be lost before the new pair is whole.
    for (int second = 0; save_and_die_at(second, folder / "m", 1000); ++second) {
      const float then = load_only(folder);
      if (then == 1000) break;
      EXPECT_EQ(then, found) << step << " " << second;
    }
    save(folder / "m", least);
    EXPECT_EQ(load_only(folder), least);
    EXPECT_EQ(folder.names().size(), 2u);
  }
  EXPECT_GT(step, 10);
}

TEST(SaveSteps, EachCanFail) {
  const TempFolder folder;
  save(folder / "m", 1);
  float least = 1;
  bool failed = true;
  int step = 0;
  for (; failed; ++step) {
    failed = false;
    int at = 0;
    try {
      const WatchFiles watch(
          [&](const std::string&, const std::string&) { return at++ == step ? ENOSPC : 0; });
      save(folder / "m", least + 1);
    } catch (const IoError& error) {
      failed = true;
      EXPECT_TRUE(contains(error.what(), "No space left on device")) << error.what();
    }
    const float found = load_only(folder);
    EXPECT_TRUE(found == least || found == least + 1) << step;
    EXPECT_TRUE(failed || found == least + 1);
    least = found;
  }
  EXPECT_GT(step, 10);
}

TEST(SaveSteps, InterruptedCallsAreTriedAgain) {
  const TempFolder folder;
  std::map<std::string, int> seen;
  {
    const WatchFiles watch([&](const std::string& call, const std::string&) {
      const bool can_be = call == "create" || call == "write" || call == "sync";
      return can_be && seen[call]++ % 2 == 0 ? EINTR : 0;
    });
    save(folder / "m", 1);
  }
  EXPECT_EQ(load(folder / "m"), 1);
  EXPECT_GT(seen["sync"], 6);
}

// Large enough that a save takes many calls; the last version is the one that stays.
TEST(SaveSteps, ReadersInALoopBesideASaverThatNeverFails) {
  const TempFolder folder;
  save(folder / "m", 1);
  std::atomic<bool> done = false;
  std::vector<std::thread> readers;
  std::atomic<int> reads = 0;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      float least = 1;
      while (!done) {
        const float found = load(folder / "m");
        EXPECT_GE(found, least);
        least = found;
        ++reads;
      }
    });
  }
  float version = 1;
  while (version < 60 || reads < 60) {
    ++version;
    save(folder / "m", version, version < 30 ? 5000 : kLarge);
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(load(folder / "m"), version);
  EXPECT_EQ(folder.names().size(), 2u);
}

TEST(SaveSteps, WritersOfOnePrefixAreKeptApart) {
  const TempFolder folder;
  save(folder / "m", 1);
  TensorBundleWriter first(folder / "m");
  first.add("version", array_of<float>({1}, {2}));
  EXPECT_MESSAGE(StateError, TensorBundleWriter(folder / "m"),
                 "m.data-00000-of-00001.new is being written by another process");
  // Between the renames too, where the data is in its place already.
  {
    const WatchFiles watch([&](const std::string& call, const std::string& name) {
      if (call != "rename" || name != "m.index") return 0;
      EXPECT_MESSAGE(StateError, TensorBundleWriter(folder / "m"), "is being written by another");
      return 0;
    });
    first.finish();
  }
  EXPECT_EQ(TensorBundleReader(folder / "m").read("version").as<float>()[0], 2.0f);
}

// Where a file system knows no locks: the new index must never come to stand beside the old data.
TEST(SaveSteps, AFileTakenAwayIsAnErrorAndTheOldPairStays) {
  const TempFolder folder;
  save(folder / "m", 1);
  {
    const WatchFiles watch([&](const std::string& call, const std::string& name) {
      if (call == "sync" && name == "m.index.new")
        std::filesystem::remove(folder / "m" + kData + ".new");
      return 0;
    });
    EXPECT_MESSAGE(IoError, save(folder / "m", 2), "No such file");
  }
  EXPECT_EQ(load_only(folder), 1);
  save(folder / "m", 3);
  EXPECT_EQ(load_only(folder), 3);
  EXPECT_EQ(folder.names().size(), 2u);
}

// They never mix: a save either ends or is refused, and what lies there is one save's.
TEST(SaveSteps, WritersInALoopOnOnePrefix) {
  const TempFolder folder;
  save(folder / "m", 1);
  constexpr int kSaves = 60;
  std::vector<std::thread> writers;
  for (int i = 0; i < 3; ++i) {
    writers.emplace_back([&, i] {
      testing::skip_syncs = true;
      for (int n = 0; n < kSaves;) {
        try {
          save(folder / "m", static_cast<float>(10 + i), 100 + i);
          ++n;
        } catch (const StateError&) {
          std::this_thread::yield();
        }
        if (n % 10 == 0) load(folder / "m");
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_GE(load(folder / "m"), 10);
  EXPECT_EQ(folder.names().size(), 2u);
}

TEST(SaveSteps, LinksInTheWayAreNotFollowed) {
  const TempFolder folder;
  write_raw(folder / "precious", "untouched");
  for (const char* name : {"m.index.new", "m.data-00000-of-00001.new", "checkpoint.new"}) {
    std::filesystem::create_symlink(folder / "precious", folder / name);
  }
  save(folder / "m", 3);
  write_checkpoint_state(folder.path(), {folder / "m", {folder / "m"}, {}, std::nullopt});
  EXPECT_EQ(read_file(folder / "precious"), "untouched");
  EXPECT_EQ(load(folder / "m"), 3);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"checkpoint", "m.data-00000-of-00001",
                                                      "m.index", "precious"}));
}

// A link under the name of an unfinished file is no save of ours, wherever it leads.
TEST_F(Exchange, LinksAreNoUnfinishedSaves) {
  for (const char* suffix : {".data-00000-of-00001.new", ".index.new"}) {
    for (const bool old_there : {false, true}) {
      stage(old_there, false);
      fs::rename(prefix + suffix, folder / "elsewhere");
      const std::string bytes = read_file(folder / "elsewhere");
      fs::create_symlink(folder / "elsewhere", prefix + suffix);
      { TensorBundleWriter next(prefix); }
      std::vector<std::string> names = {"elsewhere"};
      if (old_there) names = {"elsewhere", "m" + std::string(kData), "m.index"};
      // An index that is a link stays: nobody has asked for its name yet.
      if (suffix == std::string(".index.new")) names.push_back("m.index.new");
      EXPECT_EQ(folder.names(), names) << suffix << old_there;
      EXPECT_EQ(read_file(folder / "elsewhere"), bytes);
      for (const std::string& name : folder.names()) fs::remove(folder / name);
    }
  }
}

}  // namespace
}  // namespace openrnn::formats
