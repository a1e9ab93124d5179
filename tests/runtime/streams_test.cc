// Streams that join and leave a batch get the bits that each would get alone.
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "conformance/support/machine.h"
#include "conformance/support/parts.h"

namespace openrnn {
namespace {

using conformance::Case;
using conformance::ForcedThreads;
using conformance::parse_case;
using conformance::random_array;
using conformance::Result;

/// One stream by itself: a session and a state of its own.
struct Alone {
  InferenceSession session;
  Array h, c;

  Alone(const std::shared_ptr<const PackedModel>& model, const Array& h0, const Array& c0)
      : session(model), h(h0), c(c0) {}
  Array run(const Array& x, std::int64_t time, std::int32_t length) {
    const RnnSpec& spec = session.model().spec();
    Array y = random_array(spec.dtype, time * spec.output_size(), 5, 6, 1);
    ForwardArgs args;
    args.max_time = time;
    args.batch = 1;
    args.sequence_lengths = &length;
    args.x = x.data();
    args.y = y.data();
    args.h0 = args.hn = h.data();
    if (spec.has_cell()) args.c0 = args.cn = c.data();
    session.run(args);
    return y;
  }
};

/// Both sides of the comparison, driven by one stream of random numbers.
class Crowd {
 public:
  static constexpr StreamLimits kLimits{.streams = 9, .batch = 6, .time = 4, .threads = 0};

  Crowd(const Case& c, std::uint64_t seed)
      : spec_(c.spec),
        model_(std::make_shared<PackedModel>(c.spec, conformance::make_data(c).params.view())),
        pool_(model_, kLimits),
        random_(77, seed) {}

  void round() {
    for (std::uint64_t n = random_.below(3); n > 0 && pool_.size() < kLimits.streams; --n) join();
    if (!alone_.empty() && random_.below(3) == 0) {
      const StreamId id = someone();
      pool_.leave(id);
      alone_.erase(id);
      EXPECT_FALSE(pool_.contains(id));
    }
    if (!alone_.empty() && random_.below(4) == 0) {
      const StreamId id = someone();
      const auto [h, c] = random_.below(2) ? random_state() : zero_state();
      pool_.reset(id, h.data(), spec_.has_cell() ? c.data() : nullptr);
      alone_.at(id).h = h;
      alone_.at(id).c = c;
    }
    EXPECT_EQ(pool_.size(), static_cast<std::int64_t>(alone_.size()));
    step();
  }
  void expect_equal_states() {
    for (auto& [id, one] : alone_) {
      Result expected, found;
      expected.parts.emplace_back("h", one.h);
      expected.parts.emplace_back("c", one.c);
      auto [h, c] = zero_state();
      pool_.read(id, h.data(), spec_.has_cell() ? c.data() : nullptr);
      found.parts.emplace_back("h", std::move(h));
      found.parts.emplace_back("c", std::move(c));
      ASSERT_EQ(first_difference(expected, found), "");
    }
  }
  std::size_t steps() const { return steps_; }

 private:
  std::pair<Array, Array> zero_state() const {
    const std::int64_t planes = spec_.num_pseudo_layers();
    return {Array(spec_.dtype, {planes * spec_.hidden_size()}),
            Array(spec_.dtype, {spec_.has_cell() ? planes * spec_.num_units : 0})};
  }
  std::pair<Array, Array> random_state() {
    const auto [h, c] = zero_state();
    return {random_array(spec_.dtype, h.size(), -0.9, 0.8, random_.next_uint32()),
            random_array(spec_.dtype, c.size(), -1.0, 1.2, random_.next_uint32())};
  }
  StreamId someone() {
    return std::next(alone_.begin(), static_cast<std::ptrdiff_t>(random_.below(alone_.size())))
        ->first;
  }
  void join() {
    const bool zeros = random_.below(2) == 0;
    const auto [h, c] = zeros ? zero_state() : random_state();
    const StreamId id =
        zeros ? pool_.join() : pool_.join(h.data(), spec_.has_cell() ? c.data() : nullptr);
    ASSERT_TRUE(pool_.contains(id));
    ASSERT_TRUE(alone_.emplace(id, Alone(model_, h, c)).second) << "an id came twice";
  }
  /// Some of the streams, in an order of their own.
  std::vector<StreamId> choose() {
    std::vector<StreamId> ids;
    for (const auto& [id, one] : alone_) ids.push_back(id);
    for (std::size_t n = ids.size(); n > 1; --n) std::swap(ids[n - 1], ids[random_.below(n)]);
    const auto most = std::min<std::uint64_t>(ids.size(), kLimits.batch);
    ids.resize(random_.below(most + 1));
    return ids;
  }
  void step() {
    const std::vector<StreamId> ids = choose();
    const auto batch = static_cast<std::int64_t>(ids.size());
    // The layout of the call is that of a case.
    Case at;
    at.spec = spec_;
    at.batch = batch;
    at.time = random_.below(3) ? 1 : static_cast<std::int64_t>(random_.below(kLimits.time + 1));
    at.time_major = random_.below(2) == 0;
    for (std::int64_t b = 0; b < batch; ++b) {
      at.lengths.push_back(
          static_cast<std::int32_t>(random_.below(static_cast<std::uint64_t>(at.time) + 1)));
    }
    const bool with_lengths = random_.below(2) == 0;
    if (!with_lengths) at.lengths.assign(ids.size(), static_cast<std::int32_t>(at.time));
    const Array x =
        random_array(spec_.dtype, at.seq_size(spec_.input_size), -1.5, 1.2, random_.next_uint32());
    Array y = random_array(spec_.dtype, at.seq_size(spec_.output_size()), 5, 6, 2);
    pool_.step({.ids = ids,
                .max_time = at.time,
                .time_major = at.time_major,
                .sequence_lengths = with_lengths ? at.lengths.data() : nullptr,
                .x = x.data(),
                .y = y.data()});
    Result expected, found;
    for (std::int64_t b = 0; b < batch; ++b) {
      const auto i = static_cast<std::size_t>(b);
      const Array own = take(x, row_cut(at, at.time, spec_.input_size, b));
      expected.parts.emplace_back("y", alone_.at(ids[i]).run(own, at.time, at.lengths[i]));
      found.parts.emplace_back("y", take(y, row_cut(at, at.time, spec_.output_size(), b)));
    }
    ASSERT_EQ(first_difference(expected, found), "") << "batch " << batch;
    steps_ += ids.size();
  }

