#include "formats/file/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <openrnn/formats.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>

#include "formats/file/byte_source.h"
#include "formats/temp_folder.h"

namespace openrnn::formats {
namespace {

// Files larger than the limit cannot be written while this lives: a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit small = before_;
    small.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &small);
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_ = {};
  void (*handler_)(int) = nullptr;
};

TEST(AtomicFile, ReplacesAndLeavesNothingElse) {
  const TempFolder folder;
  write_file_atomically(folder / "f", "one");
  EXPECT_EQ(read_file(folder / "f"), "one");
  write_file_atomically(folder / "f", std::string(1000000, 'x') + "two");
  EXPECT_EQ(read_file(folder / "f"), std::string(1000000, 'x') + "two");
  write_file_atomically(folder / "f", "");
  EXPECT_EQ(read_file(folder / "f"), "");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"f"});
}

TEST(AtomicFile, FullDiskKeepsTheOldFileAndNamesTheReason) {
  const TempFolder folder;
  write_file_atomically(folder / "f", "old");
  {
    const FullDisk full(1000);
    EXPECT_MESSAGE(IoError, write_file_atomically(folder / "f", std::string(5000, 'x')),
                   "[write] " + (folder / "f.new") + ": File too large");
  }
  EXPECT_EQ(read_file(folder / "f"), "old");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"f"});
}

TEST(AtomicFile, NothingElseIsTakenForALeftover) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "f.new").c_str(), 0600), 0);
  EXPECT_MESSAGE(IoError, write_file_atomically(folder / "f", "x"),
                 "[create] " + (folder / "f.new") + " is a FIFO, expected a file");
  EXPECT_MESSAGE(IoError, OutputFile("/dev/full"), "[create] /dev/full is a device");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"f.new"});
}

TEST(AtomicFile, ClosedAfterAFailure) {
  const TempFolder folder;
  const FullDisk full(1000);
  OutputFile file(folder / "f.new");
  file.write(std::string(2000, 'x'));
  EXPECT_MESSAGE(IoError, file.flush(), "f.new: File too large");
  EXPECT_MESSAGE(StateError, file.write("more"), "f.new is closed");
}

TEST(Paths, ZeroBytesAreRefused) {
  using namespace std::string_literals;
  const std::string path = "/tmp/a\0b"s;
  const std::string part = "] the path /tmp/a\\000b";
  EXPECT_MESSAGE(ArgumentError, write_file_atomically(path, "x"), part);
  EXPECT_MESSAGE(ArgumentError, read_file(path), part);
  EXPECT_MESSAGE(ArgumentError, TensorBundleReader{path}, part);
  EXPECT_MESSAGE(ArgumentError, TensorBundleWriter{path}, part);
  EXPECT_MESSAGE(ArgumentError, tensor_bundle_exists(path), part);
  EXPECT_MESSAGE(ArgumentError, remove_tensor_bundle(path), part);
  EXPECT_MESSAGE(ArgumentError, read_checkpoint_state(path), part);
  EXPECT_MESSAGE(ArgumentError, EventWriter{path}, part);
}

TEST(AtomicFile, NoSpaceLeftForACheckpoint) {
  const TempFolder folder;
  const std::vector<NamedTensor> old{{"x", array_of<float>({1}, {1})}};
  write_tensor_bundle(folder / "m", old);
  {
    const FullDisk full(100000);
    TensorBundleWriter writer(folder / "m");
    EXPECT_MESSAGE(
        IoError,
        {
          writer.add("y", Array(DType::kFloat32, {100000}));
          writer.finish();
        },
        "m.data-00000-of-00001.new: File too large");
    EXPECT_MESSAGE(StateError, writer.add("z", Array(DType::kFloat32, {1})), "after finish()");
    EXPECT_MESSAGE(StateError, writer.finish(), "or a failure");
  }
  EXPECT_EQ(folder.names().size(), 2u);
  EXPECT_EQ(TensorBundleReader(folder / "m").read("x").as<float>()[0], 1.0f);
}

