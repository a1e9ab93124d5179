// What the stand-in of the driver refuses while work is recorded, as the driver documents it, and
// what recorded work does when it runs again.
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "cudnn/device/launch.h"
#include "engine/cudnn_entry.h"

namespace openrnn::cudnn {
namespace {

constexpr std::size_t kBytes = 64;

const DriverApi& driver() { return libraries().driver; }

/// A stream and some memory, without the engine's stream.
class StandInCaptures : public ::testing::Test {
 protected:
  void SetUp() override {
    current_.emplace(Context::of(0));
    ASSERT_EQ(driver().stream_create(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(driver().memory_alloc(&from_, kBytes), CUDA_SUCCESS);
    ASSERT_EQ(driver().memory_alloc(&to_, kBytes), CUDA_SUCCESS);
  }

  void TearDown() override { drop_graph(); }

  CUresult begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
    return driver().stream_begin_capture(stream_, mode);
  }
  CUresult end() {
    drop_graph();
    return driver().stream_end_capture(stream_, &graph_);
  }
  void drop_graph() {
    if (graph_) EXPECT_EQ(driver().graph_destroy(graph_), CUDA_SUCCESS);
    graph_ = nullptr;
  }
  CUresult fill(unsigned char value) { return driver().fill(from_, value, kBytes, stream_); }
  CUresult copy() { return driver().copy(to_, from_, kBytes, stream_); }

  /// What a call answers inside of a capture; it must end as an invalid one.
  template <class Call>
  CUresult refused(const Call& call,
                   CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
    EXPECT_EQ(begin(mode), CUDA_SUCCESS);
    EXPECT_EQ(fill(1), CUDA_SUCCESS);
    const CUresult answer = call();
    const CUresult later = fill(1);
    EXPECT_EQ(later, answer == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    const CUresult ended = end();
    EXPECT_EQ(ended, answer == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(graph_ == nullptr, answer != CUDA_SUCCESS);
    drop_graph();
    return answer;
  }
  unsigned char byte_at(CUdeviceptr memory) {
    unsigned char found = 0;
    EXPECT_EQ(driver().copy_out(&found, memory, 1, stream_), CUDA_SUCCESS);
    EXPECT_EQ(driver().stream_synchronize(stream_), CUDA_SUCCESS);
    return found;
  }
  CUgraphExec made() {
    CUgraphExec graph = nullptr;
    EXPECT_EQ(driver().graph_instantiate(&graph, graph_, 0), CUDA_SUCCESS);
    drop_graph();
    return graph;
  }

  std::optional<Context::Current> current_;
  CUstream stream_ = nullptr;
  CUdeviceptr from_ = 0, to_ = 0;
  CUgraph graph_ = nullptr;
};

TEST_F(StandInCaptures, HoldWorkOfTheDevice) {
  void* pinned = nullptr;
  ASSERT_EQ(driver().host_alloc(&pinned, kBytes, 0), CUDA_SUCCESS);
  EXPECT_EQ(refused([&] { return copy(); }), CUDA_SUCCESS);
  EXPECT_EQ(refused([&] { return driver().copy_in(to_, pinned, kBytes, stream_); }), CUDA_SUCCESS);
  EXPECT_EQ(refused([&] { return driver().copy_out(pinned, to_, kBytes, stream_); }), CUDA_SUCCESS);
}

TEST_F(StandInCaptures, NeitherAllocateNorFree) {
  constexpr CUresult kNo = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  CUdeviceptr memory = 0;
  void *pinned = nullptr, *other = nullptr;
  ASSERT_EQ(driver().host_alloc(&pinned, kBytes, 0), CUDA_SUCCESS);
  EXPECT_EQ(refused([&] { return driver().memory_alloc(&memory, kBytes); }), kNo);
  EXPECT_EQ(refused([&] { return driver().memory_free(to_); }), kNo);
  EXPECT_EQ(refused([&] { return driver().host_alloc(&other, kBytes, 0); }), kNo);
  EXPECT_EQ(refused([&] { return driver().host_free(pinned); }), kNo);
  EXPECT_EQ(driver().host_free(pinned), CUDA_SUCCESS);
}

TEST_F(StandInCaptures, NeitherWaitNorAsk) {
  CUevent event = nullptr;
  ASSERT_EQ(driver().event_create(&event, 0), CUDA_SUCCESS);
  EXPECT_EQ(refused([&] { return driver().stream_synchronize(stream_); }),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  const auto recorded = [&](auto question) {
    return refused([&] {
      EXPECT_EQ(driver().event_record(event, stream_), CUDA_SUCCESS);
      return question(event);
    });
  };
  EXPECT_EQ(recorded(driver().event_query), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_EQ(recorded(driver().event_synchronize), CUDA_ERROR_CAPTURED_EVENT);
  // Of the outside, whose work is not in the graph.
  CUstream other = nullptr;
  ASSERT_EQ(driver().stream_create(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(driver().event_record(event, other), CUDA_SUCCESS);
  EXPECT_EQ(refused([&] { return driver().stream_wait(stream_, event, 0); }),
            CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  EXPECT_EQ(driver().event_synchronize(event), CUDA_SUCCESS);
  EXPECT_EQ(driver().event_destroy(event), CUDA_SUCCESS);
}

TEST_F(StandInCaptures, DoNotTouchMemoryOfTheHostThatIsNotPinned) {
  std::array<char, kBytes> pageable{};
  EXPECT_EQ(refused([&] { return driver().copy_in(to_, pageable.data(), kBytes, stream_); }),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(refused([&] { return driver().copy_out(pageable.data(), to_, kBytes, stream_); }),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

TEST_F(StandInCaptures, SeeNoNewHandlesOfLibraries) {
  cudnnHandle_t cudnn = nullptr;
  cublasHandle_t blas = nullptr;
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  EXPECT_NE(libraries().cudnn.create(&cudnn), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(end(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  EXPECT_NE(libraries().cublas.create(&blas), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(end(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(StandInCaptures, OfOneThreadLeaveOthersAlone) {
  const auto elsewhere = [](const auto& call) {
    CUresult answer = CUDA_SUCCESS;
    std::thread([&] {
      const Context::Current current(Context::of(0));
      answer = call();
    }).join();
    return answer;
  };
  CUdeviceptr memory = 0;
  const auto allocate = [&] { return driver().memory_alloc(&memory, kBytes); };
  EXPECT_EQ(refused([&] { return elsewhere(allocate); }), CUDA_SUCCESS);
  EXPECT_EQ(refused([&] { return elsewhere(allocate); }, CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(refused(allocate, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  EXPECT_EQ(elsewhere([&] { return end(); }), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  EXPECT_EQ(end(), CUDA_SUCCESS);
  EXPECT_EQ(end(), CUDA_ERROR_ILLEGAL_STATE);
  // Work for another stream runs and is not recorded.
  CUstream other = nullptr;
  ASSERT_EQ(driver().stream_create(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  EXPECT_EQ(begin(), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(driver().fill(to_, 9, kBytes, other), CUDA_SUCCESS);
  EXPECT_EQ(end(), CUDA_SUCCESS);
  EXPECT_EQ(driver().stream_synchronize(other), CUDA_SUCCESS);
  EXPECT_EQ(byte_at(to_), 9);
}

TEST_F(StandInCaptures, OfAStreamInOrderWithTheLegacyOneEndAtItsUse) {
  const auto use_legacy = [&] { return driver().fill(to_, 1, kBytes, nullptr); };
  EXPECT_EQ(refused(use_legacy), CUDA_SUCCESS);
  ASSERT_EQ(driver().stream_create(&stream_, CU_STREAM_DEFAULT), CUDA_SUCCESS);
  EXPECT_EQ(refused(use_legacy), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  stream_ = nullptr;
  EXPECT_EQ(begin(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

TEST_F(StandInCaptures, RunNothingUntilTheyAreLaunchedAndThenEachTime) {
  ASSERT_EQ(fill(1), CUDA_SUCCESS);
  ASSERT_EQ(copy(), CUDA_SUCCESS);
  ASSERT_EQ(fill(2), CUDA_SUCCESS);
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  ASSERT_EQ(copy(), CUDA_SUCCESS);
  ASSERT_EQ(end(), CUDA_SUCCESS);
  EXPECT_EQ(byte_at(to_), 1);
  CUgraphExec graph = made();
  for (const unsigned char value : {3, 4}) {
    ASSERT_EQ(fill(value), CUDA_SUCCESS);
    EXPECT_EQ(driver().graph_launch(graph, stream_), CUDA_SUCCESS);
    EXPECT_EQ(byte_at(to_), value);
  }
  EXPECT_EQ(refused([&] { return driver().graph_launch(graph, stream_); }),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(driver().graph_exec_destroy(graph), CUDA_SUCCESS);
}

/// What a graph answers when the memory that its work was recorded with is the driver's again.
CUresult launched_over_freed(CUstream stream, CUgraphExec graph, CUdeviceptr memory) {
  driver().memory_free(memory);
  driver().graph_launch(graph, stream);
  return driver().stream_synchronize(stream);
}

TEST_F(StandInCaptures, FailOverMemoryThatWasGivenBack) {
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  ASSERT_EQ(copy(), CUDA_SUCCESS);
  ASSERT_EQ(end(), CUDA_SUCCESS);
  // In a process of its own: nothing runs after it.
  EXPECT_EXIT(std::_Exit(launched_over_freed(stream_, made(), from_) != CUDA_SUCCESS),
              ::testing::ExitedWithCode(1), "reaches outside its block");
  // A kernel's arguments as well.
  const CUfunction kernel = Context::of(0).kernel("openrnn_scale");
  gpu::ScaleArguments arguments{gpu::Number::kFloat, 4, 2.0,
                                reinterpret_cast<void*>(from_),  // NOLINT: the driver's form
                                reinterpret_cast<void*>(to_)};   // NOLINT: the driver's form
  std::array<void*, 1> pointers{&arguments};
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  ASSERT_EQ(
      driver().launch(kernel, 1, 1, 1, gpu::kThreads, 1, 1, 0, stream_, pointers.data(), nullptr),
      CUDA_SUCCESS);
  ASSERT_EQ(end(), CUDA_SUCCESS);
  EXPECT_EXIT(std::_Exit(launched_over_freed(stream_, made(), from_) != CUDA_SUCCESS),
              ::testing::ExitedWithCode(1), "a kernel's memory was given back");
}

}  // namespace
}  // namespace openrnn::cudnn
