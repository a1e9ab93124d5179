// Two GPUs: each has an engine, memory and graphs of its own, and takes nothing of the other's.
#include <gtest/gtest.h>

#include <cstring>

#include "cudnn/graphs/device_calls.h"
#include "engine/cudnn_entry.h"
#include "openrnn/graph.h"
#include "support/expect_error.h"

namespace openrnn::conformance {
namespace {

using openrnn::testing::Setting;

const Device& other() { return gpu_device(1); }
cudnn::Pool& pool(int ordinal) { return cudnn::Context::of(ordinal).pool(); }
cudnn::GraphCache& graphs_of(int ordinal) {
  return cudnn::GraphCache::of(cudnn::Context::of(ordinal));
}

class CudnnGpus : public ::testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() < 2) GTEST_SKIP() << "there are no two GPUs";
  }
  std::shared_ptr<const PackedParams> packed_there() const {
    return packed_of(c, d, PackFor::kTraining, other());
  }
  const Case c = parse_case("lstm L2 U7 I3 B3 T4 bi f32 lengths", "gpus");
  const Data d = make_data(c);
};

TEST_F(CudnnGpus, HaveEnginesOfTheirOwn) {
  EXPECT_EQ(other().name(), "gpu:1");
  EXPECT_NE(other().engine(), gpu().engine());
  EXPECT_EQ(other().engine()->device(), &other());
  const Result expected = trained(c, d, packed_of(c, d));
  EXPECT_EQ(first_difference(expected, trained(c, d, packed_there(), other())), "");
}

TEST_F(CudnnGpus, TakeNothingOfEachOther) {
  const auto params = packed_of(c, d);
  DeviceCall here(c, d), there(c, d, other());
  const std::string rest = "] params were packed by another engine, expected cudnn on gpu:1";
  expect_error<ArgumentError>([&] { there.infer(params); }, "[forward" + rest);
  expect_error<ArgumentError>([&] { there.save(params); }, "[forward_saving" + rest);
  expect_error<ArgumentError>(
      [&] {
        other().engine()->make_workspace(params, {3, 4});
      },
      "[make_workspace" + rest);
  for (const char* const graphs : {"0", "1"}) {
    const Setting wanted("OPENRNN_CUDA_GRAPHS", graphs);
    const auto saved = here.save(params);
    expect_error<ArgumentError>([&] { there.backward(*saved); },
                                "[backward] saved is of another engine or GPU, expected what "
                                "forward_saving of cudnn returned");
  }
}

TEST_F(CudnnGpus, HaveMemoryOfTheirOwn) {
  const std::size_t here = pool(0).used_bytes(), there = pool(1).used_bytes();
  const auto block = other().allocate(100000);
  EXPECT_EQ(pool(0).used_bytes(), here);
  EXPECT_GE(pool(1).used_bytes(), there + 100000);
  const Tensor moved = Tensor(DeviceArray::from_host(gpu(), d.x.view())).to(other());
  EXPECT_EQ(&moved.device(), &other());
  EXPECT_EQ(std::memcmp(moved.to_host().data(), d.x.data(), d.x.size_bytes()), 0);
}

TEST_F(CudnnGpus, HaveGraphsOfTheirOwn) {
  const Graphs graphs;
  for (const int ordinal : {0, 1}) graphs_of(ordinal).clear();
  const auto params = packed_there();
  const Result expected = trained(c, d, params, other());  // the first of its kind has no graph
  EXPECT_FALSE(graphs_of(1).clear());
  for (int n = 0; n < 3; ++n) {
    EXPECT_EQ(first_difference(expected, trained(c, d, params, other())), "") << n;
  }
  EXPECT_FALSE(graphs_of(0).clear());
  EXPECT_TRUE(graphs_of(1).clear());
}

}  // namespace
}  // namespace openrnn::conformance
