// What backward reads in the caller's memory: the same gradients, and again from that memory alone.
#include <gtest/gtest.h>

#include "conformance/support/machine.h"
#include "conformance/support/run.h"
#include "support/expect_error.h"

namespace openrnn::conformance {
namespace {

std::vector<Case> cases() {
  return {parse_case("lstm L2 U17 I3 B5 T6 f32 lengths", "layers"),
          parse_case("gru L1 U33 I7 B3 T9 bi f32", "directions"),
          parse_case("rnn_tanh L2 U16 I16 B8 T4 f64 skip", "skips"),
          parse_case("lstm L2 U33 I7 B4 T5 P6 f16", "projection"),
          parse_case("gru L2 U9 I4 B2 T3 b16 lengths", "narrow")};
}

/// A call whose reserve is memory of its own, filled with a wrong value first.
struct Reserved {
  Case c;
  Data d;
  ForwardBuffers out;
  ForwardArgs args;
  AlignedBuffer memory;

  Reserved(const Engine& engine, const Case& given)
      : c(given), d(make_data(c)), out(forward_buffers(c)) {
    args = forward_args(c, d, out, engine.pack(c.spec, d.params.view(), PackFor::kTraining), true);
    const std::optional<std::int64_t> bytes = engine.reserve_bytes(c.spec, args);
    if (!bytes) return;
    memory = AlignedBuffer(static_cast<std::size_t>(*bytes) + kReserveAlignment);
    std::memset(memory.data(), 0x7b, memory.size());
    args.reserve = memory.data();
  }
  /// Whether nothing was written behind the bytes that were asked for.
  bool is_within() const {
    const auto* const end = static_cast<const unsigned char*>(memory.data()) + memory.size();
    return std::all_of(end - kReserveAlignment, end, [](unsigned char b) { return b == 0x7b; });
  }
};

TEST(Reserve, HoldsAllThatBackwardReads) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.text);
    Reserved call(cpu(), c);
    ASSERT_GT(call.memory.size(), static_cast<std::size_t>(kReserveAlignment));
    const auto own = [&] {
      ForwardBuffers out = forward_buffers(c);
      return cpu().forward_saving(forward_args(c, call.d, out, call.args.params, true));
    }();
    const Result expected = run_backward(cpu(), c, call.d, *own);
    std::unique_ptr<SavedForward> saved = cpu().forward_saving(call.args);
    EXPECT_EQ(first_difference(expected, run_backward(cpu(), c, call.d, *saved)), "");
    EXPECT_TRUE(call.is_within());
    // From the memory alone, wherever it was moved to.
    saved.reset();
    const AlignedBuffer moved = call.memory;
    std::memset(call.memory.data(), 0x7b, call.memory.size());
    ForwardArgs again = call.args;
    again.reserve = const_cast<void*>(moved.data());
    again.x = nullptr;
    again.y = again.hn = again.cn = nullptr;
    const auto found = cpu().saved_in(again);
    EXPECT_EQ(first_difference(expected, run_backward(cpu(), c, call.d, *found)), "");
  }
}

TEST(Reserve, IsRefusedWhereItCannotBe) {
  const Case c = parse_case("lstm L1 U5 I3 B2 T4 f32", "small");
  Reserved call(cpu(), c);
  ForwardArgs bad = call.args;
  bad.reserve = static_cast<std::byte*>(call.args.reserve) + 8;
  const auto both = [&](const std::string& rest) {
    expect_error<ArgumentError>([&] { cpu().forward_saving(bad); }, "[forward_saving] " + rest);
    expect_error<ArgumentError>([&] { cpu().saved_in(bad); }, "[saved_in] " + rest);
  };
  both("reserve is not aligned, expected an address that is a multiple of 64");
  bad = call.args;
  bad.recompute = 32;
  both("reserve is given and recompute is 32, expected one of them");
  bad = call.args;
  bad.reserve = nullptr;
  expect_error<ArgumentError>([&] { cpu().saved_in(bad); },
                              "[saved_in] reserve is null, expected a call's");
  const Engine& reference = engine("reference");
  EXPECT_FALSE(reference.reserve_bytes(c.spec, call.args));
  bad = call.args;
  bad.params = reference.pack(c.spec, call.d.params.view(), PackFor::kTraining);
  EXPECT_THROW(reference.saved_in(bad), UnsupportedError);
}

// Sizes, options and states decide how much, the values of arrays do not.
TEST(Reserve, GrowsWithWhatIsKept) {
  const Case c = parse_case("gru L1 U5 I3 B2 T4 f32", "small");
  const Reserved call(cpu(), c);
  const std::int64_t bytes = *cpu().reserve_bytes(c.spec, call.args);
  ForwardArgs other = call.args;
  other.h0 = nullptr;
  EXPECT_LT(*cpu().reserve_bytes(c.spec, other), bytes);
  other = call.args;
  other.batch = 3;
  EXPECT_GT(*cpu().reserve_bytes(c.spec, other), bytes);
  other = call.args;
  other.max_time = 5;
  EXPECT_GT(*cpu().reserve_bytes(c.spec, other), bytes);
  other = call.args;
  other.x = other.y = nullptr;
  EXPECT_EQ(*cpu().reserve_bytes(c.spec, other), bytes);
}

}  // namespace
}  // namespace openrnn::conformance
