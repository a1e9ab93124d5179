// What a StreamPool refuses, and that a refused call has changed nothing.
#include <gtest/gtest.h>

#include "conformance/support/machine.h"
#include "conformance/support/run.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

using conformance::make_data;
using conformance::parse_case;

struct Pool {
  conformance::Case c;
  conformance::Data d;
  StreamPool pool;

  explicit Pool(const std::string& text, const StreamLimits& limits)
      : c(parse_case(text, "errors")),
        d(make_data(c)),
        pool(std::make_shared<PackedModel>(c.spec, d.params.view()), limits) {}
};

Pool small() { return Pool("lstm L1 U3 I2 B4 T3 f32", {.streams = 3, .batch = 2, .time = 3}); }

std::string number(StreamId id) { return std::to_string(static_cast<std::uint64_t>(id)); }

TEST(StreamPool, ChecksItsLimits) {
  expect_error<ArgumentError>([] { StreamPool(nullptr, {}); },
                              "[StreamPool] model is null, expected a PackedModel");
  for (const StreamLimits& wrong :
       {StreamLimits{.streams = 0}, StreamLimits{.batch = -1}, StreamLimits{.time = 0},
        StreamLimits{.threads = -1}, StreamLimits{.streams = std::int64_t{1} << 31},
        StreamLimits{.batch = std::int64_t{1} << 31},
        StreamLimits{.time = std::int64_t{1} << 31}}) {
    expect_error<ArgumentError>(
        [&] { Pool("gru L1 U3 I2 f32", wrong); },
        "[StreamPool] limits are " + std::to_string(wrong.streams) + " streams, batch " +
            std::to_string(wrong.batch) + ", time " + std::to_string(wrong.time) + " and " +
            std::to_string(wrong.threads) +
            " threads, expected at least 1, 0, 1 and 0, and fewer than 2^31");
  }
  EXPECT_EQ(Pool("gru L1 U3 I2 f32", {.streams = 5}).pool.limits().batch, 5) << "0 stands for all";
  EXPECT_EQ(Pool("gru L1 U3 I2 f32", {.streams = 5, .batch = 9}).pool.limits().batch, 5);
  const StreamLimits most{.batch = (std::int64_t{1} << 31) - 1, .threads = 0};
  EXPECT_EQ(Pool("gru L1 U3 I2 f32", most).pool.limits().batch, 1);
}

TEST(StreamPool, HasTheStricterLimitOfThreads) {
  const conformance::Case c = parse_case("gru L1 U3 I2 f32", "threads");
  const conformance::Data d = make_data(c);
  for (const auto& [of_model, of_pool, expected] :
       {std::tuple{0, 0, 0}, {0, 3, 3}, {3, 0, 3}, {2, 3, 2}, {3, 2, 2}}) {
    const auto model = std::make_shared<PackedModel>(c.spec, d.params.view(),
                                                     ModelOptions{.max_threads = of_model});
    const StreamPool pool(model, {.threads = of_pool});
    EXPECT_EQ(pool.limits().threads, expected) << of_model << ' ' << of_pool;
  }
}

TEST(StreamPool, TakesEachStreamOnceInAStep) {
  Pool p("gru L1 U3 I2 f32", {.streams = 4});
  std::vector<StreamId> ids;
  for (int n = 0; n < 4; ++n) ids.push_back(p.pool.join());
  const std::vector<float> x(8, 0.5F);
  std::vector<float> y(12);
  for (std::size_t first = 0; first < 4; ++first) {
    for (std::size_t second = first + 1; second < 4; ++second) {
      std::vector<StreamId> step = ids;
      step[second] = ids[first];
      expect_error<ArgumentError>([&] { p.pool.step({.ids = step, .x = x.data(), .y = y.data()}); },
                                  "[step] ids[" + std::to_string(first) + "] and ids[" +
                                      std::to_string(second) + "] are both stream " +
                                      number(ids[first]) + ", expected each stream once");
    }
  }
}

TEST(StreamPool, IsFullAtItsLimit) {
  Pool p = small();
  const StreamId first = p.pool.join(), second = p.pool.join();
  p.pool.join();
  expect_error<StateError>([&] { p.pool.join(); },
                           "[join] 3 streams are open, expected fewer than 3, the pool's limit");
  EXPECT_EQ(p.pool.size(), 3);
  p.pool.leave(second);
  const StreamId again = p.pool.join();
  EXPECT_NE(again, second) << "a name is not given twice";
  EXPECT_FALSE(p.pool.contains(second));
  EXPECT_TRUE(p.pool.contains(first));
  EXPECT_TRUE(p.pool.contains(again));
}

TEST(StreamPool, KnowsNoStreamThatHasLeft) {
  Pool p = small();
  p.pool.join();
  const StreamId gone = p.pool.join();
  p.pool.leave(gone);
  p.pool.join();  // takes the place of the other
  const std::string rest = " is not open, expected one of the 2 that joined and have not left";
  float state[3] = {1, 2, 3};
  for (const StreamId id : {gone, StreamId{0}, StreamId{7}, StreamId{~std::uint64_t{0}}}) {
    expect_error<ArgumentError>([&] { p.pool.leave(id); }, "[leave] stream " + number(id) + rest);
    expect_error<ArgumentError>([&] { p.pool.reset(id); }, "[reset] stream " + number(id) + rest);
    expect_error<ArgumentError>([&] { p.pool.read(id, state); },
                                "[read] stream " + number(id) + rest);
  }
  EXPECT_EQ(state[0], 1) << "a refused read wrote";
  EXPECT_EQ(p.pool.size(), 2);
}

