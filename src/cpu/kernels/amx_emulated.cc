// The functions of AMX on a processor that has AVX-512 alone: to repeat and to test them.
#include "cpu/kernels/kernels.h"

#if defined(__AVX512F__)
#include <immintrin.h>

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns about the undefined vectors of its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace openrnn::cpu::amx_emulated {
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
// What all tables have in common.
#include "cpu/kernels/body/table_body.h"
// The tile registers, and the bodies that use them.
#include "cpu/kernels/body/tile_emulated.h"
// Rows and columns as tiles.
#include "cpu/kernels/body/amx_pack_body.h"
// The products in tiles.
#include "cpu/kernels/body/amx_tile_body.h"
// The steps and the table.
#include "cpu/kernels/body/amx_body.h"
}  // namespace openrnn::cpu::amx_emulated

namespace openrnn::cpu {
const TileTable* amx_emulated_kernels() {
  static constexpr TileTable kTable{amx_emulated::tiled_table<amx_emulated::Amx>(),
                                    amx_emulated::tiled_table<amx_emulated::Bf16x3>()};
  return &kTable;
}
}  // namespace openrnn::cpu

#else
namespace openrnn::cpu {
const TileTable* amx_emulated_kernels() { return nullptr; }
}  // namespace openrnn::cpu
#endif
