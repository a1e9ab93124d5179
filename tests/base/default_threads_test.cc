// How many threads there are when nobody says it: the processors that the process may use, and the
// part of them that its control group grants.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>

#include <cstdio>
#include <fstream>

#include "formats/temp_folder.h"
#include "openrnn/base.h"
#include "support/in_child.h"

namespace {

// The folder in place of /sys/fs/cgroup.
std::string groups;
// How many processors the system says; below 0: it says nothing.
int processors = 8;

FILE* opened(const char* path, const char* mode) {
  constexpr std::string_view kGroups = "/sys/fs/cgroup/";
  std::string place = path;
  if (place.starts_with(kGroups)) place = groups + "/" + place.substr(kGroups.size());
  const int flags =
      std::string_view(mode).starts_with('r') ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC;
  const auto file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, place.c_str(), flags, 0600));
  return file < 0 ? nullptr : fdopen(file, mode);
}

}  // namespace

// NOLINTBEGIN: the names and types of the C library
extern "C" {
FILE* fopen(const char* path, const char* mode) { return opened(path, mode); }
FILE* fopen64(const char* path, const char* mode) { return opened(path, mode); }
int sched_getaffinity(pid_t, size_t, cpu_set_t* set) noexcept {
  if (processors < 0) return -1;
  for (int i = 0; i < processors; ++i) CPU_SET(static_cast<std::size_t>(3 * i), set);
  return 0;
}
}
// NOLINTEND

namespace openrnn {
namespace {

using GroupFiles = std::vector<std::pair<std::string, std::string>>;

std::string threads_of(const GroupFiles& files, int of_system = 8) {
  const formats::TempFolder folder;
  std::filesystem::create_directories(folder / "cpu");
  for (const auto& [name, text] : files) {
    std::ofstream(folder / name, std::ios::trunc) << text;
  }
  groups = folder / "";
  processors = of_system;
  return in_child([] {
           unsetenv("OPENRNN_NUM_THREADS");
           return std::to_string(num_threads());
         })
      .value_or("(the child died)");
}

TEST(DefaultThreads, AreAllProcessorsThatTheProcessMayUse) {
  EXPECT_EQ(threads_of({}, 8), "8");
  EXPECT_EQ(threads_of({}, 1), "1");
  EXPECT_EQ(threads_of({}, 0), "1");
  EXPECT_EQ(threads_of({}, -1), "1");
}

TEST(DefaultThreads, AreAsManyAsAControlGroupGrants) {
  const auto v2 = [](const char* text) { return threads_of({{"cpu.max", text}}); };
  EXPECT_EQ(v2("300000 100000\n"), "3");
  EXPECT_EQ(v2("390000 100000\n"), "3");
  EXPECT_EQ(v2("50000 100000\n"), "1");
  EXPECT_EQ(v2("100000 20000\n"), "5");
  EXPECT_EQ(v2("1600000 100000\n"), "8");
  EXPECT_EQ(v2("max 100000\n"), "8");
  EXPECT_EQ(v2("300000 0\n"), "8");
  const auto v1 = [](const char* quota, const char* period) {
    return threads_of({{"cpu/cpu.cfs_quota_us", quota}, {"cpu/cpu.cfs_period_us", period}});
  };
  EXPECT_EQ(v1("500000\n", "100000\n"), "5");
  EXPECT_EQ(v1("590000\n", "100000\n"), "5");
  EXPECT_EQ(v1("20000\n", "100000\n"), "1");
  EXPECT_EQ(v1("900000\n", "100000\n"), "8");
  EXPECT_EQ(v1("-1\n", "100000\n"), "8");
  EXPECT_EQ(v1("0\n", "100000\n"), "8");
  EXPECT_EQ(v1("500000\n", "0\n"), "8");
  EXPECT_EQ(threads_of({{"cpu/cpu.cfs_quota_us", "500000\n"}}), "8");
  // The newer file counts where both are there.
  EXPECT_EQ(threads_of({{"cpu.max", "200000 100000\n"},
                        {"cpu/cpu.cfs_quota_us", "500000\n"},
                        {"cpu/cpu.cfs_period_us", "100000\n"}}),
            "2");
  EXPECT_EQ(threads_of({{"cpu.max", "max 100000\n"},
                        {"cpu/cpu.cfs_quota_us", "500000\n"},
                        {"cpu/cpu.cfs_period_us", "100000\n"}}),
            "8");
}

// What was found first stays, whatever the environment says later.
TEST(DefaultThreads, AreFoundOnce) {
  const auto found = in_child([] {
    setenv("OPENRNN_NUM_THREADS", "3", 1);
    std::string text = std::to_string(num_threads());
    setenv("OPENRNN_NUM_THREADS", "5", 1);
    text += " " + std::to_string(num_threads());
    set_num_threads(7);
    return text + " " + std::to_string(num_threads());
  });
  EXPECT_EQ(found.value_or("(the child died)"), "3 3 7");
}

// A number that is set before it is asked for the first time.
TEST(DefaultThreads, AreNotLookedForOnceTheyAreSet) {
  const auto found = in_child([] {
    set_num_threads(6);
    setenv("OPENRNN_NUM_THREADS", "nonsense", 1);
    return std::to_string(num_threads());
  });
  EXPECT_EQ(found.value_or("(the child died)"), "6");
}

}  // namespace
}  // namespace openrnn
