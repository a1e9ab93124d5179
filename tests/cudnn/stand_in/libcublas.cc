// cuBLAS's product over the pretended GPU. It adds in another order than the library's own product
// does, as the real one may.
#include <cublas_v2.h>

#include <algorithm>

#include "cudnn/stand_in/machine.h"
#include "openrnn/base.h"

namespace {

using namespace openrnn::stand_in;  // NOLINT: this file is that namespace's face

struct Handle {
  cudaStream_t stream = nullptr;
};

struct Product {
  bool transpose_a, transpose_b;
  std::int64_t m, n, k;
  const void *a, *b;
  std::int64_t lda, ldb;
  void* c;
  std::int64_t ldc;
  double alpha, beta;
};

float widen(openrnn::Half value) { return openrnn::to_float(value); }
float widen(float value) { return value; }
double widen(double value) { return value; }

// Columns first: element (row, col) lies at col * ld + row.
std::size_t reach(std::int64_t rows, std::int64_t cols, std::int64_t ld) {
  return static_cast<std::size_t>((cols - 1) * ld + rows);
}

template <class T, class C>
void run(const Product& p) {
  if (p.m == 0 || p.n == 0) return;
  const bool products = p.k > 0 && p.alpha != 0.0;
  const T* a = nullptr;
  const T* b = nullptr;
  if (products) {
    a = host_of<T>(p.a, p.transpose_a ? reach(p.k, p.m, p.lda) : reach(p.m, p.k, p.lda));
    b = host_of<T>(p.b, p.transpose_b ? reach(p.n, p.k, p.ldb) : reach(p.k, p.n, p.ldb));
  }
  T* c = host_of<T>(p.c, reach(p.m, p.n, p.ldc));
  for (std::int64_t col = 0; col < p.n; ++col) {
    for (std::int64_t row = 0; row < p.m; ++row) {
      C sum = 0;
      for (std::int64_t k = products ? p.k - 1 : -1; k >= 0; --k) {
        const C left = widen(a[p.transpose_a ? row * p.lda + k : k * p.lda + row]);
        const C right = widen(b[p.transpose_b ? k * p.ldb + col : col * p.ldb + k]);
        sum += left * right;
      }
      T& to = c[col * p.ldc + row];
      sum *= static_cast<C>(p.alpha);
      if (p.beta != 0.0) sum += static_cast<C>(p.beta) * widen(to);
      if constexpr (std::is_same_v<T, openrnn::Half>) {
        to = openrnn::to_half(sum);
      } else {
        to = sum;
      }
    }
  }
}

bool are_sizes_right(const Product& p) {
  return p.m >= 0 && p.n >= 0 && p.k >= 0 &&
         p.lda >= std::max<std::int64_t>(1, p.transpose_a ? p.k : p.m) &&
         p.ldb >= std::max<std::int64_t>(1, p.transpose_b ? p.n : p.k) &&
         p.ldc >= std::max<std::int64_t>(1, p.m);
}

double scalar(const void* host, bool wide) {
  return wide ? *static_cast<const double*>(host)
              : static_cast<double>(*static_cast<const float*>(host));
}

}  // namespace

extern "C" {

STAND_IN_API cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (!has_context()) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = reinterpret_cast<cublasHandle_t>(new Handle);
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN_API cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete reinterpret_cast<Handle*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN_API cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  reinterpret_cast<Handle*>(handle)->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN_API cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) {
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN_API cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN_API const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS (stand-in)";
}

STAND_IN_API cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t transa,
                                            cublasOperation_t transb, int64_t m, int64_t n,
                                            int64_t k, const void* alpha, const void* a,
                                            cudaDataType a_type, int64_t lda, const void* b,
                                            cudaDataType b_type, int64_t ldb, const void* beta,
                                            void* c, cudaDataType c_type, int64_t ldc,
                                            cublasComputeType_t compute, cublasGemmAlgo_t) {
  if (!has_context() || !broken().empty()) return CUBLAS_STATUS_EXECUTION_FAILED;
  // Another stream than the one of all work would be a mistake here.
  if (!reinterpret_cast<Handle*>(handle)->stream) return CUBLAS_STATUS_INVALID_VALUE;
  const bool wide = a_type == CUDA_R_64F;
  const Product product{
      transa != CUBLAS_OP_N, transb != CUBLAS_OP_N, m, n, k, a, b, lda, ldb, c, ldc,
      scalar(alpha, wide),   scalar(beta, wide)};
  if (!are_sizes_right(product)) return CUBLAS_STATUS_INVALID_VALUE;
  if (b_type != a_type || c_type != a_type) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (a_type == CUDA_R_64F && compute == CUBLAS_COMPUTE_64F_PEDANTIC) {
    enqueue([product] { run<double, double>(product); });
  } else if (a_type == CUDA_R_32F && compute == CUBLAS_COMPUTE_32F_PEDANTIC) {
    enqueue([product] { run<float, float>(product); });
  } else if (a_type == CUDA_R_16F && compute == CUBLAS_COMPUTE_32F) {
    enqueue([product] { run<openrnn::Half, float>(product); });
  } else {
    return CUBLAS_STATUS_NOT_SUPPORTED;  // or arithmetic that the engine does not mean
  }
  return broken().empty() ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
