// Which processors the thread of a test may run on.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

namespace openrnn::cpu {

inline cpu_set_t mask_of_this_thread() {
  cpu_set_t mask;
  EXPECT_EQ(sched_getaffinity(0, sizeof(mask), &mask), 0);
  return mask;
}

/// From now on this thread stays on the processor that it is on.
inline void stay_here() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
  sched_setaffinity(0, sizeof(one), &one);
}

}  // namespace openrnn::cpu
