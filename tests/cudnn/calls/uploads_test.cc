// Bytes that go up while the GPU works.
#include "cudnn/gpu/uploads.h"

#include <cstring>
#include <set>

#include "conformance/support/machine.h"
#include "cudnn/calls/counted.h"
#include "cudnn/calls/instead.h"
#include "device/support.h"
#include "support/setting.h"

namespace openrnn::testing {
namespace {

using conformance::pretends;

constexpr std::int64_t kSize = 3000;

cudnn::Context& context() { return cudnn::Context::of(0); }

DeviceArray batch_of(float value) {
  return array_of<float>({kSize}, std::vector<float>(static_cast<std::size_t>(kSize), value));
}

/// What a step computes of its batch.
DeviceArray step(const DeviceArray& batch) {
  DeviceArray result(tested(), DType::kFloat32, {kSize});
  tested().scale(DType::kFloat32, kSize, 2.0, batch.data(), result.mutable_data());
  return result;
}

void expect_doubled(const DeviceArray& result, float value) {
  const Array host = result.to_host();
  for (const float found : host.as<float>()) ASSERT_EQ(found, 2 * value);
}

class Uploads : public ::testing::Test {
 protected:
  // Whose work waits until something waits for it.
  void SetUp() override {
    if (pretends()) deferred_.emplace("STAND_IN_DEFERRED", "1");
  }

 private:
  std::optional<Setting> deferred_;
};

TEST_F(Uploads, AreThereForWhateverComesAfterThem) {
  std::vector<DeviceArray> results;
  for (int n = 0; n < 20; ++n) results.push_back(step(batch_of(static_cast<float>(n))));
  for (int n = 0; n < 20; ++n) expect_doubled(results[static_cast<std::size_t>(n)], float(n));
}

// As in training: a step waits for what the one before has found.
TEST_F(Uploads, DoNotWaitForTheStepThatTheGpuWorksOn) {
  if (!pretends()) GTEST_SKIP() << "only the stand-in can be held";
  const cudnn::Context::Current current(context());
  std::vector<cudnn::Event> ends(10);
  for (std::size_t n = 0; n < ends.size(); ++n) {
    const DeviceArray batch = batch_of(static_cast<float>(n));
    if (n >= 4) {
      const cudnn::DriverApi& driver = cudnn::libraries().driver;
      cudnn::check(driver.stream_synchronize(context().uploads().stream()), "the copies");
      EXPECT_FALSE(ends[n - 1].is_done()) << n;
    }
    const DeviceArray result = step(batch);
    ends[n].record(context());
    if (n > 0) ends[n - 1].wait();
    if (n + 1 == ends.size()) expect_doubled(result, static_cast<float>(n));
  }
}

TEST_F(Uploads, TakeNoMoreMemoryForAHostThatRunsAhead) {
  const cudnn::Context::Current current(context());
  step(batch_of(1.0F)).to_host();
  const std::size_t before = context().pool().held_bytes();
  DeviceArray sum = DeviceArray::zeros(tested(), DType::kFloat32, {kSize});
  for (int n = 1; n <= 40; ++n) {
    const DeviceArray batch = batch_of(static_cast<float>(n));
    tested().accumulate(DType::kFloat32, kSize, batch.data(), sum.mutable_data());
  }
  EXPECT_LE(context().pool().held_bytes(), before + 6 * kSize * sizeof(float));
  EXPECT_EQ(at(sum, kSize - 1), 820.0);
}

TEST_F(Uploads, WaitOnTheGpuAlone) {
  if (!pretends()) GTEST_SKIP() << "only the stand-in counts";
  step(batch_of(1.0F)).to_host();
  const Counted streams("cuStreamSynchronize"), events("cuEventSynchronize");
  for (int n = 0; n < 6; ++n) step(batch_of(static_cast<float>(n)));
  EXPECT_EQ(streams.now(), 0);
  EXPECT_EQ(events.now(), 0);
}

TEST_F(Uploads, GiveTheirMemoryWhenThereIsNoOther) {
  if (!pretends()) GTEST_SKIP() << "for the stand-in, whose memory is small";
  context().uploads().release_idle();
  context().pool().release_idle();
  const Setting small("STAND_IN_MEMORY", std::to_string(context().pool().held_bytes() + 3000000));
  {
    const DeviceArray large =
        DeviceArray::from_host(tested(), Array(DType::kFloat32, {500000}).view());
  }
  EXPECT_NE(tested().allocate(2500000), nullptr);
  EXPECT_FALSE(context().uploads().release_idle());
}

/// On a GPU that is done with its work at once.
class UploadBlocks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!pretends()) GTEST_SKIP() << "only the stand-in is done at once";
  }

 private:
  Setting at_once_{"STAND_IN_DEFERRED", "0"};
};