  RnnSpec spec_;
  std::shared_ptr<const PackedModel> model_;
  StreamPool pool_;
  RandomStream random_;
  std::map<StreamId, Alone> alone_;
  std::size_t steps_ = 0;
};

class Streams : public testing::TestWithParam<Case> {};

TEST_P(Streams, GetTheBitsThatTheyWouldGetAlone) {
  for (const int threads : {1, 2}) {
    const ForcedThreads forced(threads);
    for (const std::uint64_t seed : {1U, 2U}) {
      Crowd crowd(GetParam(), seed);
      for (int n = 0; n < 60; ++n) {
        crowd.round();
        if (n % 10 == 9) crowd.expect_equal_states();
        if (testing::Test::HasFatalFailure()) return;
      }
      EXPECT_GT(crowd.steps(), 60U) << "hardly anything was run";
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const std::string mode : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
    list.push_back(parse_case(mode + " L2 U17 I3 f32", "small"));
    list.push_back(parse_case(mode + " L1 U33 I33 skip f64", "skips"));
    list.push_back(parse_case(mode + " L2 U16 I7 f16", "half"));
    list.push_back(parse_case(mode + " L2 U17 I7 b16", "bfloat16"));
    list.push_back(parse_case(mode + " L1 U7 I5 bi f32", "directions"));
    list.push_back(parse_case(mode + " L2 U130 I33 f32", "enough_for_threads"));
  }
  list.push_back(parse_case("lstm L2 U17 I3 P5 clip f32", "projection"));
  list.push_back(parse_case("lstm L1 U130 I33 P65 f16", "projection"));
  list.push_back(parse_case("lstm L2 U33 I17 f32 bf16", "bf16"));
  list.push_back(parse_case("gru L2 U33 I17 f32 stored_int8", "int8"));
  list.push_back(parse_case("lstm L1 U130 I33 P5 f16 stored_int8", "int8"));
  list.push_back(parse_case("gru L1 U17 I3 f32 stored_bfloat16", "bfloat16"));
  return list;
}

INSTANTIATE_TEST_SUITE_P(Cases, Streams, testing::ValuesIn(cases()),
                         [](const auto& at) { return test_name(at.param); });

// A state of which one half is given has zeros in the other, and either may be asked for alone.
TEST(StreamPool, TakesAndGivesHalfOfAState) {
  const Case c = parse_case("lstm L1 U3 I2 f32", "halves");
  StreamPool pool(std::make_shared<PackedModel>(c.spec, conformance::make_data(c).params.view()),
                  {.streams = 2});
  using State = std::vector<float>;
  const State h{1, 2, 3}, cell{4, 5, 6};
  const auto state = [&](StreamId id) {
    State found(6, 7.0F);
    pool.read(id, nullptr, found.data() + 3);
    EXPECT_EQ(found[0], 7.0F);
    pool.read(id, found.data());
    return found;
  };
  const StreamId first = pool.join(h.data()), second = pool.join(nullptr, cell.data());
  EXPECT_EQ(state(first), (State{1, 2, 3, 0, 0, 0}));
  EXPECT_EQ(state(second), (State{0, 0, 0, 4, 5, 6}));
  pool.reset(first, nullptr, cell.data());
  EXPECT_EQ(state(first), (State{0, 0, 0, 4, 5, 6}));
  pool.reset(second, h.data());
  EXPECT_EQ(state(second), (State{1, 2, 3, 0, 0, 0}));
}

TEST(StreamPool, OneModelServesManyThreads) {
  const Case c = parse_case("lstm L2 U33 I7 f32", "shared");
  std::vector<std::thread> threads;
  for (std::uint64_t n = 0; n < 3; ++n) {
    threads.emplace_back([&c, n] {
      Crowd crowd(c, n);
      for (int round = 0; round < 20; ++round) crowd.round();
      crowd.expect_equal_states();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace openrnn
