// Moving workers apart: which are moved, what their affinity is afterwards, and that it can be
// turned off.
#include "cpu/threading/affinity.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "cpu/support/affinity_mask.h"
#include "openrnn/runtime.h"

namespace openrnn::cpu {
namespace {

/// Member 1 of a job: seen on the processor of the caller, whatever runs where afterwards.
class WorkerBeside {
 public:
  explicit WorkerBeside(Placement& placement) {
    const cpu_set_t all = mask_of_this_thread();
    stay_here();
    placement.begin(2);
    thread_ = std::thread([this, &placement, all] {
      placement.enter(1);
      placement.seen(1);
      sched_setaffinity(0, sizeof(all), &all);
      ready_ = true;
      while (!done_) std::this_thread::yield();
      const cpu_set_t now = mask_of_this_thread();
      same_ = CPU_EQUAL(&now, &all);
      placement.leave(1);
    });
    while (!ready_) std::this_thread::yield();
    placement.spread(0);
    sched_setaffinity(0, sizeof(all), &all);
  }
  /// Whether the worker may run where it might before.
  bool has_its_mask() {
    done_ = true;
    thread_.join();
    return same_;
  }

 private:
  std::atomic<bool> ready_{false}, done_{false};
  bool same_ = false;
  std::thread thread_;
};

class Affinity : public ::testing::Test {
 protected:
  void SetUp() override {
    const cpu_set_t mask = mask_of_this_thread();
    if (CPU_COUNT(&mask) < 2) GTEST_SKIP() << "one processor: nobody can be moved";
  }
  void TearDown() override { set_spread_threads(true); }
};

TEST_F(Affinity, AWorkerOnTheCallersProcessorIsMovedAndMayRunWhereItMightBefore) {
  set_spread_threads(true);
  Placement placement;
  WorkerBeside worker(placement);
  EXPECT_EQ(placement.moves(), 1);
  EXPECT_TRUE(worker.has_its_mask());
}

TEST_F(Affinity, EachJobMovesItsOwnWorker) {
  set_spread_threads(true);
  Placement placement;
  for (int job = 1; job <= 3; ++job) {
    WorkerBeside worker(placement);
    EXPECT_EQ(placement.moves(), job);
    EXPECT_TRUE(worker.has_its_mask());
  }
}

TEST_F(Affinity, NobodyIsMovedWhenItIsTurnedOff) {
  set_spread_threads(false);
  EXPECT_FALSE(spread_threads());
  Placement placement;
  WorkerBeside worker(placement);
  EXPECT_EQ(placement.moves(), 0);
  EXPECT_TRUE(worker.has_its_mask());
}

TEST_F(Affinity, AWorkerThatMayRunNowhereElseStays) {
  set_spread_threads(true);
  Placement placement;
  const cpu_set_t all = mask_of_this_thread();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
  sched_setaffinity(0, sizeof(one), &one);
  {
    WorkerBeside worker(placement);
    EXPECT_EQ(placement.moves(), 0);
    EXPECT_TRUE(worker.has_its_mask());
  }
  sched_setaffinity(0, sizeof(all), &all);
}

}  // namespace
}  // namespace openrnn::cpu
