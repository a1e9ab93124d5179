// Status codes of the driver, cuBLAS and cuDNN as our errors.
#pragma once

#include <string_view>

#include "cudnn/load/libraries.h"
#include "openrnn/base.h"

namespace openrnn::cudnn {

/// What a failure means for the caller.
enum class GpuFault : std::uint8_t {
  /// This algorithm is not supported; another one may be.
  kRefused,
  /// Out of memory.
  kNoRoom,
  /// Anything else. Errors of the work itself are among them, after which every call on the GPU
  /// fails until the process ends.
  kOther
};

class GpuError final : public EngineError {
 public:
  GpuError(GpuFault fault, const std::string& text) : EngineError(text), fault_(fault) {}
  GpuFault fault() const noexcept { return fault_; }

 private:
  GpuFault fault_;
};

/// Throws: GpuError naming `call`, the answer and, where one is known, the remedy.
void check(CUresult result, std::string_view call);
void check(cublasStatus_t status, std::string_view call);
void check(cudnnStatus_t status, std::string_view call);

}  // namespace openrnn::cudnn
