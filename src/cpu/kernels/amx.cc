// The kernels of AMX: products of bfloat16 in tiles, everything else with AVX-512.
#include "cpu/kernels/kernels.h"

// clang 14 spells the first one differently.
#if (defined(__AMX_BF16__) || defined(__AMXBF16__)) && defined(__AVX512BF16__)
#include <immintrin.h>

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns about the undefined vectors of its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace openrnn::cpu::amx {
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
#include "cpu/kernels/body/tile_amx.h"
// Rows and columns as tiles.
#include "cpu/kernels/body/amx_pack_body.h"
// The products in tiles.
#include "cpu/kernels/body/amx_tile_body.h"
// The steps and the table.
#include "cpu/kernels/body/amx_body.h"
}  // namespace openrnn::cpu::amx

namespace openrnn::cpu {
const TileTable* amx_kernels() {
  static constexpr TileTable kTable{amx::tiled_table<amx::Amx>(), amx::tiled_table<amx::Bf16x3>()};
  return &kTable;
}
}  // namespace openrnn::cpu

#else
namespace openrnn::cpu {
const TileTable* amx_kernels() { return nullptr; }
}  // namespace openrnn::cpu
#endif
