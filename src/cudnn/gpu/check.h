// Answers of the driver, cuBLAS and cuDNN as errors of ours.
#pragma once

#include <string_view>

#include "cudnn/load/libraries.h"
#include "openrnn/base.h"

namespace openrnn::cudnn {

/// Throws: EngineError naming `call`, the answer and, where one is known, the remedy.
void check(CUresult result, std::string_view call);
void check(cublasStatus_t status, std::string_view call);
void check(cudnnStatus_t status, std::string_view call);

}  // namespace openrnn::cudnn