/// Bytes in a block of the GPU.
std::shared_ptr<void> bring(std::size_t bytes) {
  return context().bring(std::vector<char>(bytes).data(), bytes);
}

TEST_F(UploadBlocks, ServeAgainOnceAMarkHasPassedWhatUsedThem) {
  const cudnn::Context::Current current(context());
  context().uploads().release_idle();
  auto first = bring(8192);
  void* const a = first.get();
  first.reset();
  auto second = bring(8192);
  void* const b = second.get();
  EXPECT_NE(b, a) << "nothing was marked since it was given back";
  auto third = bring(8192);
  EXPECT_EQ(third.get(), a);
  third.reset();
  second.reset();
  const auto small = bring(3000), half = bring(4096), whole = bring(8192);
  EXPECT_NE(small.get(), a) << "less than half of it";
  EXPECT_NE(small.get(), b);
  EXPECT_EQ(half.get(), a) << "the one that was given back first";
  EXPECT_EQ(whole.get(), b);
  const auto large = bring(8193);
  EXPECT_NE(large.get(), a);
  EXPECT_NE(large.get(), b);
}

/// Events that were recorded on the stream of calls, and those that the stream of copies awaits.
struct Order {
  std::vector<CUevent> recorded, awaited;
  Instead<&cudnn::DriverApi::event_record> records{[this](auto own, auto event, auto stream) {
    if (stream == context().stream()) recorded.push_back(event);
    return own(event, stream);
  }};
  Instead<&cudnn::DriverApi::stream_wait> waits{
      [this](auto own, auto stream, auto event, auto flags) {
        if (stream != context().stream()) awaited.push_back(event);
        return own(stream, event, flags);
      }};
};

// The copy into a block waits for what was enqueued before the block was given back, not for more.
TEST_F(UploadBlocks, AreFilledAfterTheFirstMarkThatFollowsTheirUse) {
  const cudnn::Context::Current current(context());
  for (const int between : {2, 5, 31, 32, 40}) {
    context().uploads().release_idle();
    auto first = bring(500000);
    void* const block = first.get();
    first.reset();
    const Order order;
    std::vector<std::shared_ptr<void>> kept;
    for (int n = 0; n < between; ++n) kept.push_back(bring(600));
    const auto again = bring(500000);
    EXPECT_EQ(again.get(), block);
    ASSERT_EQ(order.recorded.size(), static_cast<std::size_t>(between) + 1);
    // Of the marks only the last 32 are kept.
    const std::size_t oldest = static_cast<std::size_t>(std::max(between - 32, 0));
    EXPECT_EQ(order.awaited.back(), order.recorded[oldest]) << between;
    const std::set<CUevent> events(order.recorded.begin(), order.recorded.end());
    EXPECT_EQ(events.size(), static_cast<std::size_t>(std::min(between + 1, 32))) << between;
  }
}

TEST_F(Uploads, OfAHostThatRunsAheadTakeTurnsInAFewBlocks) {
  if (!pretends()) GTEST_SKIP() << "only the stand-in can be held";
  const cudnn::Context::Current current(context());
  context().uploads().release_idle();
  std::set<void*> blocks;
  for (int n = 0; n < 40; ++n) blocks.insert(bring(7000).get());
  EXPECT_EQ(blocks.size(), 4U) << "three that the GPU still uses, and the next one";
}

// No more than 32 of them are kept, and the oldest go first.
TEST_F(UploadBlocks, ThatAreTooManyGoBackToThePool) {
  const cudnn::Context::Current current(context());
  context().uploads().release_idle();
  // So that new blocks are of their requests' size classes.
  context().pool().release_idle();
  const std::size_t before = context().pool().used_bytes();
  std::vector<std::shared_ptr<void>> blocks;
  for (int n = 0; n < 40; ++n) blocks.push_back(bring(2048));
  const std::size_t each = (context().pool().used_bytes() - before) / 40;
  for (auto& block : blocks) block.reset();
  EXPECT_EQ(context().pool().used_bytes() - before, 32 * each);
  EXPECT_TRUE(context().uploads().release_idle());
  EXPECT_EQ(context().pool().used_bytes(), before);
  EXPECT_FALSE(context().uploads().release_idle());
}

TEST_F(Uploads, OfNothingAndOfMuch) {
  EXPECT_EQ(DeviceArray::from_host(tested(), Array(DType::kFloat32, {0}).view()).size(), 0);
  constexpr std::int64_t kMany = 5000003;  // several times what is pinned at once
  std::vector<float> values(kMany);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 65521);
  const DeviceArray array = array_of<float>({kMany}, values);
  std::fill(values.begin(), values.end(), -1.0F);
  const Array host = array.to_host();
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    wrong += host.as<float>()[i] != static_cast<float>(i % 65521);
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace openrnn::testing
