// A large product in passes over k, each of whole spans: a pass packs B (and A, if it is by k),
// then multiplies blocks of rows.
//
// | what     | shape                                                   |
// |----------|---------------------------------------------------------|
// | a        | [m] pointers to rows of k, or [k] pointers to rows of m |
// | b        | [k] pointers to rows of n, or [n] pointers to rows of k |
// | c        | [m] pointers to rows of n                               |
// | packed a | [group of 16 m][k][16]                                  |
// | packed b | [panel][k][4][lanes]                                    |
#pragma once

#include <array>

#include "cpu/memory/block.h"
#include "cpu/pack/panels.h"

namespace openrnn::cpu {

/// Columns [n0, n1) of a product that rows [m0, m1) have: c[m][n] = sum over k of A[m, k] B[k, n]
/// in the order of sum_order.h. Matrices are lists of row pointers, so rows may lie anywhere.
template <class T>
struct ProductSide {
  std::int64_t m0 = 0, m1 = 0, n0 = 0, n1 = 0;
  const T* const* b = nullptr;
  bool b_by_n = false;  // b[n] points at k = 0; else b[k] points at n = 0
  T* const* c = nullptr;
  const T* bias = nullptr;  // [n]
};

/// One A with up to two B, so that A is packed once for both; a thread's part of its rows. A row
/// range lies inside or outside the rows of each side, never across their end.
template <class T>
struct BigProduct {
  std::array<Range, 3> rows{};
  std::int64_t k = 0;
  const T* const* a = nullptr;
  bool a_by_k = false;  // a[k] points at m = 0; else a[m] points at k = 0
  std::array<ProductSide<T>, 2> sides{};
  bool accumulate = false;  // C and sums begin with what they hold
  T* sums = nullptr;        // [m]: the sums of A over k, for a_by_k; null: not wanted
  /// How many k each group has, whose spans begin with it; all of them 1 or more. Null: one of k.
  const std::int64_t* groups = nullptr;
};

/// Scratch memory of one thread for `columns` columns (those of both sides) at once, and at most
/// `k` k in `groups` groups.
template <class T>
struct ProductScratch {
  std::int64_t columns;  // whole panels
  T* a;
  T* b;
  T* bias;
  const T** a_rows;
  static ProductScratch carve(Carver& carver, std::int64_t columns, std::int64_t k,
                              std::int64_t groups = 1);
};

template <class T>
void big_product(const Kernels<T>& kernels, const BigProduct<T>& call,
                 const ProductScratch<T>& scratch) noexcept;

extern template struct ProductScratch<float>;
extern template struct ProductScratch<double>;
extern template void big_product<float>(const Kernels<float>&, const BigProduct<float>&,
                                        const ProductScratch<float>&) noexcept;
extern template void big_product<double>(const Kernels<double>&, const BigProduct<double>&,
                                         const ProductScratch<double>&) noexcept;

}  // namespace openrnn::cpu
