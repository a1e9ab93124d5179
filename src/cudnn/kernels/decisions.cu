// Sums that stay on the device, and the decision of a training step.
#include "cudnn/kernels/number.h"
#include "cudnn/kernels/thread.h"

namespace openrnn::gpu {

// Ascending, by the first thread; the others load the terms.
__device__ inline double total_of(const TotalArguments& arguments) {
  double* tile = shared_memory<double>();
  const int thread = static_cast<int>(threadIdx.x);
  double total = 0.0;
  for (std::int64_t begin = 0; begin < arguments.count; begin += kThreads) {
    const std::int64_t left = arguments.count - begin;
    const int count = left < kThreads ? static_cast<int>(left) : kThreads;
    if (thread < count) tile[thread] = arguments.terms[begin + thread];
    __syncthreads();
    if (thread == 0) {
      for (int i = 0; i < count; ++i) total = begin + i == 0 ? tile[0] : total + tile[i];
    }
    __syncthreads();
  }
  return total;
}

__device__ inline bool is_finite(double x) { return fabs(x) < static_cast<double>(INFINITY); }

}  // namespace openrnn::gpu

using namespace openrnn::gpu;

extern "C" __global__ void openrnn_total(TotalArguments arguments) {
  const double total = total_of(arguments);
  if (threadIdx.x != 0) return;
  if (arguments.sum) *arguments.sum += total;
  if (arguments.out == nullptr) return;
  with_number(arguments.number, [=](auto type) {
    using T = decltype(type);
    *static_cast<T*>(arguments.out) = Convert<T, double>::of(arguments.factor * total);
  });
}

extern "C" __global__ void openrnn_decide(DecideArguments arguments) {
  if (threadIdx.x != 0) return;
  StepDecision found{0.0, 1.0, 0.0, 1.0};
  found.norm = sqrt(*arguments.squares);
  if (arguments.loss) {
    with_number(arguments.loss_number, [&](auto type) {
      found.loss = static_cast<double>(widen(*static_cast<const decltype(type)*>(arguments.loss)));
    });
  }
  const double limit = arguments.clip_norm;
  if (limit > 0.0 && found.norm > limit) {
    const double by_norm = 1.0 / found.norm, by_limit = 1.0 / limit;
    found.factor = limit * (by_limit < by_norm ? by_limit : by_norm);
  }
  const bool finite = is_finite(found.norm) && (!arguments.loss_decides || is_finite(found.loss));
  found.taken = finite ? 1.0 : 0.0;
  *arguments.decision = found;
}

extern "C" __global__ void openrnn_copy_if(CopyIfArguments arguments) {
  if (arguments.decision->taken == 0.0) return;
  const auto* from = static_cast<const unsigned char*>(arguments.from);
  auto* to = static_cast<unsigned char*>(arguments.to);
  // Words first, then the remaining bytes.
  const std::int64_t words = arguments.bytes / 4, rest = arguments.bytes % 4;
  each_element(words + rest, [=](std::int64_t i) {
    if (i < words) {
      reinterpret_cast<std::uint32_t*>(to)[i] = reinterpret_cast<const std::uint32_t*>(from)[i];
    } else {
      to[4 * words + i - words] = from[4 * words + i - words];
    }
  });
}
