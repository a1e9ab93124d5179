#include "cudnn/gpu/check.h"

#include <array>

#include "base/message.h"
#include "openrnn/base.h"

namespace openrnn::cudnn {
namespace {

std::string_view remedy(CUresult result) {
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "; use a smaller batch or time, or free other memory of the GPU";
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return "; the driver is too old for this GPU or this build: install a newer one";
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
      return "; an earlier operation on the GPU failed, and the process must be restarted";
    default:
      return "";
  }
}

GpuFault fault_of(cudnnStatus_t status) {
  if (CUDNN_STATUS_CATEGORY(static_cast<int>(status)) == CUDNN_STATUS_NOT_SUPPORTED) {
    return GpuFault::kRefused;
  }
  const bool no_room = status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                       status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
  return no_room ? GpuFault::kNoRoom : GpuFault::kOther;
}

std::string last_words(const CudnnApi& cudnn) {
  if (!cudnn.last_error) return {};
  std::array<char, 512> text{};
  cudnn.last_error(text.data(), text.size() - 1);
  return text[0] ? message(" (", text.data(), ")") : std::string();
}

}  // namespace

void check(CUresult result, std::string_view call) {
  if (result == CUDA_SUCCESS) return;
  const char *name = nullptr, *text = nullptr;
  libraries().driver.error_name(result, &name);
  libraries().driver.error_string(result, &text);
  throw GpuError(result == CUDA_ERROR_OUT_OF_MEMORY ? GpuFault::kNoRoom : GpuFault::kOther,
                 message("[", call, "] the driver answered ", name ? name : "an unknown error",
                         " (", text ? text : "no text", "), expected success", remedy(result)));
}

void check(cublasStatus_t status, std::string_view call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const char* text = libraries().cublas.status_string(status);
  throw GpuError(status == CUBLAS_STATUS_ALLOC_FAILED ? GpuFault::kNoRoom : GpuFault::kOther,
                 message("[", call, "] cuBLAS answered ", text ? text : "an unknown status",
                         ", expected success"));
}

void check(cudnnStatus_t status, std::string_view call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const CudnnApi& cudnn = libraries().cudnn;
  const char* name = cudnn.error_string(status);
  const GpuFault fault = fault_of(status);
  throw GpuError(fault, message("[", call, "] cuDNN answered ", name ? name : "unknown status",
                                last_words(cudnn), ", expected success",
                                fault == GpuFault::kRefused ? "; device='cpu' can run it" : ""));
}

}  // namespace openrnn::cudnn
