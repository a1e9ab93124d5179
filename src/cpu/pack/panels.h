// Packs matrices into the panels that the kernels read.
//
// | what              | shape                                             |
// |-------------------|---------------------------------------------------|
// | a panel           | [k][width][L], L lanes of a vector                |
// | source by rows    | [k] pointers to rows of columns                   |
// | source by columns | [L] pointers to columns of k values               |
// | in fewer bits     | [elements][width][L], see Arithmetic in kernels.h |
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/kernels/kernels.h"
#include "cpu/tuning/tuning.h"

namespace openrnn::cpu {

/// The exact kernels of one element type.
template <class T>
const Kernels<T>& kernels_of(const KernelTable& table) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return table.f32[kExact];
  } else {
    return table.f64;
  }
}

/// [first, last).
struct Range {
  std::int64_t first = 0, last = 0;
  std::int64_t count() const { return last - first; }
};

/// The units, of `all`, whose `gates` columns each lie in the panels.
template <class T>
Range units_of(const Panels<T>& w, std::int64_t gates, std::int64_t lanes, std::int64_t all) {
  return {std::min(all, w.first / gates * lanes), std::min(all, w.last / gates * lanes)};
}

inline std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Elements of `columns` columns in panels of kColumnWidth vectors.
inline std::int64_t column_panels_size(std::int64_t columns, std::int64_t k, std::int64_t lanes) {
  return divide_up(columns, lanes * kColumnWidth) * kColumnWidth * lanes * k;
}

/// One panel from a matrix whose rows are k: out[kk][j] = rows[kk][column + j], zero beyond
/// `columns`.
template <class T>
void pack_panel_of_rows(const T* const* rows, std::int64_t k, std::int64_t column,
                        std::int64_t columns, std::int64_t panel_columns, T* out);

/// One vector of a panel from a matrix whose rows are the columns: out[kk * step + lane] =
/// rows[lane][kk] for `count` lanes, zero for the others.
template <class T>
void pack_vector_of_columns(const T* const* rows, std::int64_t count, std::int64_t lanes,
                            std::int64_t k, std::int64_t step, T* out);

/// A panel of values [k][columns] as one of `arithmetic`, in whose form [elements][lanes] each
/// vector of columns stands beside the others of the panel.
void narrow_panel(Arithmetic arithmetic, const float* panel, std::int64_t k, std::int64_t columns,
                  std::int64_t lanes, float* out);

extern template void pack_panel_of_rows<float>(const float* const*, std::int64_t, std::int64_t,
                                               std::int64_t, std::int64_t, float*);
extern template void pack_panel_of_rows<double>(const double* const*, std::int64_t, std::int64_t,
                                                std::int64_t, std::int64_t, double*);
extern template void pack_vector_of_columns<float>(const float* const*, std::int64_t, std::int64_t,
                                                   std::int64_t, std::int64_t, float*);
extern template void pack_vector_of_columns<double>(const double* const*, std::int64_t,
                                                    std::int64_t, std::int64_t, std::int64_t,
                                                    double*);

}  // namespace openrnn::cpu
