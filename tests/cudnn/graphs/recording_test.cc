// Memory of recorded calls, and what a recording refuses.
#include <gtest/gtest.h>

#include <thread>

#include "cudnn/device/graph.h"
#include "cudnn/gpu/detour.h"
#include "cudnn/graphs/call_key.h"
#include "cudnn/graphs/device_calls.h"
#include "cudnn/rnn/aligned.h"
#include "cudnn/rnn/weights.h"
#include "support/expect_error.h"

namespace openrnn::conformance {
namespace {

using cudnn::Arena;
using cudnn::Context;
using cudnn::Graph;

Context& context() { return Context::of(0); }

TEST(CudnnArenas, GiveTheSameBlocksForTheSameRequests) {
  Arena arena(context().pool());
  const auto requests = [&arena] {
    std::vector<void*> found;
    const auto kept = arena.allocate(3000);
    for (const std::size_t bytes : {1000, 2000, 900}) found.push_back(arena.allocate(bytes).get());
    found.push_back(kept.get());
    return found;
  };
  const auto first = requests();
  EXPECT_EQ(first[0], first[2]) << "what was given back serves the next";
  EXPECT_EQ(requests(), first);
  EXPECT_EQ(arena.sizes(), (std::vector<std::size_t>{3000, 1000, 2000}));
}

TEST(CudnnArenas, ThatAreSealedServeWhatTheyHaveReserved) {
  Arena arena(context().pool());
  arena.reserve({3000, 1000});
  arena.seal();
  {
    const auto large = arena.allocate(3000), small = arena.allocate(700);
    EXPECT_EQ(error_of([&] { arena.allocate(100); }),
              "[record] a call asked for 100 bytes while it was recorded, expected no more than "
              "before");
  }
  // Far too large a block is none for it.
  EXPECT_NE(error_of([&] {
              const auto small = arena.allocate(900);
              arena.allocate(100);
            }),
            "");
}

TEST(CudnnArenas, GiveTheirMemoryBack) {
  // So that new blocks are of their requests' size classes.
  context().pool().release_idle();
  const std::size_t before = context().pool().used_bytes();
  std::shared_ptr<void> longer;
  {
    Arena arena(context().pool());
    arena.reserve({4096, 4096});
    const std::size_t held = context().pool().used_bytes() - before;
    longer = arena.allocate(4096);
    arena.allocate(300);
    arena.trim();
    EXPECT_EQ(context().pool().used_bytes() - before, held - 4096 + 512)
        << "the second block of 4096 was never asked for";
  }
  EXPECT_EQ(context().pool().used_bytes() - before, 4096u) << "one outlives the arena";
  longer.reset();
  EXPECT_EQ(context().pool().used_bytes(), before);
}

TEST(CudnnArenas, ServeTheThreadOfTheDetourAlone) {
  Arena arena(context().pool());
  {
    const cudnn::Detour detour(context(), arena);
    const auto own = context().allocate(5000);
    std::thread([] { context().allocate(6000); }).join();
    Arena inner(context().pool());
    const cudnn::Detour second(context(), inner);
    context().allocate(7000);
    EXPECT_EQ(inner.sizes(), std::vector<std::size_t>{7000});
  }
  context().allocate(8000);
  EXPECT_EQ(arena.sizes(), std::vector<std::size_t>{5000});
}

class CudnnRecordings : public ::testing::Test {
 protected:
  std::string error_in(const std::function<void()>& work) {
    Arena arena(context().pool());
    return error_of([&] { Graph(context(), arena, work); });
  }
  Context::Current current_{context()};
  DeviceArray memory_ = DeviceArray::zeros(gpu(), DType::kFloat32, {8});
};

TEST_F(CudnnRecordings, RunWhenTheyAreLaunched) {
  void* const data = memory_.mutable_data();
  const auto twice = [&] { gpu().binary(BinaryOp::kAdd, DType::kFloat32, 8, data, data, data); };
  Arena arena(context().pool());
  arena.reserve({100});
  gpu().fill(DType::kFloat32, 8, 3.0, DType::kFloat32, nullptr, data);
  const Graph graph(context(), arena, [&] {
    EXPECT_TRUE(cudnn::is_recording(context()));
    // What another thread does meanwhile is not part of it, and runs.
    std::thread([&] {
      gpu().fill(DType::kFloat32, 8, 5.0, DType::kFloat32, nullptr, data);
    }).join();
    const auto room = context().allocate(100);
    twice();
  });
  EXPECT_FALSE(cudnn::is_recording(context()));
  const auto value = [&] { return memory_.to_host().as<float>()[7]; };
  EXPECT_EQ(value(), 5.0f);
  graph.launch();
  EXPECT_EQ(value(), 10.0f);
  graph.launch();
  graph.launch();
  EXPECT_EQ(value(), 40.0f);
}

TEST_F(CudnnRecordings, RefuseWhatADriverWouldRefuse) {
  EXPECT_EQ(error_in([&] { context().allocate(1000); }),
            "[record] a call asked for 1000 bytes while it was recorded, expected no more than "
            "before");
  EXPECT_NE(error_in([&] { context().wait(); }).find("[cuStreamSynchronize]"), std::string::npos);
  if (!pretends()) GTEST_SKIP() << "a driver may have staging memory of its own";
  EXPECT_NE(error_in([&] { context().pool().allocate(std::size_t{3} << 20); }).find("[cuMemAlloc]"),
            std::string::npos);
  const std::array<float, 8> pageable{};
  EXPECT_NE(error_in([&] {
              context().copy_in(context().stream(), memory_.mutable_data(), pageable.data(),
                                sizeof pageable);
            }).find("[cuMemcpyHtoDAsync]"),
            std::string::npos);
  // The GPU is as before.
  EXPECT_EQ(memory_.to_host().as<float>()[0], 0.0f);
}

TEST_F(CudnnRecordings, HoldNoWeightsThatAreMadeInside) {
  const Case c = parse_case("lstm L2 U6 I3 B2 T2 f32", "parts");
  const auto packed = std::dynamic_pointer_cast<const cudnn::CudnnPacked>(
      packed_of(c, make_data(c), PackFor::kInference));
  const cudnn::Part layer{1, 1, -1};
  EXPECT_EQ(error_in([&] { packed->part(layer); }),
            "[record] weights are copied for a part, expected them made before");
  const void* const made = packed->part(layer).memory.get();
  EXPECT_EQ(error_in([&] { EXPECT_EQ(packed->part(layer).memory.get(), made); }), "");
}

// A graph runs no call that differs in anything but the values of its arrays.
TEST(CudnnCallKeys, DifferWithEachPartOfACall) {
  const openrnn::testing::Setting any("OPENRNN_CUDNN_ALGORITHM", "auto");
  const Context::Current current(context());
  const Case c = parse_case("lstm L2 U6 I3 B2 T3 f32 lengths", "keys");
  const Data d = make_data(c);
  const auto packed = std::dynamic_pointer_cast<const cudnn::CudnnPacked>(packed_of(c, d));
  DeviceCall call(c, d);
  const ForwardArgs args = call.args(packed, true);
  const cudnn::CallKey key = cudnn::key_of(*packed, args, true);
  EXPECT_TRUE(key == cudnn::key_of(*packed, args, true));
  EXPECT_FALSE(key == cudnn::key_of(*packed, args, false)) << "saving";
  const std::vector<std::int32_t> lengths = {3, 1};
  const auto differs = [&](auto change) {
    ForwardArgs other = args;
    change(other);
    return !(key == cudnn::key_of(*packed, other, true));
  };
  EXPECT_TRUE(differs([](ForwardArgs& a) { a.batch = 1; }));
  EXPECT_TRUE(differs([](ForwardArgs& a) { a.max_time = 4; }));
  EXPECT_TRUE(differs([](ForwardArgs& a) { a.time_major = !a.time_major; }));
  EXPECT_TRUE(differs([](ForwardArgs& a) { a.h0 = nullptr; }));
  EXPECT_TRUE(differs([](ForwardArgs& a) { a.c0 = nullptr; }));
  EXPECT_TRUE(differs([](ForwardArgs& a) { a.hn = nullptr; }));
  EXPECT_TRUE(differs([](ForwardArgs& a) { a.cn = nullptr; }));
  EXPECT_TRUE(differs([](ForwardArgs& a) { a.sequence_lengths = nullptr; }));
  EXPECT_TRUE(differs([&](ForwardArgs& a) { a.sequence_lengths = lengths.data(); }));
  EXPECT_FALSE(differs([](ForwardArgs& a) { a.y = nullptr; })) << "its address is no part of it";
  const auto again = std::dynamic_pointer_cast<const cudnn::CudnnPacked>(packed_of(c, d));
  EXPECT_FALSE(key == cudnn::key_of(*again, args, true)) << "other weights";
  const openrnn::testing::Setting named("OPENRNN_CUDNN_ALGORITHM", "standard");
  EXPECT_FALSE(key == cudnn::key_of(*packed, args, true));
}

std::vector<float> numbers_at(const void* memory, std::size_t count) {
  std::vector<float> found(count);
  context().copy_out(found.data(), memory, count * sizeof(float));
  return found;
}

TEST(CudnnAlignment, ReplacesOddAddressesAlone) {
  const Context::Current current(context());
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8};
  const DeviceArray array =
      DeviceArray::from_host(gpu(), ConstArrayView{values.data(), DType::kFloat32, {8}});
  DeviceArray target = DeviceArray::zeros(gpu(), DType::kFloat32, {8});
  const auto* const from = static_cast<const float*>(array.data());
  auto* const to = static_cast<float*>(target.mutable_data());
  cudnn::Aligned at(context(), sizeof(float));
  EXPECT_EQ(at.in(nullptr, 3), nullptr);
  EXPECT_EQ(at.out(nullptr, 3), nullptr);
  EXPECT_EQ(at.in(from + 4, 3), from + 4);
  EXPECT_EQ(at.out(to + 4, 3), to + 4);
  const void* const read = at.in(from + 1, 3);
  EXPECT_NE(read, from + 1);
  EXPECT_TRUE(cudnn::is_aligned(read));
  EXPECT_EQ(numbers_at(read, 3), (std::vector<float>{2, 3, 4}));
  void* const written = at.out(to + 1, 2);
  context().copy(written, from + 6, 8);
  void* const both = at.in_out(const_cast<float*>(from) + 5, 2);
  EXPECT_EQ(numbers_at(both, 2), (std::vector<float>{6, 7}));
  context().copy(both, from, 8);
  EXPECT_EQ(numbers_at(to, 8), std::vector<float>(8));
  at.give();
  EXPECT_EQ(numbers_at(to, 8), (std::vector<float>{0, 7, 8, 0, 0, 0, 0, 0}));
  EXPECT_EQ(numbers_at(from, 8), (std::vector<float>{1, 2, 3, 4, 5, 1, 2, 8}));
}

}  // namespace
}  // namespace openrnn::conformance
