// The functions of cuBLAS that are used.
#pragma once

#include <cublas_v2.h>

#include <string>

namespace openrnn::cudnn {

struct CublasApi {
  decltype(&cublasCreate) create = nullptr;
  decltype(&cublasDestroy) destroy = nullptr;
  decltype(&cublasSetStream) set_stream = nullptr;
  decltype(&cublasSetMathMode) set_math_mode = nullptr;
  decltype(&cublasSetWorkspace) set_workspace = nullptr;
  decltype(&cublasGetStatusString) status_string = nullptr;
  decltype(&cublasGemmEx_64) gemm_64 = nullptr;
};

/// Opens libcublas.so.13. What is wrong; empty when nothing is.
std::string open_cublas(CublasApi& api);

}  // namespace openrnn::cudnn