TEST(StreamPool, KnowsNoStreamBeforeOneHasJoined) {
  Pool p = small();
  // Ids that look like those of free places: 0 of the first one, 1 and 2 of the others.
  for (std::uint64_t id = 0; id < 4; ++id) {
    EXPECT_FALSE(p.pool.contains(StreamId{id}));
    EXPECT_THROW(p.pool.leave(StreamId{id}), ArgumentError);
  }
  const StreamId first = p.pool.join();
  EXPECT_TRUE(p.pool.contains(first));
  // A place that the pool does not have, whose low bits are those of one.
  const std::uint64_t joined = static_cast<std::uint64_t>(first);
  for (int bit = 3; bit < 32; ++bit) {
    EXPECT_FALSE(p.pool.contains(StreamId{joined + (std::uint64_t{1} << bit)})) << bit;
  }
  p.pool.leave(first);
  // The place is free again, and so is the id that its next stream will have.
  EXPECT_FALSE(p.pool.contains(first));
  const auto bits = static_cast<std::uint64_t>(first);
  EXPECT_FALSE(p.pool.contains(StreamId{bits + (std::uint64_t{1} << 32)}));
  EXPECT_FALSE(p.pool.contains(StreamId{bits + (std::uint64_t{2} << 32)}));
  EXPECT_EQ(p.pool.size(), 0);
}

TEST(StreamPool, RefusesCellsThatAModeHasNot) {
  Pool p("gru L1 U3 I2 f32", {.streams = 2});
  float state[3] = {};
  const StreamId id = p.pool.join(state);
  const std::string rest = "] c is given, expected null for gru";
  expect_error<ArgumentError>([&] { p.pool.join(state, state); }, "[join" + rest);
  expect_error<ArgumentError>([&] { p.pool.reset(id, state, state); }, "[reset" + rest);
  expect_error<ArgumentError>([&] { p.pool.read(id, state, state); }, "[read" + rest);
  EXPECT_EQ(p.pool.size(), 1);
}

/// State of a stream as bytes.
std::vector<float> state_of(const StreamPool& pool, StreamId id) {
  std::vector<float> state(6);
  pool.read(id, state.data(), state.data() + 3);
  return state;
}

TEST(StreamPool, ARefusedStepChangesNothing) {
  Pool p = small();
  std::vector<StreamId> ids;
  std::vector<std::vector<float>> states;
  for (int n = 0; n < 3; ++n) {
    const float first = 0.1F * static_cast<float>(n + 1);
    states.push_back({first, -first, first * 2, -1.0F + first, first * 3, 0.5F});
    ids.push_back(p.pool.join(states.back().data(), states.back().data() + 3));
  }
  const StreamId gone = ids[1];
  p.pool.leave(gone);
  ids[1] = p.pool.join(states[1].data(), states[1].data() + 3);
  std::vector<float> x(12, 0.3F), y(18, 7.0F);
  const auto refuse = [&](StreamStep step, const std::string& expected) {
    if (!step.x) step.x = x.data();
    if (!step.y) step.y = y.data();
    expect_error<ArgumentError>([&] { p.pool.step(step); }, expected);
    for (std::size_t n = 0; n < 3; ++n) EXPECT_EQ(state_of(p.pool, ids[n]), states[n]) << expected;
    for (const float value : y) EXPECT_EQ(value, 7.0F) << expected;
  };
  refuse({.ids = ids},
         "[step] ids has 3 streams and max_time is 1, expected at most 2 and 3, the pool's limits");
  const std::vector<StreamId> two{ids[0], ids[2]}, twice{ids[2], ids[2]}, stale{ids[0], gone};
  refuse({.ids = two, .max_time = 4},
         "[step] ids has 2 streams and max_time is 4, expected at most 2 and 3, the pool's limits");
  refuse({.ids = two, .max_time = -1}, "[step] max_time is -1 and batch 2, expected 0 or more");
  refuse({.ids = twice}, "[step] ids[0] and ids[1] are both stream " + number(ids[2]) +
                             ", expected each stream once");
  refuse({.ids = stale}, "[step] ids[1] is stream " + number(gone) +
                             ", which is not open, expected one of the 3 that joined and have "
                             "not left");
  const std::vector<std::int32_t> lengths{2, 3};
  refuse({.ids = two, .max_time = 2, .sequence_lengths = lengths.data()},
         "[step] sequence_lengths[1] is 3, expected 0 to 2");
  expect_error<ArgumentError>([&] { p.pool.step({.ids = two, .y = y.data()}); },
                              "[step] x is null, expected 4 elements");
  // And one that is right goes on from where the streams are.
  p.pool.step({.ids = two, .x = x.data(), .y = y.data()});
  EXPECT_NE(state_of(p.pool, ids[0]), states[0]);
  EXPECT_EQ(state_of(p.pool, ids[1]), states[1]);
  EXPECT_NE(state_of(p.pool, ids[2]), states[2]);
  p.pool.step({});  // nobody steps
}

}  // namespace
}  // namespace openrnn
