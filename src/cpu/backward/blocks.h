// Products with weights that L2 does not hold.
#pragma once

#include "cpu/pack/packed.h"

namespace openrnn::cpu {

/// Rows of a product with packed weights: c[i] (+)= a[i] W for `rows` rows of `columns` columns.
template <class T>
struct RowsProduct {
  const T** a;
  std::int64_t rows;
  bool accumulate;
  T* const* c;
  std::int64_t columns;
};

/// Where the panels of `w` would not stay in L2, multiplies all but the last block of k into c, so
/// that each block is read once from memory and then by all rows from L2. Moves `w` and the rows
/// of a on to the last block, and returns whether c holds the beginning of its sums.
template <class T>
bool multiply_in_blocks(const CpuPacked<T>& packed, Panels<T>& w,
                        const RowsProduct<T>& call) noexcept;

extern template bool multiply_in_blocks<float>(const CpuPacked<float>&, Panels<float>&,
                                               const RowsProduct<float>&) noexcept;
extern template bool multiply_in_blocks<double>(const CpuPacked<double>&, Panels<double>&,
                                                const RowsProduct<double>&) noexcept;

}  // namespace openrnn::cpu