TEST(AtomicFile, NoSpaceLeftForTheIndexAlone) {
  const TempFolder folder;
  {
    const FullDisk full(200);
    TensorBundleWriter writer(folder / "m");
    for (int i = 0; i < 40; ++i) writer.add(std::to_string(i), array_of<float>({1}, {1}));
    EXPECT_MESSAGE(IoError, writer.finish(), "m.index.new: File too large");
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(AtomicFile, PlacesThatCannotBeWritten) {
  const TempFolder folder;
  write_raw(folder / "f", "file");
  EXPECT_MESSAGE(IoError, write_file_atomically(folder / "no/f", "x"),
                 "[create] " + (folder / "no/f.new") + ": No such file or directory");
  EXPECT_MESSAGE(IoError, write_file_atomically(folder / "f/g", "x"), "Not a directory");
  std::filesystem::create_directory(folder / "d");
  EXPECT_MESSAGE(IoError, write_file_atomically(folder / "d", "x"),
                 "[rename] " + (folder / "d") + ": Is a directory");
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"d", "f"}));
}

TEST(FileSource, ReadsInsideAndRefusesOutside) {
  const TempFolder folder;
  write_raw(folder / "f", "0123456789");
  const FileSource file(folder / "f");
  EXPECT_EQ(file.read_string(3, 4), "3456");
  EXPECT_EQ(file.read_string(10, 0), "");
  EXPECT_MESSAGE(FormatError, file.read_string(8, 3),
                 "f @ 8] the file ends at byte 10, expected 3 more bytes from here");
  EXPECT_THROW(file.read_string(11, 0), FormatError);
  EXPECT_THROW(file.read_string(1, ~std::uint64_t{0}), FormatError);
  std::filesystem::resize_file(folder / "f", 5);
  EXPECT_MESSAGE(FormatError, file.read_string(3, 4), "cut while it was read");
}

// A reader that opens a FIFO without a writer waits for ever.
TEST(FileSource, WhatIsNoFile) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "m.index").c_str(), 0600), 0);
  const std::string part = "m.index is a FIFO, expected a file";
  EXPECT_MESSAGE(IoError, FileSource(folder / "m.index"), part);
  EXPECT_MESSAGE(IoError, TensorBundleReader(folder / "m"), part);
  EXPECT_MESSAGE(IoError, read_file(folder / "m.index"), part);
  EXPECT_MESSAGE(IoError, read_scalar_events(folder / "m.index"), part);
  std::filesystem::rename(folder / "m.index", folder / "checkpoint");
  EXPECT_MESSAGE(IoError, read_checkpoint_state(folder.path()), "checkpoint is a FIFO");
  EXPECT_MESSAGE(IoError, read_file("/dev/zero"), "/dev/zero is a device, expected a file");
}

// One that were opened would let the writer go on, and then break its pipe.
TEST(FileSource, AFifoIsNotEvenOpened) {
  const TempFolder folder;
  const std::string path = folder / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::atomic<bool> opened = false;
  std::thread writer([&] {
    const int end = ::open(path.c_str(), O_WRONLY);
    opened = true;
    ::close(end);
  });
  for (int round = 0; round < 200; ++round) {
    EXPECT_THROW(FileSource{path}, IoError);
    EXPECT_THROW(read_file(path), IoError);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  EXPECT_FALSE(opened);
  const int end = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  writer.join();
  ::close(end);
}

TEST(FileSource, WhatIsNotThere) {
  const TempFolder folder;
  EXPECT_MESSAGE(IoError, read_file(folder / "f"), "[open] " + (folder / "f") + ": No such file");
  EXPECT_MESSAGE(IoError, read_file(folder.path()), "Is a directory");
}

TEST(ReadFile, PipeToItsEnd) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "through", 7), 7);
  ::close(ends[1]);
  EXPECT_EQ(read_file("/dev/fd/" + std::to_string(ends[0])), "through");
  ::close(ends[0]);
}

