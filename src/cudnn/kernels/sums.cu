// Sums in double. The order depends on the size alone, and is that of the cpu device: kSumLanes
// lanes side by side in blocks of kSumBlock elements, then the lanes, then (on the host) the
// blocks.
#include "cudnn/kernels/number.h"
#include "cudnn/kernels/thread.h"

namespace openrnn::gpu {

template <class T>
__device__ inline double lane_sum(const SumArguments& arguments, std::int64_t block, int lane) {
  const T* x = static_cast<const T*>(arguments.x);
  const std::int64_t begin = block * kSumBlock;
  const std::int64_t end = arguments.size - begin < kSumBlock ? arguments.size : begin + kSumBlock;
  double sum = 0.0;
  for (std::int64_t i = begin + lane; i < end; i += kSumLanes) {
    const double value = static_cast<double>(widen(x[i]));
    sum += arguments.squares ? value * value : value;
  }
  return sum;
}

}  // namespace openrnn::gpu

using namespace openrnn::gpu;

extern "C" __global__ void openrnn_sums(SumArguments arguments) {
  double* lanes = shared_memory<double>();
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kSumLanes;
  const std::int64_t block =
      static_cast<std::int64_t>(blockIdx.x) * (kThreads / kSumLanes) + thread / kSumLanes;
  double sum = 0.0;
  const bool inside = block * kSumBlock < arguments.size;
  if (inside) {
    with_number(arguments.number,
                [&](auto type) { sum = lane_sum<decltype(type)>(arguments, block, lane); });
  }
  lanes[thread] = sum;
  __syncthreads();
  if (lane != 0 || !inside) return;
  for (int i = 1; i < kSumLanes; ++i) sum += lanes[thread + i];
  arguments.partial[block] = sum;
}
