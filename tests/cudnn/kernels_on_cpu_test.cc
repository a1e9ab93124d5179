// The machine that runs kernels on the CPU finds what a GPU would do wrong.
#include "cudnn/stand_in/kernels/kernels_on_cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "support/setting.h"

namespace openrnn::stand_in {
namespace {

struct Reverse {
  const float* from;
  float* to;
};

// Each block turns its own elements around, through shared memory.
void reverse(Reverse arguments, int barriers) {
  auto* tile = static_cast<float*>(shared_memory());
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = arguments.from[at];
  if (barriers) __syncthreads();
  arguments.to[at] = tile[blockDim.x - 1 - threadIdx.x];
}

void uneven_barrier(int) {
  if (threadIdx.x != 3) __syncthreads();
}

void writes_beyond(int) { static_cast<float*>(shared_memory())[blockDim.x] = 1.0f; }

// Where a thread is, in three dimensions.
void index(int* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] += static_cast<int>(thread) + 1;
}

const Kernel kKernels[] = {{"test_reverse", reverse},
                           {"test_uneven", uneven_barrier},
                           {"test_beyond", writes_beyond},
                           {"test_index", index}};

constexpr unsigned kBlocks = 3, kThreads = 33;

std::vector<float> reversed_blocks(int barriers) {
  std::vector<float> from(std::size_t{kBlocks} * kThreads), to(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i * i);
  Reverse arguments{from.data(), to.data()};
  void* pointers[] = {&arguments, &barriers};
  run_kernel("test_reverse", {.grid = {kBlocks},
                              .block = {kThreads},
                              .shared_bytes = kThreads * sizeof(float),
                              .arguments = pointers});
  for (auto block = to.begin(); block != to.end(); block += kThreads) {
    std::reverse(block, block + kThreads);
  }
  return to == from ? std::vector<float>{} : to;
}

std::string error_of(const std::string& name, Dim3 grid, Dim3 block, std::size_t shared_bytes) {
  int argument = 0;
  void* pointers[] = {&argument};
  try {
    run_kernel(name, {grid, block, shared_bytes, pointers});
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

struct ReverseOrder {
  openrnn::testing::Setting threads{"STAND_IN_THREADS", "reverse"};
};

TEST(KernelsOnCpu, ThreadsMeetAtABarrier) {
  EXPECT_TRUE(reversed_blocks(1).empty());
  const ReverseOrder order;
  EXPECT_TRUE(reversed_blocks(1).empty());
}

TEST(KernelsOnCpu, AMissingBarrierShowsInEitherOrder) {
  EXPECT_FALSE(reversed_blocks(0).empty());
  const ReverseOrder order;
  EXPECT_FALSE(reversed_blocks(0).empty());
}

TEST(KernelsOnCpu, EveryThreadOfEveryBlockRunsOnce) {
  std::vector<int> counts(std::size_t{24} * 30);
  int* out = counts.data();
  void* pointers[] = {&out};
  run_kernel("test_index", {.grid = {2, 3, 4}, .block = {5, 3, 2}, .arguments = pointers});
  for (std::size_t i = 0; i < counts.size(); ++i) {
    ASSERT_EQ(counts[i], static_cast<int>(i % 30) + 1) << i;
  }
}

TEST(KernelsOnCpu, WordsOfArgumentsAreTranslated) {
  constexpr std::uint64_t kTag = std::uint64_t{1} << 62;
  float value = 4.0f, result = 0.0f;
  const auto tagged = [](auto* pointer) {
    // NOLINTNEXTLINE(*no-int-to-ptr): only a number can take the tag
    return reinterpret_cast<float*>(reinterpret_cast<std::uintptr_t>(pointer) | kTag);
  };
  Reverse arguments{tagged(&value), tagged(&result)};
  int barriers = 1;
  void* pointers[] = {&arguments, &barriers};
  run_kernel("test_reverse", {.grid = {1},
                              .block = {1},
                              .shared_bytes = 4,
                              .arguments = pointers,
                              .translate = [](std::uint64_t word) { return word & ~kTag; }});
  EXPECT_EQ(result, 4.0f);
  EXPECT_EQ(arguments.to, tagged(&result)) << "the caller's own arguments stay as they are";
}

TEST(KernelsOnCpu, Errors) {
  EXPECT_EQ(error_of("test_uneven", {1}, {8}, 0),
            "kernel 'test_uneven': some threads leave out a barrier");
  EXPECT_EQ(error_of("test_beyond", {1}, {8}, 32),
            "kernel 'test_beyond': wrote beyond its shared memory");
  EXPECT_EQ(error_of("test_beyond", {1}, {8}, 36), "");
  EXPECT_EQ(error_of("test_nowhere", {1}, {1}, 0), "kernel 'test_nowhere': is not there");
  EXPECT_EQ(error_of("test_uneven", {0}, {1}, 0),
            "kernel 'test_uneven': a size of the launch is 0");
  EXPECT_EQ(error_of("test_uneven", {1, 65536}, {1}, 0),
            "kernel 'test_uneven': the grid is too large");
  EXPECT_EQ(error_of("test_uneven", {1}, {32, 33}, 0),
            "kernel 'test_uneven': the block has more than 1024 threads");
  EXPECT_EQ(error_of("test_uneven", {1}, {1}, 48 * 1024 + 1),
            "kernel 'test_uneven': more than 48 KiB of shared memory");
}

}  // namespace
}  // namespace openrnn::stand_in
