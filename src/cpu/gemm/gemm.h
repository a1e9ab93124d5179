// Products and elementwise functions with the same bits on every machine.
#pragma once

#include "openrnn/base.h"

namespace openrnn::cpu {

/// C[m, n] = sum over k of op(A)[m, k] op(B)[k, n] in the order of sum_order.h, added to the old C
/// when accumulating; bias[n] is added last. All row-major with leading dimensions in elements;
/// op(A) is [m, k], op(B) [k, n]. float16 and bfloat16 are widened, computed in float32 and
/// rounded once at the end (the old C and the bias are stored so too).
struct GemmArgs {
  DType dtype = DType::kFloat32;
  bool trans_a = false;  // A is stored [k, m]
  bool trans_b = false;  // B is stored [n, k]
  std::int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  std::int64_t lda = 0;
  const void* b = nullptr;
  std::int64_t ldb = 0;
  void* c = nullptr;
  std::int64_t ldc = 0;
  const void* bias = nullptr;  // [n]; null: none
  bool accumulate = false;     // begins with the old C; not together with bias
};

/// Runs on num_threads() threads; its bits depend neither on them nor on the instruction set. C
/// overlaps neither A nor B. Throws: ArgumentError for a dtype that is not floating, a negative
/// size, or bias together with accumulate.
void gemm(const GemmArgs& args);

/// y[i] = f(x[i]) for `size` elements of float32 or float64; x may be y. At most 2 ulp of error;
/// results below the smallest normal number are 0. Throws: ArgumentError for another dtype.
enum class Unary : std::uint8_t { kExp, kTanh, kSigmoid };
void apply(Unary function, DType dtype, const void* x, void* y, std::int64_t size);

}  // namespace openrnn::cpu
