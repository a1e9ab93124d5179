#include "cudnn/device/gpu.h"
#include "cudnn/device/launch.h"

namespace openrnn::cudnn {
namespace {

template <class Kernel, class Op>
constexpr bool same(Kernel kernel, Op op) {
  return static_cast<int>(kernel) == static_cast<int>(op);
}
static_assert(same(gpu::Unary::kRelu, UnaryOp::kRelu) && same(gpu::Unary::kTanh, UnaryOp::kTanh) &&
              same(gpu::Unary::kSigmoid, UnaryOp::kSigmoid) &&
              same(gpu::Unary::kExp, UnaryOp::kExp) &&
              same(gpu::Unary::kNegate, UnaryOp::kNegate) &&
              same(gpu::Unary::kSquare, UnaryOp::kSquare) &&
              same(gpu::Unary::kAbs, UnaryOp::kAbs) && same(gpu::Unary::kSqrt, UnaryOp::kSqrt) &&
              same(gpu::Unary::kLog, UnaryOp::kLog) &&
              same(gpu::Unary::kSoftplus, UnaryOp::kSoftplus));
static_assert(same(gpu::Binary::kAdd, BinaryOp::kAdd) &&
              same(gpu::Binary::kSubtract, BinaryOp::kSubtract) &&
              same(gpu::Binary::kMultiply, BinaryOp::kMultiply) &&
              same(gpu::Binary::kDivide, BinaryOp::kDivide) &&
              same(gpu::Binary::kMaximum, BinaryOp::kMaximum) &&
              same(gpu::Binary::kMinimum, BinaryOp::kMinimum) &&
              same(gpu::Binary::kPower, BinaryOp::kPower));

}  // namespace

void GpuDevice::unary(UnaryOp op, DType dtype, std::int64_t size, const void* x, void* y) const {
  const gpu::Number number = number_of("unary", dtype);
  if (size <= 0) return;
  const Context::Current current(context_);
  launch(context_, "openrnn_unary", for_elements(size),
         gpu::UnaryArguments{static_cast<gpu::Unary>(op), number, size, x, y});
}

void GpuDevice::unary_gradient(UnaryOp op, DType dtype, std::int64_t size, const void* x,
                               const void* y, const void* dy, void* dx) const {
  const gpu::Number number = number_of("unary_gradient", dtype);
  if (size <= 0) return;
  const Context::Current current(context_);
  launch(context_, "openrnn_unary_gradient", for_elements(size),
         gpu::UnaryGradientArguments{static_cast<gpu::Unary>(op), number, size, x, y, dy, dx});
}

void GpuDevice::binary(BinaryOp op, DType dtype, std::int64_t size, const void* a, const void* b,
                       void* c) const {
  const gpu::Number number = number_of("binary", dtype);
  if (size <= 0) return;
  const Context::Current current(context_);
  launch(context_, "openrnn_binary", for_elements(size),
         gpu::BinaryArguments{static_cast<gpu::Binary>(op), number, size, a, b, c});
}

void GpuDevice::accumulate(DType dtype, std::int64_t size, const void* x, void* y) const {
  binary(BinaryOp::kAdd, dtype, size, y, x, y);
}

void GpuDevice::scale(DType dtype, std::int64_t size, double factor, const void* x, void* y) const {
  const gpu::Number number = number_of("scale", dtype);
  if (size <= 0) return;
  const Context::Current current(context_);
  launch(context_, "openrnn_scale", for_elements(size),
         gpu::ScaleArguments{number, size, factor, x, y});
}

void GpuDevice::clip(const ClipArgs& args) const {
  const gpu::Number number = number_of("clip", args.dtype);
  if (args.size <= 0) return;
  const Context::Current current(context_);
  launch(context_, "openrnn_clip", for_elements(args.size),
         gpu::ClipArguments{number, args.size, args.low, args.high, args.x, args.dy, args.out});
}

void GpuDevice::fill(DType dtype, std::int64_t size, double factor, DType scalar_dtype,
                     const void* scalar, void* y) const {
  const gpu::Number number = number_of("fill", dtype);
  const gpu::Number scalar_number = scalar ? number_of("fill", scalar_dtype) : number;
  if (size <= 0) return;
  const Context::Current current(context_);
  launch(context_, "openrnn_fill", for_elements(size),
         gpu::FillArguments{number, scalar_number, size, factor, scalar, y});
}

void GpuDevice::convert(std::int64_t size, DType from_dtype, const void* from, DType to_dtype,
                        void* to) const {
  const gpu::Number from_number = number_of("convert", from_dtype);
  const gpu::Number to_number = number_of("convert", to_dtype);
  if (size <= 0) return;
  const Context::Current current(context_);
  launch(context_, "openrnn_convert", for_elements(size),
         gpu::ConvertArguments{from_number, to_number, size, from, to});
}

}  // namespace openrnn::cudnn
