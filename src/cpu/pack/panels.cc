#include "cpu/pack/panels.h"

#include <algorithm>
#include <type_traits>

namespace openrnn::cpu {
namespace {

using Four = float __attribute__((vector_size(16)));

Four load(const float* p) {
  Four v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
void store(Four v, float* p) { __builtin_memcpy(p, &v, sizeof(v)); }

// Transposes four values of four rows into four vectors of a panel.
void transpose4x4(const float* const* rows, std::int64_t k, std::int64_t step, float* out) {
  const Four a = load(rows[0] + k), b = load(rows[1] + k);
  const Four c = load(rows[2] + k), d = load(rows[3] + k);
  const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
             cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  store(__builtin_shufflevector(ab, cd, 0, 1, 4, 5), out);
  store(__builtin_shufflevector(ab, cd, 2, 3, 6, 7), out + step);
  const Four ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7),
             cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store(__builtin_shufflevector(ab2, cd2, 0, 1, 4, 5), out + 2 * step);
  store(__builtin_shufflevector(ab2, cd2, 2, 3, 6, 7), out + 3 * step);
}

// Whole cache lines of four rows at a time: rows of a power of two of columns share few sets of L1,
// and would evict each other. Those of two lines later are fetched meanwhile: so many streams are
// too many for the hardware prefetcher. Returns how many k are done.
std::int64_t transpose_lines(const float* const* rows, std::int64_t lanes, std::int64_t k,
                             std::int64_t step, float* out) {
  constexpr std::int64_t kLine = 16, kAhead = 2 * kLine;
  std::int64_t first = 0;
  for (; first + kLine <= k; first += kLine) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      __builtin_prefetch(rows[lane] + first + kAhead);
      __builtin_prefetch(out + (first + kAhead + lane) * step, 1);
    }
    for (std::int64_t lane = 0; lane < lanes; lane += 4) {
      for (std::int64_t kk = first; kk < first + kLine; kk += 4) {
        transpose4x4(rows + lane, kk, step, out + kk * step + lane);
      }
    }
  }
  return first;
}

}  // namespace

template <class T>
void pack_panel_of_rows(const T* const* rows, std::int64_t k, std::int64_t column,
                        std::int64_t columns, std::int64_t panel_columns, T* out) {
  constexpr std::int64_t kLine = 64 / sizeof(T);
  const std::int64_t count = std::min(panel_columns, columns - column);
  for (std::int64_t kk = 0; kk < k; ++kk, out += panel_columns) {
    // Rows lie too far apart for the hardware prefetcher.
    const T* const ahead = rows[std::min(kk + kRowsAhead, k - 1)] + column;
    for (std::int64_t i = 0; i < count; i += kLine) __builtin_prefetch(ahead + i);
    std::int64_t i = 0;
    // Of a fixed size: a few moves and no call.
    for (; i + kLine <= count; i += kLine) {
      __builtin_memcpy(out + i, rows[kk] + column + i, kLine * sizeof(T));
    }
    std::copy(rows[kk] + column + i, rows[kk] + column + count, out + i);
    std::fill(out + count, out + panel_columns, T{0});
  }
}

template <class T>
void pack_vector_of_columns(const T* const* rows, std::int64_t count, std::int64_t lanes,
                            std::int64_t k, std::int64_t step, T* out) {
  std::int64_t done = 0;
  if constexpr (std::is_same_v<T, float>) {
    if (count == lanes && lanes % 4 == 0) done = transpose_lines(rows, lanes, k, step, out);
  }
  for (std::int64_t kk = done; kk < k; ++kk) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      out[kk * step + lane] = lane < count ? rows[lane][kk] : T{0};
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
