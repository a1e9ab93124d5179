#include <thread>

#include "cpu/memory/block.h"
#include "device/support.h"

namespace openrnn::testing {
namespace {

/// One that ends; the pool of the process does not.
struct Pool : cpu::MemoryPool {
  ~Pool() { clear(); }
};

TEST(MemoryPool, GivesTheSameBlockAgain) {
  Pool pool;
  const void* first = pool.allocate(10000).get();
  EXPECT_GE(pool.idle_bytes(), 10000u);
  EXPECT_EQ(pool.allocate(9990).get(), first);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0u);
}

TEST(MemoryPool, SizesOfEveryKind) {
  Pool pool;
  for (const std::size_t bytes : {0u, 1u, 255u, 257u, 1000u, 4096u, 4097u, 1000003u}) {
    const std::shared_ptr<void> block = pool.allocate(bytes);
    ASSERT_NE(block, nullptr);
    std::fill_n(static_cast<unsigned char*>(block.get()), bytes, 1);
  }
  for (const std::size_t bytes : {SIZE_MAX, std::size_t{1} << 60}) {
    try {
      pool.allocate(bytes);
      ADD_FAILURE() << bytes;
    } catch (const std::bad_alloc& error) {
      EXPECT_NE(std::string(error.what()).find(std::to_string(bytes) + " bytes"),
                std::string::npos);
    }
  }
}

// A block that the system does not give is not counted as used.
TEST(MemoryPool, CountsNothingThatItDidNotGet) {
  Pool pool;
  const auto held = pool.allocate(1000);
  const std::size_t used = pool.used_bytes();
  for (const std::size_t bytes : {SIZE_MAX / 4, SIZE_MAX / 2, SIZE_MAX - 1}) {
    EXPECT_THROW(pool.allocate(bytes), std::bad_alloc) << bytes;
    EXPECT_EQ(pool.used_bytes(), used);
    EXPECT_EQ(pool.idle_bytes(), 0U);
  }
}

TEST(MemoryPool, KeepsNoMoreThanWasEverUsedAndAQuarter) {
  Pool pool;
  for (std::size_t n = 1; n <= 64; ++n) pool.allocate(n * 100000);
  EXPECT_LE(pool.idle_bytes(), 6400000u * 25 / 16);
  EXPECT_GT(pool.idle_bytes(), 0u);
}

TEST(MemoryPool, KeepsTheBlockThatComesBackRatherThanOlderOnes) {
  Pool pool;
  pool.allocate(2u << 20);
  pool.allocate(5u << 20);
  EXPECT_GE(pool.idle_bytes(), 5u << 20);
}

// Of sizes that are classes of their own: idle and used together may be 5/4 of the peak, 4 MB here.
TEST(MemoryPool, FreesTheLargestBlocksAboveThatAndNoOthers) {
  constexpr std::size_t kMega = std::size_t{1} << 20;
  Pool pool;
  pool.allocate(4 * kMega);
  EXPECT_EQ(pool.idle_bytes(), 4 * kMega);
  pool.allocate(kMega);
  EXPECT_EQ(pool.idle_bytes(), 5 * kMega);
  {
    const auto small = pool.allocate(kMega / 2);
    EXPECT_EQ(pool.used_bytes(), kMega / 2);
    EXPECT_EQ(pool.idle_bytes(), 5 * kMega);
  }
  EXPECT_EQ(pool.idle_bytes(), kMega + kMega / 2);
  EXPECT_EQ(pool.used_bytes(), 0U);
}

// Those that engines hold, from the pool of the process.
TEST(MemoryBlock, ComesFromThePoolAndGoesBack) {
  const cpu::MemoryPool& pool = cpu::MemoryPool::process();
  const std::size_t before = pool.used_bytes();
  {
    cpu::Block none, nothing(0), block(1000), other(std::size_t{1} << 16);
    EXPECT_EQ(none.data(), nullptr);
    EXPECT_EQ(nothing.data(), nullptr);
    EXPECT_EQ(nothing.size(), 0U);
    EXPECT_EQ(pool.used_bytes(), before + block.size() + other.size());
    const void* const data = block.data();
    cpu::Block moved(std::move(block));
    EXPECT_EQ(moved.data(), data);
    other = std::move(moved);
    EXPECT_EQ(other.data(), data);
    EXPECT_GE(other.size(), 1000U);
  }
  EXPECT_EQ(pool.used_bytes(), before);
}

TEST(MemoryPool, LargeBlocksBeginWithAHugePage) {
  Pool pool;
  for (const std::size_t bytes : {2u << 20, 5u << 20, 17u << 20}) {
    const cpu::PoolBlock block = pool.take(bytes);
    EXPECT_GE(block.bytes, bytes);
    EXPECT_LE(block.bytes, bytes / 4 * 5);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data) % (2u << 20), 0u);
    pool.give_back(block);
    EXPECT_EQ(pool.take(bytes - 100).data, block.data);
    pool.give_back(block);
  }
  pool.clear();
  EXPECT_EQ(pool.idle_bytes(), 0u);
}

