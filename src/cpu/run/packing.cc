#include "cpu/run/packing.h"

#include <algorithm>

namespace openrnn::cpu {
namespace {

// A fixed number of lanes lets the compiler keep the row pointers and copy in blocks.
template <int L, class T>
void pack_lanes(const T* const* rows, std::int64_t k, std::int64_t step, T* out) {
  const T* row[L];
  std::copy(rows, rows + L, row);
  for (std::int64_t kk = 0; kk < k; ++kk, out += step) {
    for (int lane = 0; lane < L; ++lane) out[lane] = row[lane][kk];
  }
}

}  // namespace

template <class T>
void pack_panel_of_rows(const T* const* rows, std::int64_t k, std::int64_t column,
                        std::int64_t columns, std::int64_t panel_columns, T* out) {
  const std::int64_t count = std::min(panel_columns, columns - column);
  for (std::int64_t kk = 0; kk < k; ++kk, out += panel_columns) {
    std::copy(rows[kk] + column, rows[kk] + column + count, out);
    std::fill(out + count, out + panel_columns, T{0});
  }
}

template <class T>
void pack_vector_of_columns(const T* const* rows, std::int64_t count, std::int64_t lanes,
                            std::int64_t k, std::int64_t step, T* out) {
  if (count == lanes && lanes == 16) return pack_lanes<16>(rows, k, step, out);
  if (count == lanes && lanes == 8) return pack_lanes<8>(rows, k, step, out);
  for (std::int64_t kk = 0; kk < k; ++kk, out += step) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      out[lane] = lane < count ? rows[lane][kk] : T{0};
    }
  }
}

template void pack_panel_of_rows<float>(const float* const*, std::int64_t, std::int64_t,
                                        std::int64_t, std::int64_t, float*);
template void pack_panel_of_rows<double>(const double* const*, std::int64_t, std::int64_t,
                                         std::int64_t, std::int64_t, double*);
template void pack_vector_of_columns<float>(const float* const*, std::int64_t, std::int64_t,
                                            std::int64_t, std::int64_t, float*);
template void pack_vector_of_columns<double>(const double* const*, std::int64_t, std::int64_t,
                                             std::int64_t, std::int64_t, double*);

}  // namespace openrnn::cpu
