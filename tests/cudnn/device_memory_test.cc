// Memory of a GPU: the pool, copies through pinned memory, threads, forks.
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <thread>

#include "conformance/support/machine.h"
#include "cudnn/calls/instead.h"
#include "cudnn/device/timer.h"
#include "cudnn/gpu/busy_clock.h"
#include "cudnn/gpu/staging.h"
#include "cudnn/gpu/uploads.h"
#include "device/support.h"
#include "support/expect_error.h"
#include "support/setting.h"

namespace openrnn::testing {
namespace {

cudnn::Context& context() { return cudnn::Context::of(0); }
cudnn::Pool& pool() { return context().pool(); }

TEST(GpuPool, GivesTheSameBlockAgain) {
  const void* first = tested().allocate(10000).get();
  EXPECT_EQ(tested().allocate(9990).get(), first);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 256, 0u);
  EXPECT_NE(tested().allocate(0), nullptr);
}

TEST(GpuPool, CountsWhatIsUsedAndHeld) {
  pool().release_idle();
  const std::size_t used = pool().used_bytes(), held = pool().held_bytes();
  EXPECT_EQ(used, held);
  {
    const auto block = tested().allocate(100000);
    EXPECT_GE(pool().used_bytes(), used + 100000);
    // An eighth is wasted at most.
    EXPECT_LE(pool().used_bytes(), used + 112500);
    EXPECT_EQ(pool().held_bytes() - held, pool().used_bytes() - used);
  }
  EXPECT_EQ(pool().used_bytes(), used);
  EXPECT_GT(pool().held_bytes(), held);
  pool().release_idle();
  EXPECT_EQ(pool().held_bytes(), held);
}

TEST(GpuPool, KeepsNoMoreThanTwiceWhatWasEverUsed) {
  pool().release_idle();
  const std::size_t used = pool().used_bytes();
  { const auto most = tested().allocate(std::size_t{64} * 100000); }
  // Ever larger ones, so that none fits the next.
  for (std::size_t n = 1; n <= 64; n *= 2) tested().allocate(n * 100000 + n * n * 1000);
  EXPECT_LE(pool().held_bytes(), used + 2 * std::size_t{6400000 + 64 * 64 * 1000} * 9 / 8);
  EXPECT_GT(pool().held_bytes(), used);
}

TEST(GpuPool, ALargerBlockServesHalfOfItsSizeAndNoLess) {
  pool().release_idle();
  const void* large = tested().allocate(1 << 20).get();
  EXPECT_EQ(tested().allocate(600000).get(), large);
  EXPECT_EQ(tested().allocate(1 << 19).get(), large);
  EXPECT_NE(tested().allocate(400000).get(), large);
}

TEST(GpuPool, ServesManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  std::vector<DeviceArray> kept(4);
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t n = 0; n < 40; ++n) {
        const auto value = static_cast<float>(t * 100 + static_cast<std::size_t>(n));
        const std::vector<float> values(static_cast<std::size_t>(16 + n * 37), value);
        const auto size = static_cast<std::int64_t>(values.size());
        DeviceArray array = array_of<float>({size}, values);
        tested().scale(DType::kFloat32, size, 2.0, array.data(), array.mutable_data());
        const Array host = array.to_host();
        for (const float v : host.as<float>()) wrong += v != 2 * value;
        kept[t] = array;  // dies in the main thread
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(GpuPool, NoRoomIsAnErrorThatSaysSo) {
  const std::string error = error_of<EngineError>([] { tested().allocate(std::size_t{1} << 50); });
  EXPECT_EQ(error.find("[allocate] gpu:0 has no room for 1125899906842624 bytes: "), 0u) << error;
  EXPECT_NE(error.find("use a smaller batch or time"), std::string::npos) << error;
  EXPECT_NE(error_of<EngineError>([] { tested().allocate(SIZE_MAX); }), "");
  EXPECT_EQ(at(random_array(DType::kFloat32, {3}, 1), 0),
            at(random_array(DType::kFloat32, {3}, 1), 0));
}

TEST(GpuPool, IdleBlocksMakeRoom) {
  if (!conformance::pretends()) GTEST_SKIP() << "for the stand-in, whose memory is small";
  pool().release_idle();
  const std::size_t used = pool().used_bytes();
  const Setting small("STAND_IN_MEMORY", std::to_string(used + 3000000));
  std::vector<std::shared_ptr<void>> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(tested().allocate(300000));
  blocks.clear();
  EXPECT_GE(pool().held_bytes(), used + 2400000);
  EXPECT_EQ(error_of<EngineError>([] { tested().allocate(2000000); }), "");
  EXPECT_NE(error_of<EngineError>([&] { tested().allocate(used + 4000000); }), "")
      << "more than all of it";
}

// Whole, of a size that no block has: what was asked for, not what the pool would have taken.
TEST(GpuPool, AFullGpuSaysWhatWasAskedForAndWhatThereIs) {
  if (!conformance::pretends()) GTEST_SKIP() << "for the stand-in, whose memory is small";
  const auto kept = tested().allocate(300000);
  context().uploads().release_idle();
  pool().release_idle();
  const std::size_t used = pool().used_bytes();
  ASSERT_EQ(pool().held_bytes(), used);
  const Setting small("STAND_IN_MEMORY", std::to_string(used + 1000000));
  std::size_t free = 0, total = 0;
  {
    const cudnn::Context::Current current(context());
    cudnn::libraries().driver.memory_info(&free, &total);
  }
  ASSERT_NE(free, total);
  for (const std::size_t bytes : {std::size_t{1234567}, std::size_t{123456789}, SIZE_MAX}) {
    expect_error<EngineError>(
        [&] { tested().allocate(bytes); },
        "[allocate] gpu:0 has no room for " + std::to_string(bytes) +
            " bytes: " + std::to_string(used) + " bytes are in use here, and the driver shows " +
            std::to_string(free) + " of " + std::to_string(total) +
            " as free; use a smaller batch or time, or free other memory of the GPU");
  }
  const Array host(DType::kUInt8, {1234567});
  const std::string error =
      error_of<EngineError>([&] { DeviceArray::from_host(tested(), host.view()); });
  EXPECT_EQ(error.find("[allocate] gpu:0 has no room for 1234567 bytes: "), 0U) << error;
}

TEST(GpuPool, SizesOfBlocksAreEightAnOctave) {
  using cudnn::Pool;
  for (const auto& [bytes, size] :
       std::vector<std::pair<std::size_t, std::size_t>>{{0, 256},
                                                        {1, 256},
                                                        {256, 256},
                                                        {257, 512},
                                                        {2048, 2048},
                                                        {2049, 2304},
                                                        {4096, 4096},
                                                        {4097, 4608},
                                                        {4608, 4608},
                                                        {4609, 5120},
                                                        {8191, 8192},
                                                        {10000, 10240},
                                                        {1 << 20, 1 << 20},
                                                        {(1 << 20) + 1, 9 << 17},
                                                        {(1 << 21) - 1, 1 << 21}}) {
    EXPECT_EQ(Pool::size_class(bytes), size) << bytes;
  }
}

// More than the slots hold at once; the source is gone before the copy may have been made.
TEST(Staging, CopiesOfEverySize) {
  for (const std::int64_t size : {1, 1000, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, 2800003}) {
    DeviceArray array(tested(), DType::kFloat32, {size});
    {
      std::vector<float> values(static_cast<std::size_t>(size));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 65521);
      tested().upload(array.mutable_data(), values.data(), values.size() * sizeof(float));
      std::fill(values.begin(), values.end(), -1.0f);
    }
    const Array host = array.to_host();
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      wrong += host.as<float>()[static_cast<std::size_t>(i)] != static_cast<float>(i % 65521);
    }
    EXPECT_EQ(wrong, 0) << size;
  }
}

