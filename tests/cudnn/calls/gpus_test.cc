// Two GPUs: each has an engine, memory and graphs of its own, and takes nothing of the other's.
#include <gtest/gtest.h>

#include <cstring>

#include "conformance/support/machine.h"
#include "cudnn/calls/instead.h"
#include "cudnn/graphs/device_calls.h"
#include "cudnn/rnn/descriptors.h"
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

using cudnn::Context;
using cudnn::DriverApi;
using openrnn::testing::Instead;

TEST_F(CudnnGpus, WorkInTheContextOfTheirOwnNumber) {
  const DriverApi& driver = cudnn::libraries().driver;
  std::vector<CUcontext> pushed, expected(2);
  for (const int ordinal : {0, 1}) Context::of(ordinal);  // their making pushes them, too
  {
    const Instead<&DriverApi::context_push> notes([&](auto own, CUcontext context) {
      pushed.push_back(context);
      return own(context);
    });
    for (const int ordinal : {0, 1}) const Context::Current current(Context::of(ordinal));
  }
  for (const int ordinal : {0, 1}) {
    CUdevice device = -1;
    cudnn::check(driver.device_get(&device, ordinal), "cuDeviceGet");
    cudnn::check(driver.primary_context_retain(&expected[std::size_t(ordinal)], device), "retain");
  }
  EXPECT_EQ(pushed, expected);
  EXPECT_NE(Context::of(0).stream(), Context::of(1).stream());
}

TEST_F(CudnnGpus, AreAskedByTheirNumber) {
  std::string asked;
  const Instead<&DriverApi::device_get> notes([&](auto own, auto device, int ordinal) {
    asked += std::to_string(ordinal) + " ";
    return own(device, ordinal);
  });
  EXPECT_EQ(Context::missing(1), "");
  EXPECT_EQ(Context::missing(0), "");
  Context::gpu_name(1);
  Context::gpu_name(0);
  EXPECT_EQ(asked, "1 0 1 0 ");
  for (const int ordinal : {-1, gpu_count()}) {
    const std::string number = std::to_string(ordinal);
    EXPECT_EQ(Context::missing(ordinal), "there is no GPU " + number + "; the driver shows " +
                                             std::to_string(gpu_count()) + ", numbered from 0");
    expect_error<EngineError>([&] { Context::of(ordinal); },
                              "[device] 'gpu:" + number + "' cannot be used: there is no GPU " +
                                  number + "; the driver shows " + std::to_string(gpu_count()) +
                                  ", numbered from 0");
  }
}

TEST_F(CudnnGpus, AreNamedInErrors) {
  for (const int ordinal : {1, 0}) {
    const std::string name = "gpu:" + std::to_string(ordinal);
    EXPECT_EQ(gpu_device(ordinal).name(), name);
    const Context::Current current(Context::of(ordinal));
    expect_error<EngineError>([&] { Context::of(ordinal).kernel("openrnn_none"); },
                              "[" + name +
                                  "] the kernel 'openrnn_none' is not in this build, expected one "
                                  "of src/cudnn/kernels");
    if (!pretends()) continue;
    const Setting small("STAND_IN_MEMORY", "1000");
    EXPECT_TRUE(error_of<EngineError>([&] {
                  Context::of(ordinal).allocate(std::size_t{1} << 40);
                }).starts_with("[allocate] " + name + " has no room for 1099511627776 bytes: "));
  }
}

TEST_F(CudnnGpus, LendTheirHandlesToThemselvesAlone) {
  const auto handle_of = [](int ordinal) {
    const Context::Current current(Context::of(ordinal));
    return cudnn::BorrowedHandle(Context::of(ordinal)).get();
  };
  const cudnnHandle_t here = handle_of(0), there = handle_of(1);
  EXPECT_NE(here, there);
  EXPECT_EQ(handle_of(0), here);
  EXPECT_EQ(handle_of(1), there);
}

TEST_F(CudnnGpus, DrawFastMasksFromGeneratorsOfTheirOwn) {
  const Setting fast("OPENRNN_CUDNN_DROPOUT", "fast");
  const Case drops = parse_case("gru L3 U7 I3 B3 T4 f32 D0.5", "generators");
  const Data data = make_data(drops);
  const auto first = [&](const Device& where) {
    DeviceCall call(drops, data, where);
    ForwardArgs args = call.args(packed_of(drops, data, PackFor::kTraining, where), true);
    args.dropout.call = 0;
    where.engine()->forward_saving(args);
    args.dropout.call = 1;
    where.engine()->forward_saving(args);
    return call.outputs();
  };
  const Result here = first(gpu());
  EXPECT_EQ(first_difference(here, first(other())), "");
  EXPECT_EQ(first_difference(here, first(gpu())), "");
}

}  // namespace
}  // namespace openrnn::conformance