TEST(FolderOf, AllKinds) {
  EXPECT_EQ(folder_of("a/b/c"), "a/b");
  EXPECT_EQ(folder_of("c"), ".");
  EXPECT_EQ(folder_of("/c"), "/");
}

// The descriptors of this process, and whether a program that it starts has them, too.
std::map<int, bool> open_here() {
  std::map<int, bool> found;
  for (const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int number = std::stoi(one.path().filename());
    const int flags = ::fcntl(number, F_GETFD);
    if (flags >= 0) found[number] = (flags & FD_CLOEXEC) == 0;
  }
  std::erase_if(found, [](const auto& one) { return ::fcntl(one.first, F_GETFD) < 0; });
  return found;
}

// What `open` keeps open is exactly `count` more descriptors, none of which a child inherits; and
// none is left behind.
template <class Open>
void expect_own(const char* what, std::size_t count, const Open& open) {
  const std::map<int, bool> before = open_here();
  {
    const auto held = open();
    std::size_t more = 0;
    for (const auto& [number, inherited] : open_here()) {
      if (before.contains(number)) continue;
      ++more;
      EXPECT_FALSE(inherited) << what;
    }
    EXPECT_EQ(more, count) << what;
  }
  EXPECT_EQ(open_here(), before) << what;
}

TEST(Descriptors, AreNotInheritedAndAreClosed) {
  const TempFolder folder;
  write_raw(folder / "f", "x");
  write_tensor_bundle(folder / "m", std::vector<NamedTensor>{{"x", array_of<float>({1}, {1})}});
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string pipe = "/dev/fd/" + std::to_string(ends[0]);
  expect_own("open_regular", 1, [&] { return open_regular(folder / "f"); });
  expect_own("open_readable", 1, [&] { return open_readable(folder / "f"); });
  expect_own("a pipe", 1, [&] { return open_readable(pipe); });
  expect_own("create_new", 1, [&] { return create_new(folder / "new"); });
  expect_own("lock_existing", 1, [&] { return lock_existing(folder / "f"); });
  expect_own("FolderSync", 1, [&] { return std::make_unique<FolderSync>(folder / "f"); });
  expect_own("OutputFile", 1, [&] { return std::make_unique<OutputFile>(folder / "out"); });
  expect_own("FileSource", 1, [&] { return std::make_unique<FileSource>(folder / "f"); });
  expect_own("TensorBundleReader", 1, [&] { return TensorBundleReader(folder / "m"); });
  expect_own("TensorBundleWriter", 1, [&] { return TensorBundleWriter(folder / "m"); });
  expect_own("EventWriter", 1, [&] { return std::make_unique<EventWriter>(folder.path()); });
  expect_own("names_in", 0, [&] { return names_in(folder.path()); });
  ::close(ends[0]);
  ::close(ends[1]);
}

// A pipe is waited for, although nothing is waited for while it is opened.
TEST(Descriptors, ReadingWaits) {
  const TempFolder folder;
  write_raw(folder / "f", "x");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  for (const std::string& path : {"/dev/fd/" + std::to_string(ends[0]), folder / "f"}) {
    const Descriptor file = open_readable(path);
    const int flags = ::fcntl(file.get(), F_GETFL);
    EXPECT_EQ(flags & O_NONBLOCK, 0) << path;
    EXPECT_EQ(flags & O_ACCMODE, O_RDONLY) << path;
  }
  ::close(ends[0]);
  ::close(ends[1]);
}

