// A call whose backward state lies in the caller's memory has the bits of one that keeps its own,
// also when that memory was copied, and the call's other objects are gone.
#include <gtest/gtest.h>

#include <cstring>

#include "conformance/support/run.h"
#include "cpu/cpu_engine.h"
#include "reference/reference.h"

namespace openrnn {
namespace {

using conformance::Case;
using conformance::Data;

struct Memory {
  explicit Memory(std::int64_t size)
      : bytes(static_cast<std::byte*>(
            ::operator new (static_cast<std::size_t>(size) + 64, std::align_val_t{64}))) {}
  ~Memory() { ::operator delete (bytes, std::align_val_t{64}); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::byte* bytes;
};

ForwardArgs call_of(const Case& c, const Data& d, conformance::ForwardBuffers& out) {
  return conformance::forward_args(
      c, d, out, cpu_engine().pack(c.spec, d.params.view(), {PackFor::kTraining, 1}), true);
}

class Reserve : public testing::TestWithParam<const char*> {};

TEST_P(Reserve, HasTheBitsOfOwnMemory) {
  const Case c = conformance::parse_case(GetParam(), "reserve");
  const Data d = conformance::make_data(c);
  const Engine& engine = cpu_engine();
  auto out = conformance::forward_buffers(c), again = conformance::forward_buffers(c);
  ForwardArgs args = call_of(c, d, out);
  const auto own = engine.forward_saving(args);
  const auto wanted = conformance::run_backward(engine, c, d, *own);

  ForwardArgs lent = call_of(c, d, again);
  const std::int64_t bytes = *engine.reserve_bytes(c.spec, lent);
  Memory first(bytes), second(bytes);
  lent.reserve = first.bytes;
  engine.forward_saving(lent);
  std::memcpy(second.bytes, first.bytes, static_cast<std::size_t>(bytes));
  std::memset(first.bytes, 0x7f, static_cast<std::size_t>(bytes));
  lent.reserve = second.bytes;
  lent.x = lent.y = nullptr;
  const auto found = conformance::run_backward(engine, c, d, *engine.saved_in(lent));
  ASSERT_EQ(found.parts.size(), wanted.parts.size());
  for (const auto& [name, array] : wanted.parts) {
    ASSERT_EQ(array.size_bytes(), found[name].size_bytes());
    EXPECT_EQ(std::memcmp(array.data(), found[name].data(), array.size_bytes()), 0) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, Reserve,
                         testing::Values("lstm L2 U7 I3 B5 T9 f32", "gru L1 U17 I1 B1 T1 f64",
                                         "lstm L2 U6 I4 B3 T5 bi f16",
                                         "rnn_tanh L3 U8 I2 B2 T4 f32",
                                         "rnn_relu L1 U3 I3 B4 T6 bf16"));

TEST(Reserve, RefusesWhatItCannotUse) {
  const Case c = conformance::parse_case("lstm L1 U4 I3 B2 T3 f32", "reserve");
  const Data d = conformance::make_data(c);
  auto out = conformance::forward_buffers(c);
  ForwardArgs args = call_of(c, d, out);
  const auto refused = [&](const Engine& engine, const std::string& part) {
    try {
      engine.forward_saving(args);
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
      return;
    }
    ADD_FAILURE() << part;
  };
  const Memory memory(*cpu_engine().reserve_bytes(c.spec, args));
  args.reserve = memory.bytes + 4;
  refused(cpu_engine(), "reserve is not aligned, expected an address that is a multiple of 64");
  args.reserve = memory.bytes;
  args.recompute = kRecomputeRoot;
  refused(cpu_engine(), "reserve is given and recompute is -1, expected one of them");
  args.recompute = 0;
  args.params = reference_engine().pack(c.spec, d.params.view(), PackFor::kTraining);
  refused(reference_engine(), "engine 'reference' keeps what backward reads in memory of its own");
  EXPECT_THROW(reference_engine().saved_in(args), UnsupportedError);
  args.reserve = nullptr;
  EXPECT_THROW(cpu_engine().saved_in(args), ArgumentError);
}

}  // namespace
}  // namespace openrnn
