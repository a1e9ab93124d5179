// A run's folder: what its lock says, its times, and what is said of one that cannot be used.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/message.h"
#include "formats/file/system.h"
#include "formats/temp_folder.h"
#include "openrnn/checkpoint.h"
#include "saveables/support.h"

namespace openrnn {
namespace {

using formats::TempFolder;
using testing::thrown;

struct OneVariable {
  Graph graph;
  Graph::AsDefault current{graph};
  Variable x{"x", Array(DType::kFloat32, {2})};
};

std::string host() {
  char name[256] = {};
  EXPECT_EQ(::gethostname(name, sizeof name - 1), 0);
  return name;
}

TEST(FolderLock, ItsFileNamesTheHolderAndNothingElse) {
  const TempFolder folder;
  const std::string path = folder / "openrnn.lock";
  formats::write_raw(path, std::string(150, 'x'));  // of a run that was killed
  CheckpointManager manager(folder.path());
  manager.lock();
  EXPECT_EQ(read_file(path), message("process ", ::getpid(), " on ", host()));
}

// The name of the holder is what the file has, if it has any.
TEST(FolderLock, WhoHoldsItIsSaid) {
  const TempFolder folder;
  const OneVariable one;
  const std::string path = folder / "openrnn.lock";
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    CheckpointManager holder(folder.path());
    holder.lock();
    if (::write(ends[1], "x", 1) == 1) ::pause();
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  CheckpointManager manager(folder.path());
  const auto refused = [&] { return thrown<StateError>([&] { manager.save(Saver(), 1); }); };
  const std::string start = "[CheckpointManager] " + folder.path() + " is in use by ";
  const std::string end = ", expected one run at a time in a folder";
  EXPECT_EQ(refused(), message(start, "process ", child, " on ", host(), end));
  ASSERT_EQ(::truncate(path.c_str(), 0), 0);
  EXPECT_EQ(refused(), start + "another process" + end);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

// A fork copies its parent's managers, not its right to save.
TEST(FolderLock, AForkedProcessIsAnother) {
  const TempFolder folder;
  CheckpointManager manager(folder.path());
  manager.lock();
  const std::string wanted =
      message("[CheckpointManager] ", folder.path(), " is in use by process ", ::getpid(), " on ",
              host(), ", expected one run at a time in a folder");
  const pid_t child = ::fork();
  if (child == 0) {
    CheckpointManager other(folder.path());
    const bool both = thrown<StateError>([&] { other.lock(); }) == wanted &&
                      thrown<StateError>([&] { manager.lock(); }) == wanted;
    ::_exit(both ? 7 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  // The parent's goes on.
  CheckpointManager(folder.path()).lock();
}

// Else it would be held for as long as a program lives that the run started.
TEST(FolderLock, ProgramsThatAreStartedDoNotInheritIt) {
  const TempFolder folder;
  CheckpointManager manager(folder.path());
  manager.lock();
  const formats::FileIdentity lock = formats::identity_of(folder / "openrnn.lock");
  int found = 0;
  for (int fd = 0; fd < 256; ++fd) {
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags < 0) continue;
    const formats::Descriptor same(::dup(fd));
    if (!(formats::identity_of(same) == lock)) continue;
    EXPECT_TRUE((flags & FD_CLOEXEC) != 0);
    ++found;
  }
  EXPECT_EQ(found, 1);
}

TEST(RunFolder, WhatCannotBeUsed) {
  const TempFolder folder;
  formats::write_raw(folder / "file", "");
  EXPECT_EQ(thrown<IoError>([&] { CheckpointManager(folder / "file/inside"); }),
            "[CheckpointManager] " + (folder / "file/inside") +
                ": cannot be made, expected a folder: Not a directory");
  EXPECT_EQ(
      thrown<IoError>([&] { CheckpointManager(folder / "file"); })
          .rfind("[CheckpointManager] " + (folder / "file") + ": cannot be made, expected a folder",
                 0),
      0U);
  EXPECT_EQ(thrown<ArgumentError>([&] { CheckpointManager(folder.path(), {.base = "a/b"}); }),
            "[CheckpointManager] base 'a/b', expected the name of a file");
  EXPECT_EQ(thrown<ArgumentError>([&] { CheckpointManager(std::string("a\0b", 3)); }),
            "[CheckpointManager] the path a\\000b holds a zero byte, expected none");
}

// As other programs write the state file: what was not said is 0.
TEST(RunFolder, TimesThatAreNotKnown) {
  const TempFolder folder;
  const OneVariable one;
  for (const char* name : {"model.ckpt-1", "model.ckpt-2"}) Saver().write(folder / name);
  formats::write_raw(folder / "checkpoint",
                     "model_checkpoint_path: \"model.ckpt-2\"\n"
                     "all_model_checkpoint_paths: \"model.ckpt-1\"\n"
                     "all_model_checkpoint_paths: \"model.ckpt-2\"\n"
                     "all_model_checkpoint_timestamps: 12.5\n");
  CheckpointManager manager(folder.path());
  manager.save(Saver(), 3);
  const std::vector<double> times = read_checkpoint_state(folder.path())->timestamps;
  ASSERT_EQ(times.size(), 3U);
  EXPECT_EQ(times[0], 12.5);
  EXPECT_EQ(times[1], 0.0);
  EXPECT_GT(times[2], 1.6e9);
}

// As many as the options say where nobody says how many.
TEST(RunFolder, HowManyAreKept) {
  const TempFolder folder;
  const OneVariable one;
  CheckpointManager manager(folder.path());
  Saver saver;
  for (std::int64_t step = 0; step < 7; ++step) {
    manager.save(Saver(), step);
    saver.save(folder / "named", step);
  }
  EXPECT_EQ(manager.checkpoints().size(), 5U);
  EXPECT_EQ(saver.last_checkpoints().size(), 5U);
}

// What lies beside the checkpoints, and begins as one's name does.
TEST(RunFolder, FilesOfOtherKindsStay) {
  const TempFolder folder;
  const OneVariable one;
  CheckpointManager manager(folder.path(), {.keep = 1, .base = "a.b"});
  manager.save(Saver(), 1);
  for (const char* name : {"a.b-9.txt", "a-9.index", "a.b-9.index.bak"}) {
    formats::write_raw(folder / name, "");
  }
  manager.save(Saver(), 2);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"a-9.index", "a.b-2.data-00000-of-00001",
                                                      "a.b-2.index", "a.b-9.index.bak", "a.b-9.txt",
                                                      "checkpoint", "openrnn.lock"}));
}

}  // namespace
}  // namespace openrnn