// Who may read and write it, the user's mask says.
TEST(OutputFiles, HaveTheRightsOfTheMask) {
  for (const ::mode_t mask : {0000U, 0022U, 0077U}) {
    const TempFolder folder;
    const ::mode_t before = ::umask(mask);
    write_file_atomically(folder / "f", "x");
    ::umask(before);
    struct stat status = {};
    ASSERT_EQ(::stat((folder / "f").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0666U & ~mask);
  }
}

// What took its name after it was renamed is another's.
TEST(OutputFiles, RemoveThemselvesAlone) {
  const TempFolder folder;
  { OutputFile file(folder / "f.new"); }
  EXPECT_TRUE(folder.names().empty());
  {
    OutputFile file(folder / "f.new");
    file.keep();
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"f.new"});
  {
    OutputFile file(folder / "f.new");
    file.write("mine");
    file.sync();
    std::filesystem::rename(folder / "f.new", folder / "f");
    write_raw(folder / "f.new", "another's");
  }
  EXPECT_EQ(read_file(folder / "f.new"), "another's");
  EXPECT_EQ(read_file(folder / "f"), "mine");
  {
    OutputFile file(folder / "g.new");
    std::filesystem::remove(folder / "g.new");
  }
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"f", "f.new"}));
}

// A child that was forked meanwhile has the file open, and its lock would be the file's.
TEST(OutputFiles, AChildDoesNotKeepTheLock) {
  const TempFolder folder;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::pid_t child = -1;
  {
    OutputFile file(folder / "f.new");
    file.keep();
    EXPECT_THROW(lock_existing(folder / "f.new"), StateError);
    child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      // Until the other end is closed.
      ::close(ends[1]);
      char byte = 0;
      ::_exit(static_cast<int>(::read(ends[0], &byte, 1)));
    }
  }
  EXPECT_TRUE(lock_existing(folder / "f.new").is_open());
  ::close(ends[0]);
  ::close(ends[1]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Locks, OfWhatIsThereAndOfWhatIsNot) {
  const TempFolder folder;
  write_raw(folder / "f", "x");
  std::filesystem::create_symlink(folder / "f", folder / "link");
  EXPECT_TRUE(lock_existing(folder / "f").is_open());
  // A link is not followed.
  for (const char* name : {"link", "none"}) {
    EXPECT_FALSE(lock_existing(folder / name).is_open()) << name;
  }
  const Descriptor lock = lock_existing(folder / "f");
  EXPECT_EQ(thrown<StateError>([&] { lock_existing(folder / "f"); }),
            "[create] " + folder / "f" +
                " is being written by another process, or by another writer of this one, expected "
                "one at a time");
  EXPECT_EQ(thrown<StateError>([&] { create_new(folder / "f"); }),
            "[create] " + folder / "f" +
                " is being written by another process, or by another writer of this one, expected "
                "one at a time");
  EXPECT_EQ(read_file(folder / "f"), "x");
  unlock(lock);
  EXPECT_TRUE(lock_existing(folder / "f").is_open());
}

TEST(Names, OfFilesLinksAndFolders) {
  const TempFolder folder;
  write_raw(folder / "f", "x");
  std::filesystem::create_directory(folder / "d");
  std::filesystem::create_symlink(folder / "f", folder / "to_f");
  std::filesystem::create_symlink(folder / "d", folder / "to_d");
  std::filesystem::create_symlink(folder / "none", folder / "to_none");
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  const std::tuple<const char*, bool, bool> names[] = {
      {"f", true, true},      {"d", false, false},       {"to_f", true, false},
      {"to_d", false, false}, {"to_none", false, false}, {"none", false, false},
      {"fifo", true, false},
  };
  for (const auto& [name, exists, is_own] : names) {
    EXPECT_EQ(file_exists(folder / name), exists) << name;
    EXPECT_EQ(is_own_file(folder / name), is_own) << name;
  }
  EXPECT_EQ(identity_of(folder / "to_f"), identity_of(folder / "f"));
  EXPECT_TRUE(identity_of(folder / "f").there);
  EXPECT_FALSE(identity_of(folder / "f") == identity_of(folder / "d"));
  EXPECT_EQ(identity_of(folder / "to_none"), FileIdentity());
  EXPECT_EQ(identity_of(open_regular(folder / "f")), identity_of(folder / "f"));
  EXPECT_EQ(identity_of(Descriptor()), FileIdentity());
}

}  // namespace
}  // namespace openrnn::formats
