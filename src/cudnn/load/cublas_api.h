// The functions of cuBLAS that are used.
#pragma once

#include <cublas_v2.h>

#include <cstdint>
#include <string>

namespace openrnn::cudnn {

/// cublasGemmEx_64; the header has two functions of that name for C++.
using CublasGemm = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t,
                                      std::int64_t m, std::int64_t n, std::int64_t k,
                                      const void* alpha, const void* a, cudaDataType,
                                      std::int64_t lda, const void* b, cudaDataType,
                                      std::int64_t ldb, const void* beta, void* c, cudaDataType,
                                      std::int64_t ldc, cublasComputeType_t, cublasGemmAlgo_t);

struct CublasApi {
  decltype(&cublasCreate) create = nullptr;
  decltype(&cublasDestroy) destroy = nullptr;
  decltype(&cublasSetStream) set_stream = nullptr;
  decltype(&cublasSetMathMode) set_math_mode = nullptr;
  decltype(&cublasSetWorkspace) set_workspace = nullptr;
  decltype(&cublasGetStatusString) status_string = nullptr;
  CublasGemm gemm = nullptr;
};

/// Opens libcublas.so.13. What is wrong; empty when nothing is.
std::string open_cublas(CublasApi& api);

}  // namespace openrnn::cudnn
