// Which workers are moved apart, by where the members of a job were last seen.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "cpu/support/affinity_mask.h"
#include "cpu/threading/affinity.h"
#include "openrnn/runtime.h"

namespace openrnn::cpu {
namespace {

/// This thread stays on one processor while it lives.
class Pinned {
 public:
  Pinned() : before_(mask_of_this_thread()) { stay_here(); }
  ~Pinned() { sched_setaffinity(0, sizeof(before_), &before_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  cpu_set_t before_;
};

/// A thread that is member 1, and waits.
class WaitingWorker {
 public:
  explicit WaitingWorker(Placement& placement) {
    thread_ = std::thread([this, &placement] {
      placement.enter(1);
      ready_ = true;
      while (!done_) std::this_thread::yield();
    });
    while (!ready_) std::this_thread::yield();
  }
  ~WaitingWorker() {
    done_ = true;
    thread_.join();
  }
  WaitingWorker(const WaitingWorker&) = delete;
  WaitingWorker& operator=(const WaitingWorker&) = delete;

 private:
  std::atomic<bool> ready_{false}, done_{false};
  std::thread thread_;
};

class Placements : public ::testing::Test {
 protected:
  void SetUp() override {
    const cpu_set_t mask = mask_of_this_thread();
    if (CPU_COUNT(&mask) < 2) GTEST_SKIP() << "one processor: nobody can be moved";
    set_spread_threads(true);
  }
  /// How often the worker is moved by what this thread, which does not leave its processor, says of
  /// the members.
  static int moves_of(const std::function<void(Placement& placement)>& said) {
    Placement placement;
    const WaitingWorker worker(placement);
    const Pinned here;
    said(placement);
    return placement.moves();
  }
};

TEST_F(Placements, OneThatWasSeenBesideAnotherIsMoved) {
  const auto beside = [](int members, int asks) {
    return moves_of([=](Placement& placement) {
      placement.begin(members);
      placement.seen(1);
      placement.spread(asks);
    });
  };
  EXPECT_EQ(beside(2, 0), 1) << "beside the caller, which waits";
  EXPECT_EQ(beside(3, 2), 1) << "beside a worker, which waits";
  EXPECT_EQ(beside(2, 1), 1) << "beside the caller, for which it waits itself";
}

TEST_F(Placements, OneThatWasNotSeenYetIsMovedByTheCallerAlone) {
  const auto unseen = [](int asks) {
    return moves_of([=](Placement& placement) {
      placement.begin(3);
      placement.spread(asks);
    });
  };
  EXPECT_EQ(unseen(0), 1);
  EXPECT_EQ(unseen(2), 0);
}

TEST_F(Placements, OneOfAnEarlierJobStays) {
  EXPECT_EQ(moves_of([](Placement& placement) {
              placement.begin(2);
              placement.seen(1);
              placement.begin(1);
              placement.spread(0);
            }),
            0);
}

TEST_F(Placements, ThreadsOfAHostStay) {
  EXPECT_EQ(moves_of([](Placement& placement) {
              placement.begin(0);
              placement.seen(1);
              placement.spread(0);
            }),
            0);
}

// Its number may be that of another program's thread by then.
TEST_F(Placements, OneThatHasLeftStays) {
  EXPECT_EQ(moves_of([](Placement& placement) {
              placement.leave(1);
              placement.begin(2);
              placement.seen(1);
              placement.spread(0);
            }),
            0);
}

}  // namespace
}  // namespace openrnn::cpu