TEST(MemoryPool, ServesManyThreads) {
  Pool pool;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, &wrong, t] {
      for (std::size_t n = 0; n < 500; ++n) {
        const std::size_t size = 64 + n * 37 % 5000;
        const std::shared_ptr<void> block = pool.allocate(size);
        auto* bytes = static_cast<unsigned char*>(block.get());
        std::fill_n(bytes, size, static_cast<unsigned char>(t));
        wrong += std::count(bytes, bytes + size, static_cast<unsigned char>(t)) !=
                 static_cast<std::ptrdiff_t>(size);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// What a child of a fork finds: no thread is inside the pool, so it is consistent.
TEST(MemoryPool, OthersWaitWhileItIsHeld) {
  Pool pool;
  const cpu::PoolBlock block = pool.take(1000);
  std::atomic<int> begun{0}, done{0};
  const auto begin = [&](auto use) {
    return std::thread([&, use] {
      ++begun;
      use();
      ++done;
    });
  };
  pool.hold();
  std::thread threads[] = {begin([&] { pool.give_back(pool.take(3000)); }),
                           begin([&] { pool.give_back(block); }),
                           begin([&] { pool.idle_bytes(); })};
  while (begun < 3) std::this_thread::yield();
  // Long enough for threads that run to be done.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(done, 0);
  pool.release();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, 3);
}

TEST(DeviceArray, SharesUntilItMustNot) {
  DeviceArray a = random_array(DType::kFloat32, {2, 3}, 1);
  DeviceArray b = a.reshaped({3, 2});
  EXPECT_EQ(a.data(), b.data());
  const double before = at(a, 0);
  b.make_unique_owner();
  EXPECT_NE(a.data(), b.data());
  set_element(b, 0, 99);
  EXPECT_EQ(at(a, 0), before);
  const void* own = b.data();
  b.make_unique_owner();
  EXPECT_EQ(b.data(), own);
}

TEST(DeviceArray, ComesAndGoes) {
  const Array host = Array::of<float>({2, 2}, std::vector<float>{1, 2, 3, 4});
  const DeviceArray array = DeviceArray::from_host(tested(), host.view());
  EXPECT_EQ(array.to_host().as<float>()[3], 4.0f);
  EXPECT_EQ(DeviceArray::zeros(tested(), DType::kFloat64, {3}).to_host().as<double>()[2], 0.0);
  EXPECT_TRUE(DeviceArray().empty());
  EXPECT_EQ(DeviceArray().to_host().size(), 0);
  EXPECT_EQ(DeviceArray().host_view().size(), 0);
  EXPECT_EQ(DeviceArray().host_view().data, nullptr);
  DeviceArray nothing;
  EXPECT_NO_THROW(nothing.make_unique_owner());
  EXPECT_TRUE(nothing.empty());
  try {
    array.reshaped({3});
    FAIL() << "no error";
  } catch (const ArgumentError& error) {
    EXPECT_STREQ(error.what(), "[reshaped] shape is [3], expected 4 elements as in [2, 2]");
  }
}

TEST(DeviceArray, IsSeenOnTheHostOnTheCpuAlone) {
  const auto array = array_of<float>({2}, {1.5f, 2.5f});
  if (tests_cpu()) {
    EXPECT_EQ(array.host_view().as<float>()[1], 2.5f);
    return;
  }
  try {
    array.host_view();
    FAIL() << "no error";
  } catch (const StateError& error) {
    EXPECT_STREQ(error.what(), "[host_view] the array lies on gpu:0, expected cpu");
  }
}

TEST(Memory, BlocksWithStrides) {
  // {count, bytes, from_stride, to_stride}: words of every width, and one row many times.
  constexpr std::size_t kCases[][4] = {{5, 3, 7, 3},          {4, 16, 48, 32}, {3, 24, 24, 24},
                                       {7, 6, 10, 22},        {9, 12, 0, 12},  {1, 1, 0, 0},
                                       {2, 1037, 1037, 2000}, {0, 8, 8, 8},    {4, 0, 8, 8}};
  for (const auto& [count, bytes, from_stride, to_stride] : kCases) {
    SCOPED_TRACE(::testing::Message() << count << " x " << bytes);
    std::vector<std::uint8_t> from(4096), to(4096, 7), expected(4096, 7);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i * 31 + 5);
    const auto source = array_of<std::uint8_t>({4096}, from);
    auto target = array_of<std::uint8_t>({4096}, to);
    tested().copy({.count = static_cast<std::int64_t>(count),
                   .bytes = bytes,
                   .from = source.data(),
                   .from_stride = from_stride,
                   .to = target.mutable_data(),
                   .to_stride = to_stride});
    for (std::size_t i = 0; i < count; ++i) {
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(i * from_stride), bytes,
                  expected.begin() + static_cast<std::ptrdiff_t>(i * to_stride));
    }
    expect_same_bits(target, array_of<std::uint8_t>({4096}, expected));
  }
}

TEST(Memory, ZeroAndNothing) {
  auto array = array_of<float>({3}, {1.0f, 2.0f, 3.0f});
  tested().zero(array.mutable_data(), 8);
  EXPECT_EQ(at(array, 1), 0.0);
  EXPECT_EQ(at(array, 2), 3.0);
  EXPECT_NO_THROW(tested().zero(nullptr, 0));
  EXPECT_NO_THROW(tested().upload(nullptr, nullptr, 0));
  EXPECT_NO_THROW(tested().download(nullptr, nullptr, 0));
  EXPECT_NE(tested().allocate(0), nullptr);
}

}  // namespace
}  // namespace openrnn::testing
