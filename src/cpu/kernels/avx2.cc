// The kernels for x86-64 with AVX2, FMA and F16C.
#include "cpu/kernels/kernels.h"

#if defined(__AVX2__)
#include <immintrin.h>

namespace openrnn::cpu::avx2 {
#include "cpu/kernels/vec_avx2.h"
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
}  // namespace openrnn::cpu::avx2

namespace openrnn::cpu {
const KernelTable* avx2_kernels() {
  static constexpr KernelTable kTable = avx2::table_named("avx2");
  return &kTable;
}
}  // namespace openrnn::cpu

#else
namespace openrnn::cpu {
const KernelTable* avx2_kernels() { return nullptr; }
}  // namespace openrnn::cpu
#endif
