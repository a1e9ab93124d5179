// The kernels for x86-64 with AVX-512 F, VL, DQ and BW.
#include "cpu/kernels/kernels.h"

#if defined(__AVX512F__)
#include <immintrin.h>

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns about the undefined vectors of its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace openrnn::cpu::avx512 {
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
}  // namespace openrnn::cpu::avx512

namespace openrnn::cpu {
namespace {
constexpr KernelTable variant(const char* name, const TileTable* (*tiles)()) {
  KernelTable table = avx512::table_named(name);
  table.dots = avx512_dot_kernels;
  table.tiles = tiles;
  return table;
}
}  // namespace

const KernelTable* avx512_kernels() {
  static constexpr KernelTable kTable = variant("avx512", nullptr);
  return &kTable;
}
const KernelTable* avx512_amx_kernels() {
  static constexpr KernelTable kTable = variant("amx", amx_kernels);
  return &kTable;
}
const KernelTable* avx512_amx_emulated_kernels() {
  static constexpr KernelTable kTable = variant("amx_emulated", amx_emulated_kernels);
  return &kTable;
}
}  // namespace openrnn::cpu

#else
namespace openrnn::cpu {
const KernelTable* avx512_kernels() { return nullptr; }
const KernelTable* avx512_amx_kernels() { return nullptr; }
const KernelTable* avx512_amx_emulated_kernels() { return nullptr; }
}  // namespace openrnn::cpu
#endif
