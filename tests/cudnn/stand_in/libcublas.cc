// cuBLAS's functions of the stand-in GPU.
#include <cublas_v2.h>

#include "cudnn/stand_in/machine.h"
#include "cudnn/stand_in/numbers.h"

namespace {

using namespace openrnn::stand_in;  // NOLINT: this file is that namespace's face

struct Handle {
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  bool has_workspace = false;
  Stream stream = 0;
};

Handle* inside(cublasHandle_t handle) { return reinterpret_cast<Handle*>(handle); }

struct Product {
  bool transpose_a, transpose_b;
  std::int64_t m, n, k, lda, ldb, ldc;
  double alpha, beta;
  cudaDataType type_a, type_b, type_c;
  std::uint64_t a, b, c;
  bool tf32;
};

std::int64_t columns_before(std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  return columns > 0 && rows > 0 ? (columns - 1) * stride + rows : 0;
}

void multiply(const Product& p) {
  const std::int64_t rows_a = p.transpose_a ? p.k : p.m, columns_a = p.transpose_a ? p.m : p.k;
  const std::int64_t rows_b = p.transpose_b ? p.n : p.k, columns_b = p.transpose_b ? p.k : p.n;
  const Numbers a(p.type_a, p.a, columns_before(rows_a, columns_a, p.lda));
  const Numbers b(p.type_b, p.b, columns_before(rows_b, columns_b, p.ldb));
  const Numbers c(p.type_c, p.c, columns_before(p.m, p.n, p.ldc));
  const auto seen = [&](double value) { return p.tf32 ? as_tf32(value) : value; };
  for (std::int64_t j = 0; j < p.n; ++j) {
    for (std::int64_t i = 0; i < p.m; ++i) {
      double sum = 0.0;
      for (std::int64_t l = 0; l < p.k; ++l) {
        sum += seen(a.get(p.transpose_a ? i * p.lda + l : l * p.lda + i)) *
               seen(b.get(p.transpose_b ? l * p.ldb + j : j * p.ldb + l));
      }
      // beta 0 does not read c.
      const double before = p.beta == 0.0 ? 0.0 : p.beta * c.get(j * p.ldc + i);
      c.set(j * p.ldc + i, p.alpha * sum + before);
    }
  }
}

// Of the documented combinations, those with one type for all three matrices.
bool is_known(cudaDataType type, cublasComputeType_t compute) {
  if (type == CUDA_R_64F) {
    return compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC;
  }
  return (type == CUDA_R_32F || type == CUDA_R_16F) &&
         (compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
          (type == CUDA_R_32F && compute == CUBLAS_COMPUTE_32F_FAST_TF32));
}

// Beside the mode there are flags in it; the variable goes before both.
bool takes_tf32(cublasHandle_t handle) {
  constexpr unsigned kModes = 0xF;
  const bool asked = (static_cast<unsigned>(inside(handle)->math) & kModes) ==
                     static_cast<unsigned>(CUBLAS_TF32_TENSOR_OP_MATH);
  return setting("NVIDIA_TF32_OVERRIDE", asked ? 1 : 0) != 0;
}

double scalar(const void* value, cublasComputeType_t compute) {
  return compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC
             ? *static_cast<const double*>(value)
             : static_cast<double>(*static_cast<const float*>(value));
}

}  // namespace

extern "C" {

STAND_IN_API cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (!has_context() || !is_whole("cublasCreate")) return CUBLAS_STATUS_NOT_INITIALIZED;
  // It allocates.
  if (may_call() != CaptureAnswer::kAllowed) return CUBLAS_STATUS_ALLOC_FAILED;
  *handle = reinterpret_cast<cublasHandle_t>(new Handle);
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN_API cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete reinterpret_cast<Handle*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN_API cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  inside(handle)->stream = reinterpret_cast<Stream>(stream);
  inside(handle)->has_workspace = false;  // as documented: back to the handle's own pool
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN_API cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* space,
                                                  std::size_t bytes) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  const auto address = reinterpret_cast<std::uint64_t>(space);
  if (address % 256 != 0 || !contains(address, bytes)) return CUBLAS_STATUS_INVALID_VALUE;
  inside(handle)->has_workspace = true;
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN_API cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t math) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  inside(handle)->math = math;
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN_API const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                               : "CUBLAS_STATUS of the stand-in";
}

STAND_IN_API cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t transpose_a,
                                            cublasOperation_t transpose_b, std::int64_t m,
                                            std::int64_t n, std::int64_t k, const void* alpha,
                                            const void* a, cudaDataType type_a, std::int64_t lda,
                                            const void* b, cudaDataType type_b, std::int64_t ldb,
                                            const void* beta, void* c, cudaDataType type_c,
                                            std::int64_t ldc, cublasComputeType_t compute,
                                            cublasGemmAlgo_t) {
  if (!handle || !has_context()) return CUBLAS_STATUS_NOT_INITIALIZED;
  // Without one of its own, what order the sums have depends on what else runs.
  if (!inside(handle)->has_workspace) return CUBLAS_STATUS_EXECUTION_FAILED;
  const bool ta = transpose_a != CUBLAS_OP_N, tb = transpose_b != CUBLAS_OP_N;
  if (m < 0 || n < 0 || k < 0 || lda < std::max<std::int64_t>(1, ta ? k : m) ||
      ldb < std::max<std::int64_t>(1, tb ? n : k) || ldc < std::max<std::int64_t>(1, m)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (type_a != type_b || type_a != type_c || !is_known(type_a, compute)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const bool tf32 = type_a == CUDA_R_32F && (compute == CUBLAS_COMPUTE_32F_FAST_TF32 ||
                                             (compute == CUBLAS_COMPUTE_32F && takes_tf32(handle)));
  const Product p{ta,
                  tb,
                  m,
                  n,
                  k,
                  lda,
                  ldb,
                  ldc,
                  scalar(alpha, compute),
                  scalar(beta, compute),
                  type_a,
                  type_b,
                  type_c,
                  reinterpret_cast<std::uint64_t>(a),
                  reinterpret_cast<std::uint64_t>(b),
                  reinterpret_cast<std::uint64_t>(c),
                  tf32};
  if (!is_whole("cublasGemmEx")) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (may_enqueue(inside(handle)->stream) != CaptureAnswer::kAllowed) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  enqueue(inside(handle)->stream, [p] { multiply(p); });
  return broken().empty() ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
