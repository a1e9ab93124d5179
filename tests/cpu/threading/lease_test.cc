// What a lease on the thread pool learns of other programs, and what it leaves behind.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include "cpu/threading/barrier.h"
#include "cpu/threading/spin.h"
#include "cpu/threading/thread_lease.h"
#include "cpu/threading/thread_pool.h"
#include "openrnn/runtime.h"

namespace openrnn::cpu {
namespace {

using std::chrono::milliseconds;

constexpr double kNever = std::numeric_limits<double>::infinity();

class Lease : public ::testing::Test {
 protected:
  void SetUp() override {
    heed_contention(false);
    forget_contention();
    // One that wakes up late would take part in the next job.
    end_workers();
  }
  void TearDown() override {
    hook_pieces(nullptr);
    heed_contention(false);
    forget_contention();
  }
};

// Two threads have lost a second, more than an hour from now.
void lose_processors(int member) {
  if (member == 0) pool.contention.tell(2, {1.0, 1.0}, seconds_now() + 4000);
}

void sleep_in_worker(int member) {
  if (member > 0) std::this_thread::sleep_for(milliseconds(5));
}

TEST_F(Lease, GivesWayToWhatMeasuringTheBarrierTells) {
  heed_contention(true);
  pool.latency = {};
  hook_pieces(lose_processors);
  ThreadLease lease(3);
  ASSERT_EQ(lease.threads(), 3);
  EXPECT_EQ(lease.barrier_latency(), 0.0);
  EXPECT_EQ(lease.threads(), 1);
  EXPECT_FALSE(ThreadLease::is_held_here());
}

// Its length is that of the job that it was made for, not that of the measurement.
TEST_F(Lease, OfALongJobKeepsMoreThreadsAfterMeasuring) {
  heed_contention(true);
  pool.latency = {};
  hook_pieces(lose_processors);
  ThreadLease lease(3, 1e9);
  ASSERT_EQ(lease.threads(), 3);
  EXPECT_GT(lease.barrier_latency(), 0.0);
  EXPECT_EQ(lease.threads(), 2);
  EXPECT_TRUE(ThreadLease::is_held_here());
}

TEST_F(Lease, LearnsNothingWhereItIsNotToHeed) {
  hook_pieces(sleep_in_worker);
  for (int job = 0; job < 10; ++job) {
    ThreadLease lease(2);
    ASSERT_EQ(lease.threads(), 2);
    Barrier barrier;
    bool told[2] = {};
    lease.run([&](int thread) { told[thread] = barrier.wait(2); });
    EXPECT_FALSE(told[0] || told[1]) << "nobody goes on alone";
  }
  hook_pieces(nullptr);
  heed_contention(true);
  EXPECT_EQ(ThreadLease(2).threads(), 2);
}

TEST_F(Lease, AJobThatItsCallerFinishedAloneIsOverWithIt) {
  const int before = jobs_finished_alone();
  ThreadLease lease(2);
  lease.run([](int thread) {
    if (thread == 0) went_on_alone();
  });
  EXPECT_EQ(jobs_finished_alone(), before + 1);
  EXPECT_TRUE(pool.alone);
  lease.run([](int) {});
  EXPECT_FALSE(pool.alone);
  EXPECT_EQ(jobs_finished_alone(), before + 1);
}

/// Leaves all parts to the caller.
void run_by_caller(int, void (*part)(void* context, int member), void* context) {
  part(context, 0);
}

// Two threads of which one does all gain nothing, however long it takes.
TEST_F(Lease, PartsThatTheCallerTookOverAreNoGain) {
  const HostThreadsScope scope(run_by_caller);
  heed_contention(true);
  // A loss of a second ago: two threads may be tried.
  pool.contention.tell(2, {1.0, 1.0}, seconds_now() - 1.0);
  for (int job = 0; job < 20; ++job) {
    ThreadLease lease(2);
    ASSERT_EQ(lease.threads(), 2);
    lease.run([](int) { std::this_thread::sleep_for(milliseconds(2)); });
  }
  EXPECT_EQ(pool.contention.allow(2, 0, 0), 1) << "the trial has not succeeded";
}

TEST_F(Lease, HasOneThreadWhileThePoolIsBeingEnded) {
  pool.ending.fetch_add(1);
  EXPECT_EQ(ThreadLease(2).threads(), 1);
  pool.ending.fetch_sub(1);
  EXPECT_EQ(ThreadLease(2).threads(), 2);
}

TEST_F(Lease, OfAParentIsNoneOfItsChild) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer ends a forked child that starts threads";
#endif
  const HostThreadsScope scope(run_by_caller);
  const ThreadLease lease(2);
  ASSERT_TRUE(ThreadLease::is_held_here());
  const pid_t child = fork();
  if (child == 0) {
    const bool held = ThreadLease::is_held_here(), host = exchange_host_threads(nullptr) != nullptr;
    const ThreadLease own(2);
    _exit(!held && !host && own.threads() == 2 && pool.workers == 1 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(BarrierLatencyTest, IsUsedForAHundredTimesWhatMeasuringTook) {
  using Time = BarrierLatency::Clock::time_point;
  const Time start(std::chrono::hours(1));
  const std::chrono::nanoseconds one(1);
  BarrierLatency latency;
  EXPECT_FALSE(latency.is_known(start));
  EXPECT_EQ(latency.seconds(), 1e-6);
  double seconds = 2e-6;
  for (const auto& [took, believed] :
       {std::pair(milliseconds(0), milliseconds(20)), std::pair(milliseconds(3), milliseconds(300)),
        std::pair(milliseconds(50), milliseconds(1000))}) {
    const Time end = start + took;
    latency.tell(seconds, start, end);
    EXPECT_EQ(latency.seconds(), seconds);
    EXPECT_TRUE(latency.is_known(end + believed - one)) << took.count();
    EXPECT_FALSE(latency.is_known(end + believed)) << took.count();
    seconds *= 2;
  }
  // A member that was late tells nothing.
  const Time later = start + std::chrono::hours(1);
  latency.tell(kNever, later, later);
  EXPECT_EQ(latency.seconds(), seconds / 2);
  EXPECT_FALSE(latency.is_known(later));
}

// The job begins far from now, so that what was waited for is all that counts.
TEST(WaitsTest, AreAddedUpWithinAJob) {
  Waits waits;
  const Job job{.members = 2, .begun = seconds_now() + 1000, .least_wait = 2e-3};
  waits.begin(job);
  waits.over();
  EXPECT_EQ(waits.all(), 0.0) << "none was long";
  EXPECT_FALSE(waits.too_long());
  std::this_thread::sleep_for(milliseconds(3));
  EXPECT_TRUE(waits.too_long());
  waits.over();
  const double once = waits.all();
  EXPECT_GE(once, 3e-3);
  waits.over();
  EXPECT_EQ(waits.all(), once);
  EXPECT_TRUE(waits.too_long()) << "the next one goes on from it";
  waits.begin(job);
  EXPECT_EQ(waits.all(), 0.0);
  EXPECT_FALSE(waits.too_long());
}

// Of a job that has run for long only the last milliseconds count.
TEST(WaitsTest, AreComparedWithTheLastOfTheJob) {
  Waits waits;
  waits.begin({.members = 2, .begun = seconds_now() - 1000, .least_wait = 0.5e-3});
  EXPECT_FALSE(waits.too_long());
  std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(waits.too_long());
}

// What the members of a phase were told is none of the next one's.
TEST(BarrierTest, IsLateForOnePhase) {
  bool late = false;
  for (int attempt = 0; attempt < 1000 && !late; ++attempt) {
    Barrier barrier;
    bool next[2] = {};
    const auto pass = [&](int member, double least) {
      this_member().waits.begin({.members = 2, .begun = seconds_now() + 1000, .least_wait = least});
      if (member == 1) std::this_thread::sleep_for(milliseconds(5));
      const bool first = barrier.wait(2);
      if (member == 0) late = first;
      this_member().waits.begin({.members = 2, .begun = seconds_now(), .least_wait = kNever});
      next[member] = barrier.wait(2);
    };
    std::thread other([&] { pass(1, kNever); });
    pass(0, 0.0);
    other.join();
    EXPECT_FALSE(next[0] || next[1]);
  }
  EXPECT_TRUE(late);
}

}  // namespace
}  // namespace openrnn::cpu
