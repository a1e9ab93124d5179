// What `openrnn bench --load` measures, and what it says of files that cannot be read.
#include "cli/bench/load_files.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "formats/temp_folder.h"
#include "support/expect_error.h"
#include "support/in_child.h"

namespace openrnn::cli {
namespace {

using formats::TempFolder;

TEST(Loading, IsOfEachKindOfFile) {
  const TempFolder folder;
  std::vector<std::string> kinds;
  measure_loading(folder.path(), 1, "", [&](const LoadCost& cost) {
    kinds.push_back(cost.kind);
    EXPECT_NEAR(cost.file_bytes, 0x1p20, 0x1p17) << cost.kind;
    EXPECT_GT(cost.load_seconds, 0.0);
    EXPECT_GT(cost.read_seconds, 0.0);
    EXPECT_GT(cost.peak_bytes, cost.file_bytes) << "a peak in KiB would be less";
    EXPECT_EQ(cost.rate_ratio(), cost.read_seconds / cost.load_seconds);
    EXPECT_EQ(cost.memory_ratio(), cost.peak_bytes / cost.file_bytes);
  });
  EXPECT_EQ(kinds, (std::vector<std::string>{"OpenRNN", "safetensors", "PyTorch", "npz", "ONNX",
                                             "Keras .h5", "Keras 3", "TensorFlow"}));
  EXPECT_TRUE(folder.names().empty());
}

TEST(Loading, IsOfTheKindsThatAreNamed) {
  const TempFolder folder;
  std::vector<std::string> kinds;
  const auto note = [&](const LoadCost& cost) { kinds.push_back(cost.kind); };
  measure_loading(folder.path(), 1, "Keras", note);
  EXPECT_EQ(kinds, (std::vector<std::string>{"Keras .h5", "Keras 3"}));
  measure_loading(folder.path(), 1, "keras", note);
  EXPECT_EQ(kinds.size(), 2U);
}

TEST(Loading, TimesUntilReadyAreMeasuredAndNothingStays) {
  const TempFolder folder;
  const ReadyCost cost = measure_ready(folder.path());
  EXPECT_GT(cost.first_ms, 0.0);
  EXPECT_GT(cost.best_ms, 0.0);
  EXPECT_TRUE(folder.names().empty());
}

// Of this process alone, also for one that may read everything.
void read_nothing_that_is_made_from_now_on() {
  ::umask(0777);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct all[2]{};
  ::syscall(SYS_capget, &header, all);
  for (__user_cap_data_struct& each : all) each.effective = 0;
  ::syscall(SYS_capset, &header, all);
}

TEST(Loading, AFileThatCannotBeReadIsNotReadInNoTime) {
  const TempFolder folder;
  const auto said = [&](const auto& call) {
    return openrnn::in_child([&] {
             read_nothing_that_is_made_from_now_on();
             return error_of<IoError>(call);
           })
        .value_or("died");
  };
  const auto ignore = [](const LoadCost&) {};
  EXPECT_EQ(said([&] { measure_loading(folder.path(), 1, "safetensors", ignore); }),
            "[bench] the process for a plain read failed, expected it to end well");
  EXPECT_EQ(said([&] { measure_ready(folder.path()); }),
            "[bench] the process for loading 1 MB failed, expected it to end well");
  const std::string none = folder / "none";
  EXPECT_EQ(said([&] { measure_loading(none, 1, "npz", ignore); }),
            "[bench] the process for writing a file failed, expected it to end well");
}

}  // namespace
}  // namespace openrnn::cli
