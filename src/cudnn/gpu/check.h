// Answers of the driver, cuBLAS and cuDNN as errors of ours.
#pragma once

#include <string_view>

#include "cudnn/load/libraries.h"

namespace openrnn::cudnn {

/// Throws: EngineError naming `call`, the answer and, where one is known, the remedy.
void check(CUresult result, std::string_view call);
void check(cublasStatus_t status, std::string_view call);
void check(cudnnStatus_t status, std::string_view call);

/// Whether cuDNN says that it cannot do a thing, rather than that it failed.
inline bool is_not_supported(cudnnStatus_t status) {
  return CUDNN_STATUS_CATEGORY(static_cast<int>(status)) == CUDNN_STATUS_NOT_SUPPORTED;
}

}  // namespace openrnn::cudnn
