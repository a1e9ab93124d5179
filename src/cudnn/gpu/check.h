// Answers of the driver, cuBLAS and cuDNN as errors of ours.
#pragma once

#include <string_view>

#include "cudnn/load/libraries.h"
#include "openrnn/base.h"

namespace openrnn::cudnn {

/// What an answer leaves open.
enum class GpuFault : std::uint8_t {
  /// This way of computing does not exist; another one may.
  kRefused,
  /// There was no room for it.
  kNoRoom,
  /// Anything else. Errors of the work itself are among them, after which the GPU answers nothing
  /// but errors until the process ends.
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
