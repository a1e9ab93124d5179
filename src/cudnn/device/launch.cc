#include "cudnn/device/launch.h"

#include "base/message.h"

namespace openrnn::cudnn {

gpu::Number number_of(const char* call, DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return gpu::Number::kHalf;
    case DType::kFloat32:
      return gpu::Number::kFloat;
    case DType::kFloat64:
      return gpu::Number::kDouble;
    case DType::kBfloat16:
      throw TypeError(message("[", call,
                              "] dtype is bfloat16 on a GPU, expected float16, float32 or float64; "
                              "device='cpu' has bfloat16"));
    default:
      throw TypeError(
          message("[", call, "] dtype is ", dtype_name(dtype), ", expected a floating dtype"));
  }
}

unsigned grid_blocks(const char* call, std::int64_t count) {
  constexpr std::int64_t kMost = 0x7FFFFFFF;
  if (count > kMost) {
    throw ArgumentError(
        message("[", call, "] ", count, " rows, expected at most ", kMost, " on a GPU"));
  }
  return static_cast<unsigned>(count);
}

}  // namespace openrnn::cudnn
