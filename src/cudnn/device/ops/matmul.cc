#include "base/message.h"
#include "cudnn/device/gpu.h"
#include "cudnn/device/launch.h"

namespace openrnn::cudnn {
namespace {

// What a product of a dtype is computed in. COMPUTE_32F is exact float32 too: cuBLAS documents that
// it takes TF32 only where the handle's math mode (ours does not) or NVIDIA_TF32_OVERRIDE asks for
// it; "pedantic" would only keep it from its faster kernels. For float64 pedantic forbids
// emulation. float16 is summed in float, by tensor cores.
struct Types {
  cudaDataType_t data;
  cublasComputeType_t compute;
};

Types types_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return {CUDA_R_16F, CUBLAS_COMPUTE_32F};
    case DType::kFloat64:
      return {CUDA_R_64F, CUBLAS_COMPUTE_64F_PEDANTIC};
    default:
      return {CUDA_R_32F, CUBLAS_COMPUTE_32F};
  }
}

void check_arguments(const MatmulArgs& args) {
  if (args.dtype == DType::kBfloat16) number_of("matmul", args.dtype);  // throws
  if (!is_floating(args.dtype)) {
    throw ArgumentError(message("[matmul] dtype is ", dtype_name(args.dtype),
                                ", expected float16, float32 or float64"));
  }
  if (args.m < 0 || args.n < 0 || args.k < 0) {
    throw ArgumentError(message("[matmul] m, n, k are ", args.m, ", ", args.n, ", ", args.k,
                                ", expected 0 or more"));
  }
  if (args.bias && args.accumulate) {
    throw ArgumentError("[matmul] both bias and accumulate are given, expected one of them");
  }
}

cublasHandle_t make_handle(const Context& context) {
  const CublasApi& blas = libraries().cublas;
  cublasHandle_t handle = nullptr;
  check(blas.create(&handle), "cublasCreate");
  check(blas.set_stream(handle, context.stream()), "cublasSetStream");
  // Split sums of float16 must not be added in float16.
  const auto mode = static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                              CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
  check(blas.set_math_mode(handle, mode), "cublasSetMathMode");
  return handle;
}

// What cuBLAS recommends: 32 MiB from compute capability 9.0 on, 4 MiB before.
std::size_t workspace_bytes(const Context& context) {
  return std::size_t{context.capability() >= 90 ? 32u : 4u} << 20;
}

}  // namespace

// The start of the sums is put into c first; beta 0 does not read c.
void GpuDevice::matmul(const MatmulArgs& args) const {
  check_arguments(args);
  if (args.m == 0 || args.n == 0) return;
  const std::size_t row = static_cast<std::size_t>(args.n) * dtype_size(args.dtype);
  if (args.bias) {
    copy({.count = args.m,
          .bytes = row,
          .from = args.bias,
          .from_stride = 0,
          .to = args.c,
          .to_stride = row});
  } else if (args.k == 0 && !args.accumulate) {
    zero(args.c, static_cast<std::size_t>(args.m) * row);
  }
  if (args.k > 0) product(args, args.bias || args.accumulate ? 1.0 : 0.0);
}

// cuBLAS is column-major, so a row-major array is its transpose there: c' = b' a'.
void GpuDevice::product(const MatmulArgs& args, double beta) const {
  const Types types = types_of(args.dtype);
  const double one = 1.0;
  const auto one_float = static_cast<float>(one), beta_float = static_cast<float>(beta);
  const bool wide = args.dtype == DType::kFloat64;
  const auto operation = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const Context::Current current(context_);
  const std::lock_guard lock(blas_mutex_);
  if (!blas_) {
    // Its own workspace, so that cuBLAS keeps one order of sums whatever else runs. Set after the
    // stream, as setting that resets it.
    const std::size_t bytes = workspace_bytes(context_);
    const cublasHandle_t made = make_handle(context_);
    blas_workspace_ = context_.allocate(bytes);
    check(libraries().cublas.set_workspace(made, blas_workspace_.get(), bytes),
          "cublasSetWorkspace");
    blas_ = made;
  }
  check(libraries().cublas.gemm_64(blas_, operation(args.transpose_b), operation(args.transpose_a),
                                   args.n, args.m, args.k,
                                   wide ? static_cast<const void*>(&one) : &one_float, args.b,
                                   types.data, args.transpose_b ? args.k : args.n, args.a,
                                   types.data, args.transpose_a ? args.m : args.k,
                                   wide ? static_cast<const void*>(&beta) : &beta_float, args.c,
                                   types.data, args.n, types.compute, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
}

}  // namespace openrnn::cudnn
