#include <numeric>
#include <vector>

#include "cudnn/device/gpu.h"
#include "cudnn/device/launch.h"

namespace openrnn::cudnn {
namespace {

std::int64_t blocks_of(std::int64_t size) { return (size + gpu::kSumBlock - 1) / gpu::kSumBlock; }

void enqueue_sums(Context& context, gpu::Number number, bool squares, std::int64_t size,
                  const void* x, double* partial) {
  constexpr std::int64_t kBlocksOfOne = gpu::kThreads / gpu::kSumLanes;
  const std::int64_t blocks = (blocks_of(size) - 1) / kBlocksOfOne + 1;
  launch(context, "openrnn_sums",
         {.grid_x = grid_blocks("sum", blocks),
          .shared_bytes = gpu::kThreads * static_cast<unsigned>(sizeof(double))},
         gpu::SumArguments{number, squares, size, x, partial});
}

// The sums of the arrays, each from its first block to its last: one wait for all of them.
double sum_terms(const GpuDevice& device, const char* call, bool squares,
                 std::span<const ConstArrayView> arrays) {
  std::size_t blocks = 0;
  for (const ConstArrayView& array : arrays) {
    number_of(call, array.dtype);
    blocks += static_cast<std::size_t>(blocks_of(array.size()));
  }
  if (blocks == 0) return 0.0;
  const auto memory = device.allocate(blocks * sizeof(double));
  {
    const Context::Current current(device.context());
    auto* partial = static_cast<double*>(memory.get());
    for (const ConstArrayView& array : arrays) {
      if (array.size() == 0) continue;
      enqueue_sums(device.context(), number_of(call, array.dtype), squares, array.size(),
                   array.data, partial);
      partial += blocks_of(array.size());
    }
  }
  std::vector<double> sums(blocks);
  device.download(sums.data(), memory.get(), blocks * sizeof(double));
  double total = 0.0;
  const double* at = sums.data();
  for (const ConstArrayView& array : arrays) {
    if (array.size() == 0) continue;
    const std::int64_t count = blocks_of(array.size());
    total += std::accumulate(at + 1, at + count, *at);
    at += count;
  }
  return total;
}

}  // namespace

double GpuDevice::sum(DType dtype, std::int64_t size, const void* x) const {
  const ConstArrayView array{x, dtype, {size}};
  return sum_terms(*this, "sum", false, {&array, 1});
}

double GpuDevice::sum_of_squares(DType dtype, std::int64_t size, const void* x) const {
  const ConstArrayView array{x, dtype, {size}};
  return total_of_squares({&array, 1});
}

double GpuDevice::total_of_squares(std::span<const ConstArrayView> arrays) const {
  return sum_terms(*this, "sum_of_squares", true, arrays);
}

}  // namespace openrnn::cudnn
