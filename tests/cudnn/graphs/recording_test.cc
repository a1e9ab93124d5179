// Memory of recorded calls, and what a recording refuses.
#include <gtest/gtest.h>

#include <thread>

#include "cudnn/device/graph.h"
#include "cudnn/gpu/detour.h"
#include "cudnn/graphs/device_calls.h"
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
  EXPECT_NE(error_in([&] { context().allocate(1000); }).find("[record] a call asked for 1000"),
            std::string::npos);
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
  EXPECT_NE(error_in([&] { packed->part(layer); }).find("[record] weights"), std::string::npos);
  const void* const made = packed->part(layer).memory.get();
  EXPECT_EQ(error_in([&] { EXPECT_EQ(packed->part(layer).memory.get(), made); }), "");
}

}  // namespace
}  // namespace openrnn::conformance