// Memory that is given back while work on it is queued: the next owner's work comes after it.
TEST(GpuPool, BlocksAreReusedInTheOrderOfTheWork) {
  auto sum = DeviceArray::zeros(tested(), DType::kFloat32, {1000});
  for (int n = 1; n <= 20; ++n) {
    DeviceArray term(tested(), DType::kFloat32, {1000});
    tested().fill(DType::kFloat32, 1000, n, DType::kFloat32, nullptr, term.mutable_data());
    tested().accumulate(DType::kFloat32, 1000, term.data(), sum.mutable_data());
  }
  EXPECT_EQ(at(sum, 999), 210.0);
}

TEST(GpuFork, TheChildIsToldAndMayEnd) {
  DeviceArray array = array_of<float>({3}, {1, 2, 3});
  const pid_t child = fork();
  if (child == 0) {
    const std::string error = error_of<EngineError>([] { tested().allocate(16); });
    const bool told =
        error ==
        "[gpu:0] cannot be used: the process was forked from one that had used a GPU, which CUDA "
        "does not allow; start it by spawn, or fork before the first use";
    array = DeviceArray();  // gives back, as the objects of the parent do
    _exit(told ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(at(array, 2), 3.0);
}

TEST(GpuTimer, MeasuresWhatLiesBetween) {
  cudnn::GpuTimer timer(context());
  const DeviceArray x = random_array(DType::kFloat32, {1 << 16}, 1);
  DeviceArray y(tested(), DType::kFloat32, {1 << 16});
  timer.start();
  tested().unary(UnaryOp::kTanh, DType::kFloat32, x.size(), x.data(), y.mutable_data());
  timer.stop();
  const double elapsed = timer.milliseconds();
  EXPECT_GE(elapsed, 0.0);
  EXPECT_LT(elapsed, 60000.0);
}

TEST(BusyClock, ASpanEndsWhereTheGpuHasNothingToDo) {
  if (!conformance::pretends()) GTEST_SKIP() << "for the stand-in, which can be held";
  const Setting deferred("STAND_IN_DEFERRED", "1");
  DeviceArray array = array_of<float>({3}, {1, 2, 3});
  at(array, 0);
  {
    cudnn::BusyClock clock(context());
    for (int i = 0; i < 3; ++i) tested().zero(array.mutable_data(), 12);
    EXPECT_EQ(clock.spans(), 1);
    const Setting at_once("STAND_IN_DEFERRED", "0");
    EXPECT_EQ(at(array, 0), 0.0);  // waits
    tested().zero(array.mutable_data(), 12);
    EXPECT_EQ(clock.spans(), 2);
    EXPECT_GE(clock.milliseconds(), 0.0);
  }
  tested().zero(array.mutable_data(), 12);
}

/// Events that pass at a time of the test's own, which measures them too.
struct OwnTime {
  float now = 0.0F;
  int records = 0;
  std::map<CUevent, float> times = {};
  Instead<&cudnn::DriverApi::event_record> recorded{
      [this](auto own, CUevent event, CUstream stream) {
        ++records;
        times[event] = now;
        return own(event, stream);
      }};
  Instead<&cudnn::DriverApi::event_elapsed> elapsed{
      [this](auto, float* milliseconds, CUevent from, CUevent to) {
        *milliseconds = times.at(to) - times.at(from);
        return CUDA_SUCCESS;
      }};
};

// Calls of two threads: the span lasts from the first begin to the last end.
TEST(BusyClock, OverlappingCallsAreOneSpan) {
  const cudnn::Context::Current current(context());
  context().wait();
  OwnTime time;
  cudnn::BusyClock clock(context());
  const auto call = [&](void (cudnn::BusyClock::*what)() noexcept, float at) {
    time.now = at;
    (clock.*what)();
  };
  const auto begin = [&](float at) { call(&cudnn::BusyClock::begin_call, at); };
  const auto end = [&](float at) { call(&cudnn::BusyClock::end_call, at); };
  begin(1.0F);
  EXPECT_EQ(time.records, 2);
  begin(3.0F);
  end(4.0F);
  begin(6.0F);
  begin(7.0F);
  end(8.0F);
  end(9.0F);
  EXPECT_EQ(time.records, 2) << "only the first begins, only the last ends";
  EXPECT_EQ(clock.spans(), 1);
  end(11.0F);
  EXPECT_EQ(time.records, 3);
  context().wait();
  begin(20.0F);
  end(20.5F);
  EXPECT_EQ(clock.spans(), 2);
  context().wait();
  begin(30.0F);
  begin(31.0F);
  end(32.0F);
  end(34.0F);
  EXPECT_EQ(clock.spans(), 3);
  EXPECT_EQ(clock.milliseconds(), 10.0 + 0.5 + 4.0);
}

}  // namespace
}  // namespace openrnn::testing
