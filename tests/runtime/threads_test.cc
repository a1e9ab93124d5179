// Which calls start threads, how a model and a session hold them to fewer, and how they end.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "conformance/support/machine.h"
#include "conformance/support/run.h"
#include "support/expect_error.h"
#include "support/own_threads.h"

namespace openrnn {
namespace {

using conformance::Case;
using conformance::Data;
using conformance::ForcedThreads;
using conformance::ForwardBuffers;
using conformance::make_data;
using conformance::parse_case;
using conformance::Result;
using openrnn::testing::own_threads;
using openrnn::testing::own_threads_down_to;
using openrnn::testing::threads_alone;

/// A network that is worth two threads, in packing and in runs.
class Threads : public ::testing::Test {
 protected:
  void SetUp() override {
    shutdown();
    alone_ = threads_alone();
  }
  std::shared_ptr<const PackedModel> model(const ModelOptions& options = {}) const {
    return std::make_shared<PackedModel>(case_.spec, data_.params.view(), options);
  }
  Result run(InferenceSession& session, int max_threads = 0) const {
    ForwardBuffers out = conformance::forward_buffers(case_);
    ForwardArgs args = forward_args(case_, data_, out, nullptr, false);
    args.max_threads = max_threads;
    session.run(args);
    Result result;
    append_forward(result, "", std::move(out));
    return result;
  }
  void step(StreamPool& pool) const {
    std::vector<StreamId> ids;
    for (std::int64_t b = 0; b < case_.batch; ++b) ids.push_back(pool.join());
    ForwardBuffers out = conformance::forward_buffers(case_);
    pool.step({.ids = ids, .max_time = case_.time, .x = data_.x.data(), .y = out.y.data()});
  }
  StreamLimits limits(int threads) const {
    return {.streams = case_.batch, .time = case_.time, .threads = threads};
  }

  const ForcedThreads two_{2};
  const Case case_ = parse_case("lstm L2 U130 I130 B16 T8 f32", "enough_for_threads");
  const Data data_ = make_data(case_);
  int alone_ = 0;
};

TEST_F(Threads, AModelOfOneThreadStartsNone) {
  const auto one = model({.max_threads = 1});
  InferenceSession session(one), greedy(one, {.max_threads = 0});
  EXPECT_EQ(greedy.options().max_threads, 1);
  run(session);
  run(greedy, 2);
  StreamPool pool(one, limits(0));
  EXPECT_EQ(pool.limits().threads, 1);
  step(pool);
  EXPECT_EQ(own_threads(), alone_);
  model();
  EXPECT_EQ(own_threads(), alone_ + 1) << "packing is worth two";
}

TEST_F(Threads, ASessionAndAPoolHaveOneUnlessTheyAskForMore) {
  const auto any = model({.max_threads = 0});
  shutdown();
  ASSERT_EQ(own_threads_down_to(alone_), alone_);
  InferenceSession session(any);
  const Result expected = run(session);
  run(session, 2);
  StreamPool pool(any, {.streams = case_.batch, .time = case_.time});
  step(pool);
  EXPECT_EQ(own_threads(), alone_);
  InferenceSession wide(any, {.max_threads = 0});
  EXPECT_EQ(first_difference(expected, run(wide, 1)), "");
  EXPECT_EQ(own_threads(), alone_);
  EXPECT_EQ(first_difference(expected, run(wide)), "");
  EXPECT_EQ(own_threads(), alone_ + 1);
  shutdown();
  ASSERT_EQ(own_threads_down_to(alone_), alone_);
  StreamPool wide_pool(any, limits(2));
  step(wide_pool);
  EXPECT_EQ(own_threads(), alone_ + 1);
}

TEST_F(Threads, ShutdownEndsThemAndTheNextCallStartsThemAnew) {
  InferenceSession session(model(), {.max_threads = 0});
  const Result expected = run(session);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(own_threads(), alone_ + 1);
    shutdown();
    shutdown();
    EXPECT_EQ(own_threads_down_to(alone_), alone_);
    EXPECT_EQ(first_difference(expected, run(session)), "");
  }
}

TEST_F(Threads, ShutdownWaitsForCallsOfOthers) {
  const auto shared = model();
  InferenceSession first(shared, {.max_threads = 0});
  const Result expected = run(first);
  std::atomic<int> left{2}, wrong{0};
  std::vector<std::thread> callers;
  for (int n = 0; n < 2; ++n) {
    callers.emplace_back([&] {
      InferenceSession session(shared, {.max_threads = 0});
      for (int i = 0; i < 20; ++i) wrong += !first_difference(expected, run(session)).empty();
      --left;
    });
  }
  while (left > 0) {
    shutdown();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Threads, NoLimitIsNegative) {
  expect_error<ArgumentError>([&] { model({.max_threads = -1}); },
                              "[PackedModel] max_threads is -1, expected 0 or more");
  expect_error<ArgumentError>([&] { InferenceSession(model(), {.max_threads = -2}); },
                              "[InferenceSession] max_threads is -2, expected 0 or more");
}

}  // namespace
}  // namespace openrnn
