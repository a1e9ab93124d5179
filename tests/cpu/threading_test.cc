// The thread pool, its barrier, shares, plans and memory.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "cpu/memory/block.h"
#include "cpu/threading/barrier.h"
#include "cpu/threading/contention.h"
#include "cpu/threading/thread_lease.h"
#include "cpu/threading/thread_pool.h"
#include "openrnn/runtime.h"

namespace openrnn::cpu {
namespace {

/// Leases have the threads that they want, whoever else runs here.
class Unheeding : public ::testing::Environment {
 public:
  void SetUp() override { heed_contention(false); }
};
const ::testing::Environment* const unheeding = ::testing::AddGlobalTestEnvironment(new Unheeding);

TEST(ThreadPoolTest, EveryMemberRunsOnce) {
  for (const int wanted : {1, 2, 5, 3}) {
    ThreadLease lease(wanted);
    std::vector<int> calls(static_cast<std::size_t>(lease.threads()));
    lease.run([&](int thread) { ++calls[static_cast<std::size_t>(thread)]; });
    EXPECT_EQ(calls, std::vector<int>(calls.size(), 1));
    EXPECT_EQ(lease.threads(), wanted);
  }
}

/// A host with a thread for each member but the caller's; keeps who took part.
struct Host {
  static void run(int count, void (*part)(void* context, int member), void* context) {
    ++jobs;
    std::vector<std::thread> threads;
    for (int i = 1; i < std::min(count, most); ++i) threads.emplace_back(part, context, i);
    part(context, 0);
    for (std::thread& thread : threads) thread.join();
  }
  static inline int jobs = 0, most = 1000;
};

TEST(HostThreadsTest, EveryMemberRunsOnceOnThreadsOfTheHost) {
  end_workers();
  const HostThreadsScope scope(Host::run);
  const volatile float small = 0x1p-126F, half = 0.5F;
  for (const int most : {1000, 2, 1}) {
    Host::most = most;
    Host::jobs = 0;
    for (const int wanted : {1, 2, 5, 3}) {
      ThreadLease lease(wanted);
      EXPECT_EQ(lease.threads(), wanted);
      std::vector<int> calls(static_cast<std::size_t>(wanted));
      std::vector<std::thread::id> ids(calls.size());
      std::vector<float> products(calls.size(), 1.0F);
      lease.run([&](int thread) {
        const auto at = static_cast<std::size_t>(thread);
        ++calls[at];
        ids[at] = std::this_thread::get_id();
        products[at] = small * half;
      });
      EXPECT_EQ(calls, std::vector<int>(calls.size(), 1)) << "those that it leaves out, too";
      EXPECT_EQ(products, std::vector<float>(calls.size(), 0.0F));
      for (std::size_t i = 0; i < ids.size(); ++i) {
        // A part that its thread was late for is the caller's, too.
        const bool by_caller = i == 0 || static_cast<int>(i) >= most;
        if (by_caller) {
          EXPECT_EQ(ids[i], std::this_thread::get_id()) << i;
        }
      }
    }
    EXPECT_EQ(Host::jobs, 3) << "one thread needs none";
  }
  Host::most = 1000;
  EXPECT_EQ(small * half, 0x1p-127F);
}

TEST(HostThreadsTest, BarriersWorkAndNoWorkerIsStarted) {
  end_workers();
  {
    const HostThreadsScope scope(Host::run);
    Barrier barrier;
    std::vector<int> sums(200);
    ThreadLease lease(2);
    std::atomic<int> sum{0};
    lease.run([&](int) {
      for (int& each : sums) {
        ++sum;
        if (barrier.wait(2)) return;
        each = sum;
        if (barrier.wait(2)) return;
      }
    });
    for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i], 2 * static_cast<int>(i) + 2);
    EXPECT_EQ(pool.workers, 0);
    const HostThreadsScope own(nullptr);
    ThreadLease inner(2);
    EXPECT_EQ(inner.threads(), 1) << "one lease at a time has the pool";
  }
  EXPECT_EQ(exchange_host_threads(nullptr), nullptr) << "the scope is over";
  const int before = Host::jobs;
  ThreadLease lease(2);
  lease.run([](int) {});
  EXPECT_EQ(Host::jobs, before);
  EXPECT_EQ(pool.workers, 1);
}

