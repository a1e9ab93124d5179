#include "cudnn/device/gpu.h"
#include "cudnn/device/launch.h"

namespace openrnn::cudnn {

static_assert(static_cast<int>(gpu::Compare::kLessEqual) ==
              static_cast<int>(CompareOp::kLessEqual));

void GpuDevice::compare(CompareOp op, DType dtype, std::int64_t size, const void* a, const void* b,
                        std::uint8_t* mask) const {
  const gpu::Number number = number_of("compare", dtype);
  if (size <= 0) return;
  const Context::Current current(context_);
  launch(context_, "openrnn_compare", for_elements(size),
         gpu::CompareArguments{static_cast<gpu::Compare>(op), number, size, a, b, mask});
}

void GpuDevice::select(const SelectArgs& args) const {
  if (args.size <= 0) return;
  const Context::Current current(context_);
  launch(context_, "openrnn_select", for_elements(args.size),
         gpu::SelectArguments{static_cast<std::int32_t>(args.element), args.size, args.mask, args.a,
                              args.b, args.out});
}

void GpuDevice::copy_strided(const StridedCopy& given) const {
  const StridedCopy copy = collapsed(given);
  const std::int64_t size = shape_size(copy.shape);
  if (size == 0) return;
  gpu::StridedArguments arguments{.bytes = static_cast<std::int32_t>(copy.element),
                                  .rank = 0,
                                  .size = 1,
                                  .shape = {},
                                  .from_strides = {},
                                  .to_strides = {},
                                  .from = nullptr,
                                  .to = nullptr};
  const std::size_t rank = copy.shape.size();
  const std::size_t inner = std::min<std::size_t>(rank, gpu::kStridedRank);
  for (std::size_t i = 0; i < inner; ++i) {
    const std::size_t d = rank - inner + i;
    arguments.shape[i] = copy.shape[d];
    arguments.from_strides[i] = copy.from_strides[d];
    arguments.to_strides[i] = copy.to_strides[d];
    arguments.size *= copy.shape[d];
  }
  arguments.rank = static_cast<std::int32_t>(inner);
  const Context::Current current(context_);
  const auto bytes = static_cast<std::int64_t>(copy.element);
  // One launch for each place along the dimensions that are left.
  for (std::int64_t i = 0; i < size / arguments.size; ++i) {
    std::int64_t from = 0, to = 0, rest = i;
    for (std::size_t d = rank - inner; d-- > 0;) {
      from += rest % copy.shape[d] * copy.from_strides[d];
      to += rest % copy.shape[d] * copy.to_strides[d];
      rest /= copy.shape[d];
    }
    arguments.from = static_cast<const std::byte*>(copy.from) + from * bytes;
    arguments.to = static_cast<std::byte*>(copy.to) + to * bytes;
    launch(context_, "openrnn_strided", for_elements(arguments.size), arguments);
  }
}

}  // namespace openrnn::cudnn
