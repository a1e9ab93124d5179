// The kernels for 64-bit ARM.
#include "cpu/kernels/kernels.h"

#if defined(__aarch64__)
#include <arm_neon.h>

namespace openrnn::cpu::neon {
#include "cpu/kernels/vec_neon.h"
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
}  // namespace openrnn::cpu::neon

namespace openrnn::cpu {
const KernelTable* neon_kernels() {
  static constexpr KernelTable kTable = neon::table_named("neon");
  return &kTable;
}
}  // namespace openrnn::cpu

#else
namespace openrnn::cpu {
const KernelTable* neon_kernels() { return nullptr; }
}  // namespace openrnn::cpu
#endif
