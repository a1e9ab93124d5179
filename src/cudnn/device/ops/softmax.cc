#include "cudnn/device/gpu.h"
#include "cudnn/device/launch.h"

namespace openrnn::cudnn {
namespace {

// A block a row; what a row keeps in shared memory, in double where float16 and float32 need less.
LaunchShape for_rows(const char* call, std::int64_t rows, DType dtype) {
  const std::size_t wide = dtype == DType::kFloat64 ? 8 : 4;
  return {.grid_x = grid_blocks(call, rows),
          .block_x = gpu::kRowThreads,
          .shared_bytes = static_cast<unsigned>((gpu::kSumLanes + 1) * sizeof(double) +
                                                (gpu::kRowThreads + gpu::kRowTile) * wide)};
}

}  // namespace

void GpuDevice::softmax_cross_entropy(const CrossEntropyArgs& args) const {
  if (args.classes <= 0) return;
  const gpu::Number number = number_of("softmax_cross_entropy", args.dtype);
  if (args.rows <= 0) return;
  const Context::Current current(context_);
  launch(context_, "openrnn_softmax", for_rows("softmax_cross_entropy", args.rows, args.dtype),
         gpu::SoftmaxArguments{number, args.rows, args.classes, args.logits, args.labels,
                               args.losses, args.probabilities});
}

void GpuDevice::softmax_cross_entropy_gradient(const CrossEntropyGradientArgs& args) const {
  const gpu::Number number = number_of("softmax_cross_entropy_gradient", args.dtype);
  if (args.rows <= 0 || args.classes <= 0) return;
  const Context::Current current(context_);
  launch(context_, "openrnn_softmax_loss_gradient", for_cells(args.rows, args.classes),
         gpu::SoftmaxLossGradientArguments{number, args.rows, args.classes, args.probabilities,
                                           args.labels, args.row_gradients, args.logits_gradient});
}

void GpuDevice::softmax_gradient(DType dtype, std::int64_t rows, std::int64_t cols, const void* y,
                                 const void* dy, void* dx) const {
  const gpu::Number number = number_of("softmax_gradient", dtype);
  if (rows <= 0 || cols <= 0) return;
  const Context::Current current(context_);
  launch(context_, "openrnn_softmax_gradient", for_rows("softmax_gradient", rows, dtype),
         gpu::SoftmaxGradientArguments{number, rows, cols, y, dy, dx});
}

}  // namespace openrnn::cudnn
