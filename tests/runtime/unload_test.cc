// A plug-in that holds the library can be unloaded whenever none of its calls runs.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include "support/own_threads.h"

namespace openrnn {
namespace {

using openrnn::testing::own_threads_down_to;
using openrnn::testing::threads_alone;

/// Loads the plug-in, runs a network in it on two threads, and unloads it.
void load_run_and_unload() {
  void* const plugin = dlopen(OPENRNN_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(plugin, nullptr) << dlerror();
  const auto run = reinterpret_cast<long (*)()>(dlsym(plugin, "run_network"));
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run(), 20 * 16 * 512);
  dlclose(plugin);
  ASSERT_EQ(dlopen(OPENRNN_PLUGIN, RTLD_NOW | RTLD_NOLOAD), nullptr) << "it is still loaded";
}

TEST(Unload, LeavesNoThreadBehind) {
  const int before = threads_alone();
  for (int round = 0; round < 20; ++round) {
    ASSERT_NO_FATAL_FAILURE(load_run_and_unload()) << "round " << round;
    ASSERT_EQ(own_threads_down_to(before), before) << "round " << round;
  }
}

TEST(Unload, LeavesNoMemoryBehind) {
  const auto used = [] {
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  load_run_and_unload();
  const std::size_t before = used();
  for (int round = 0; round < 5; ++round) load_run_and_unload();
  // The model alone is 5 MB.
  EXPECT_LT(used(), before + (1U << 20));
}

}  // namespace
}  // namespace openrnn