// Subnormal results are slow, and one thread's bits must not differ from another's.
TEST(ThreadPoolTest, EveryMemberFlushesSubnormalsAndTheCallerKeepsItsOwn) {
  const volatile float small = 0x1p-126F, half = 0.5F;
  for (const int wanted : {1, 2, 3}) {
    ThreadLease lease(wanted);
    std::vector<float> products(static_cast<std::size_t>(lease.threads()), 1.0F);
    lease.run([&](int thread) { products[static_cast<std::size_t>(thread)] = small * half; });
    EXPECT_EQ(products, std::vector<float>(products.size(), 0.0F)) << wanted;
    EXPECT_EQ(small * half, 0x1p-127F) << wanted;
  }
}

TEST(ThreadPoolTest, ASecondLeaseRunsSingleThreaded) {
  ThreadLease first(2);
  ASSERT_EQ(first.threads(), 2);
  std::thread([] {
    ThreadLease second(2);
    EXPECT_EQ(second.threads(), 1);
    int calls = 0;
    second.run([&](int) { ++calls; });
    EXPECT_EQ(calls, 1);
  }).join();
}

TEST(ThreadPoolTest, BarrierSeparatesSteps) {
  constexpr int kSteps = 2000;
  for (const int members : {2, 3, 9}) {
    ThreadLease lease(members);
    Barrier barrier;
    std::vector<std::vector<int>> seen(static_cast<std::size_t>(members),
                                       std::vector<int>(kSteps, -1));
    std::atomic<int> wrong{0};
    lease.run([&](int thread) {
      for (int step = 0; step < kSteps / members; ++step) {
        seen[static_cast<std::size_t>(thread)][static_cast<std::size_t>(step)] = step;
        barrier.wait(lease.threads());
        for (const auto& other : seen) wrong += other[static_cast<std::size_t>(step)] != step;
      }
    });
    EXPECT_EQ(wrong, 0) << members;
  }
}

