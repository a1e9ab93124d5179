// A softmax of each row: a block a row.
#include "cudnn/kernels/math.h"
#include "cudnn/kernels/thread.h"

namespace openrnn::gpu {

// Shared memory of a row.
template <class C>
struct RowMemory {
  double lanes[kSumLanes];
  double total;
  C best[kRowThreads];
  C tile[kRowTile];
};

// The order does not matter for a maximum; a NaN may be ignored, as the sum will show it.
template <class T>
__device__ inline ComputeOf<T> row_maximum(const T* x, std::int64_t size, ComputeOf<T>* best) {
  using C = ComputeOf<T>;
  const int thread = static_cast<int>(threadIdx.x);
  C top = widen(x[0]);
  for (std::int64_t i = thread; i < size; i += kRowThreads) {
    const C value = widen(x[i]);
    top = value > top ? value : top;
  }
  best[thread] = top;
  for (int half = kRowThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half && best[thread + half] > best[thread]) best[thread] = best[thread + half];
  }
  __syncthreads();
  return best[0];
}

// The sum of exp(x - top) in double over kSumLanes lanes, lane by lane at the end. Stored
// exponentials are read again by the thread that wrote them.
template <class T>
__device__ inline double exponentials(const T* x, std::int64_t size, ComputeOf<T> top,
                                      RowMemory<ComputeOf<T>>& memory, ComputeOf<T>* kept) {
  using C = ComputeOf<T>;
  const int thread = static_cast<int>(threadIdx.x);
  double lane = 0.0;
  for (std::int64_t begin = 0; begin < size; begin += kRowTile) {
    const int count = size - begin < kRowTile ? static_cast<int>(size - begin) : kRowTile;
    for (int i = thread; i < count; i += kRowThreads) {
      const C value = exp_of(widen(x[begin + i]) - top);
      memory.tile[i] = value;
      if (kept) kept[begin + i] = value;
    }
    __syncthreads();
    if (thread < kSumLanes) {
      for (int i = thread; i < count; i += kSumLanes) lane += static_cast<double>(memory.tile[i]);
    }
    __syncthreads();
  }
  if (thread < kSumLanes) memory.lanes[thread] = lane;
  __syncthreads();
  if (thread == 0) {
    double total = memory.lanes[0];
    for (int i = 1; i < kSumLanes; ++i) total += memory.lanes[i];
    memory.total = total;
  }
  __syncthreads();
  return memory.total;
}

template <class T>
__device__ inline void softmax_row(const SoftmaxArguments& arguments) {
  using C = ComputeOf<T>;
  auto& memory = *shared_memory<RowMemory<C>>();
  const std::int64_t row = blockIdx.x, classes = arguments.classes;
  const T* logits = static_cast<const T*>(arguments.logits) + row * classes;
  C* to =
      arguments.probabilities ? static_cast<C*>(arguments.probabilities) + row * classes : nullptr;
  const C top = row_maximum<T>(logits, classes, memory.best);
  const double total = exponentials<T>(logits, classes, top, memory, to);
  if (threadIdx.x == 0 && arguments.losses) {
    const std::int32_t label = arguments.labels[row];
    const double loss = label < 0 ? 0.0
                                  : log_of(total) - (static_cast<double>(widen(logits[label])) -
                                                     static_cast<double>(top));
    static_cast<C*>(arguments.losses)[row] = static_cast<C>(loss);
  }
  if (to == nullptr) return;
  const C inverse = static_cast<C>(1.0 / total);
  for (std::int64_t begin = 0; begin < classes; begin += kRowTile) {
    for (std::int64_t i = begin + threadIdx.x; i < classes && i < begin + kRowTile;
         i += kRowThreads) {
      to[i] = to[i] * inverse;
    }
  }
}

template <class T>
__device__ inline void softmax_loss_gradient_of(const SoftmaxLossGradientArguments& arguments) {
  using C = ComputeOf<T>;
  const C* from = static_cast<const C*>(arguments.probabilities);
  T* to = static_cast<T*>(arguments.logits_gradient);
  each_cell(arguments.rows, arguments.classes, [=](std::int64_t row, std::int64_t col) {
    const std::int64_t at = row * arguments.classes + col;
    const std::int32_t label = arguments.labels[row];
    const C factor = static_cast<const C*>(arguments.row_gradients)[row];
    const C value = col == label ? from[at] - C(1) : from[at];
    to[at] = label < 0 ? T{} : narrow<T>(value * factor);
  });
}

// Products tile by tile, added in ascending order by one thread.
template <class T>
__device__ inline void softmax_gradient_row(const SoftmaxGradientArguments& arguments) {
  using C = ComputeOf<T>;
  auto& memory = *shared_memory<RowMemory<C>>();
  const std::int64_t start = static_cast<std::int64_t>(blockIdx.x) * arguments.cols;
  const T* y = static_cast<const T*>(arguments.y) + start;
  const T* dy = static_cast<const T*>(arguments.dy) + start;
  const int thread = static_cast<int>(threadIdx.x);
  C sum = 0;
  for (std::int64_t begin = 0; begin < arguments.cols; begin += kRowTile) {
    const std::int64_t left = arguments.cols - begin;
    const int count = left < kRowTile ? static_cast<int>(left) : kRowTile;
    for (int i = thread; i < count; i += kRowThreads) {
      memory.tile[i] = widen(y[begin + i]) * widen(dy[begin + i]);
    }
    __syncthreads();
    if (thread == 0) {
      for (int i = 0; i < count; ++i) sum += memory.tile[i];
    }
    __syncthreads();
  }
  if (thread == 0) memory.best[0] = sum;
  __syncthreads();
  const C dot = memory.best[0];
  T* dx = static_cast<T*>(arguments.dx) + start;
  for (std::int64_t i = thread; i < arguments.cols; i += kRowThreads) {
    dx[i] = narrow<T>(widen(y[i]) * (widen(dy[i]) - dot));
  }
}

}  // namespace openrnn::gpu

using namespace openrnn::gpu;

extern "C" __global__ void openrnn_softmax(SoftmaxArguments arguments) {
  with_number(arguments.number, [=](auto type) { softmax_row<decltype(type)>(arguments); });
}

extern "C" __global__ void openrnn_softmax_loss_gradient(SoftmaxLossGradientArguments arguments) {
  with_number(arguments.number,
              [=](auto type) { softmax_loss_gradient_of<decltype(type)>(arguments); });
}

extern "C" __global__ void openrnn_softmax_gradient(SoftmaxGradientArguments arguments) {
  with_number(arguments.number,
              [=](auto type) { softmax_gradient_row<decltype(type)>(arguments); });
}
