// The kernels of AVX-512 with its instructions for products of bfloat16 (BF16) and bytes (VNNI).
#include "cpu/kernels/kernels.h"

#if defined(__AVX512BF16__) && defined(__AVX512VNNI__)
#include <immintrin.h>

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns about the undefined vectors of its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace openrnn::cpu::avx512_dot {
#include "cpu/kernels/vec_avx512.h"
// The bodies build on the vector type above.
#include "cpu/kernels/body/math_body.h"
#include "cpu/kernels/body/tile_body.h"
// Products in register tiles.
#include "cpu/kernels/body/product_body.h"
// What the operations of a product do with rows and elements.
#include "cpu/kernels/body/operand_body.h"
// What finishes units in halves.
#include "cpu/kernels/cell/finishing_body.h"
// The cells build on the products.
#include "cpu/kernels/body/backward_body.h"
#include "cpu/kernels/body/forward_body.h"
#include "cpu/kernels/cell/cell_bodies.h"
// The table lists them all.
#include "cpu/kernels/body/table_body.h"
}  // namespace openrnn::cpu::avx512_dot

namespace openrnn::cpu {
const DotTable* avx512_dot_kernels() {
  static constexpr DotTable kTable{avx512_dot::dot_table(),
                                   avx512_dot::forward_table<avx512_dot::F32, avx512_dot::Int8>()};
  return &kTable;
}
}  // namespace openrnn::cpu

#else
namespace openrnn::cpu {
const DotTable* avx512_dot_kernels() { return nullptr; }
}  // namespace openrnn::cpu
#endif