TEST(ThreadPoolTest, AForkedChildHasAPoolOfItsOwn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer ends a forked child that starts threads";
#endif
  {
    ThreadLease lease(2);
    lease.run([](int) {});
  }
  const pid_t child = fork();
  if (child == 0) {
    ThreadLease lease(2);
    std::atomic<int> calls{0};
    lease.run([&](int) { ++calls; });
    _exit(calls == 2 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(ThreadPoolTest, TheCallersFloatingPointStateComesBack) {
  volatile float tiny = 1e-39f;
  ThreadLease lease(1);
  float inside = 1;
  lease.run([&](int) { inside = tiny * 0.75f; });
  EXPECT_EQ(inside, 0.0f);
  EXPECT_GT(tiny * 0.75f, 0.0f);
}

TEST(ThreadPoolTest, BarrierLatencyIsMeasuredOrAssumed) {
  ThreadLease lease(3);
  const double measured = lease.barrier_latency();
  EXPECT_GT(measured, 0.0);
  EXPECT_LT(measured, 10.0);
  assume_barrier_latency(3e-6);
  EXPECT_EQ(lease.barrier_latency(), 3e-6);
  assume_barrier_latency(0);
  EXPECT_EQ(lease.threads(), 3);
  lease.keep(1);
  EXPECT_EQ(lease.barrier_latency(), 0.0);
}

TEST(ThreadPoolTest, ALeaseOfOneThreadLeavesThePoolToOthers) {
  ThreadLease first(2);
  first.keep(1);
  std::thread([] { EXPECT_EQ(ThreadLease(2).threads(), 2); }).join();
}

TEST(ThreadPoolTest, KeepsTheFirstThreadsOnly) {
  ThreadLease lease(5);
  ASSERT_EQ(lease.threads(), 5);
  lease.keep(2);
  std::vector<int> calls(5);
  for (int i = 0; i < 100; ++i)
    lease.run([&](int thread) { ++calls.at(static_cast<std::size_t>(thread)); });
  EXPECT_EQ(calls, (std::vector<int>{100, 100, 0, 0, 0}));
  lease.keep(4);
  EXPECT_EQ(lease.threads(), 2) << "what was let go does not come back";
  lease.keep(0);
  EXPECT_EQ(lease.threads(), 1);
}

// Nine members on the processors of this machine: whoever comes late finds its part done.
TEST(ThreadPoolTest, TheCallerDoesWhatNobodyHasBegun) {
  const auto caller = std::this_thread::get_id();
  ThreadLease lease(9);
  ASSERT_EQ(lease.threads(), 9);
  std::vector<int> calls(9);
  std::vector<std::thread::id> by(9);
  int taken_over = 0;
  for (int jobs = 1; jobs <= 2000 || taken_over == 0; ++jobs) {
    lease.run([&](int thread) {
      const auto i = static_cast<std::size_t>(thread);
      ++calls[i];
      by[i] = std::this_thread::get_id();
    });
    ASSERT_EQ(calls, std::vector<int>(9, jobs));
    for (std::size_t i = 1; i < 9; ++i) taken_over += by[i] == caller;
  }
  EXPECT_EQ(by[0], caller);
}

void sleep_in_worker(int member) {
  if (member > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

// What decides is counted, not timed: on a busy machine the caller, too, may be away meanwhile.
TEST(ThreadPoolTest, AfterLateBarriersLeasesHaveOneThreadAndThenMoreAreTried) {
  heed_contention(true);
  forget_contention();
  const auto threads = [] { return ThreadLease(2).threads(); };
  ASSERT_EQ(threads(), 2);
  hook_pieces(sleep_in_worker);
  const auto run_barrier = [] {
    ThreadLease lease(2);
    Barrier barrier;
    lease.run([&](int) { barrier.wait(lease.threads()); });
  };
  // Asked once a job, as a pause may end at any time.
  const auto run_until_one = [&] {
    int now = 2;
    for (int job = 0; job < 1000 && now == 2; ++job) {
      run_barrier();
      now = threads();
    }
    return now;
  };
  EXPECT_EQ(run_until_one(), 1);
  while (threads() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(run_until_one(), 1) << "the trial failed";
  hook_pieces(nullptr);
  forget_contention();
  EXPECT_EQ(threads(), 2);
  heed_contention(false);
}

TEST(ThreadPoolTest, EveryMemberIsToldToGoOnAlone) {
  heed_contention(true);
  forget_contention();
  hook_pieces(sleep_in_worker);
  bool told[2] = {};
  for (int job = 0; job < 1000 && !told[0]; ++job) {
    forget_contention();
    ThreadLease lease(2);
    Barrier barrier;
    lease.run([&](int thread) { told[thread] = barrier.wait(lease.threads()); });
    ASSERT_EQ(told[0], told[1]);
  }
  EXPECT_TRUE(told[0]);
  hook_pieces(nullptr);
  heed_contention(false);
}

/// A record that is told of jobs of 1 ms, of which `waited` are spent in waiting, as long as it
/// allows them.
struct Told {
  Contention contention;
  double now = 100;
  void jobs(int count, int threads, double waited) {
    for (int i = 0; i < count && allow(threads) == threads; ++i) {
      contention.tell(threads, {1e-3, waited}, now += 1e-3);
    }
  }
  int allow(int wanted, double alone = 0) const { return contention.allow(wanted, now, alone); }
};

TEST(ContentionTest, WhatIsGainedIsTheWorkOfAllLessTheTime) {
  EXPECT_DOUBLE_EQ(gained({1.0, 0.0}, 2), 1.0);
  EXPECT_DOUBLE_EQ(gained({1.0, 0.5}, 2), 0.0);
  EXPECT_DOUBLE_EQ(gained({1.0, 1.0}, 8), -1.0);
  EXPECT_DOUBLE_EQ(gained({1.0, 0.5}, 4), 1.0);
}

TEST(ContentionTest, LateJobsEndInOneThreadForAWhile) {
  Told told;
  told.jobs(100, 2, 0);
  EXPECT_EQ(told.allow(2), 2);
  told.jobs(20, 2, 0.95e-3);
  EXPECT_EQ(told.allow(2), 2) << "not yet more than was gained";
  told.jobs(30, 2, 0.95e-3);
  EXPECT_EQ(told.allow(2), 1);
  EXPECT_EQ(told.allow(1), 1);
  told.now += 4e-3;
  EXPECT_EQ(told.allow(2), 1);
  told.now += 2e-3;
  EXPECT_EQ(told.allow(2), 2) << "a trial";
}

TEST(ContentionTest, NowAndThenALateJobIsBetterThanOneThread) {
  Told told;
  for (int i = 0; i < 1000; ++i) {
    told.jobs(5, 2, 0);
    told.contention.tell(2, {4e-3, 3.5e-3}, told.now);
    ASSERT_EQ(told.allow(2), 2);
  }
}

TEST(ContentionTest, EveryTrialThatFailsDoublesThePause) {
  Told told;
  told.jobs(10, 2, 1e-3);
  double last = 0;
  for (int trial = 0; trial < 10; ++trial) {
    ASSERT_EQ(told.allow(2), 1);
    const double before = told.now;
    while (told.allow(2) == 1) told.now += 0.1e-3;
    const double pause = told.now - before;
    EXPECT_GT(pause, std::min(1.5 * last, 0.9));
    EXPECT_LT(pause, 1.01);
    last = pause;
    told.jobs(100, 2, 1e-3);
  }
  EXPECT_GT(last, 0.9);
}

TEST(ContentionTest, ATrialThatSucceedsBringsThemBackAndIsForgotten) {
  Told told;
  told.jobs(10, 2, 1e-3);
  told.now += 1;
  told.jobs(25, 2, 0);
  told.jobs(3, 2, 1e-3);
  EXPECT_EQ(told.allow(2), 2);
  told.jobs(1000, 2, 0);
  told.jobs(100, 2, 1e-3);
  ASSERT_EQ(told.allow(2), 1);
  told.now += 6e-3;
  EXPECT_EQ(told.allow(2), 2) << "the pause is short again";
}

TEST(ContentionTest, OfManyThreadsOneBusyProcessorCostsOne) {
  Told told;
  told.jobs(100, 8, 0.99e-3);
  EXPECT_EQ(told.allow(8), 4);
  EXPECT_EQ(told.allow(3), 3);
  std::vector<int> tried;
  for (int round = 0; round < 6; ++round) {
    told.now += 2;
    tried.push_back(told.allow(8));
    told.jobs(100, tried.back(), tried.back() == 8 ? 0.99e-3 : 0);
  }
  EXPECT_EQ(tried, (std::vector<int>{6, 7, 8, 8, 8, 8}));
  EXPECT_EQ(told.allow(8), 7);
  told.jobs(100, 7, 0.99e-3);
  EXPECT_EQ(told.allow(8), 3) << "more busy programs";
}

TEST(ContentionTest, ALongJobTriesByItself) {
  Told told;
  told.jobs(10, 2, 1e-3);
  EXPECT_EQ(told.allow(2, 1e-3), 1);
  EXPECT_EQ(told.allow(2, 1.0), 2);
  EXPECT_DOUBLE_EQ(least_wait(0), least_wait(1e-3));
  EXPECT_GT(least_wait(1.0), 10 * least_wait(0));
}

TEST(ThreadPoolTest, ThreadsGrowWithTheWork) {
  EXPECT_EQ(threads_for(99, 100, 64), 1);
  EXPECT_EQ(threads_for(100, 100, 64), 2);
  EXPECT_EQ(threads_for(450, 100, 64), 9);
  EXPECT_EQ(threads_for(1e30, 100, 64), 64);
  EXPECT_EQ(threads_for(1e30, 100, 1), 1);
}

TEST(ShareTest, SharesCoverAllInWholeGrains) {
  for (const std::int64_t size : {0, 1, 7, 24, 100}) {
    for (const int count : {1, 2, 3, 8}) {
      std::int64_t next = 0;
      for (int i = 0; i < count; ++i) {
        const Share share(size, 6, i, count);
        EXPECT_EQ(share.first, next);
        EXPECT_TRUE(share.last == size || share.last % 6 == 0);
        next = share.last;
      }
      EXPECT_EQ(next, size);
    }
  }
}

TEST(BlockTest, IsAlignedAndUsedAgain) {
  void* first = nullptr;
  {
    const Block block(100000);
    first = block.data();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0u);
    EXPECT_GE(block.size(), 100000u);
  }
  const Block again(100000);
  EXPECT_EQ(again.data(), first);
  EXPECT_EQ(Block(0).data(), nullptr);
}

}  // namespace
}  // namespace openrnn::cpu
