#include "cpu/pack/transposed.h"

#include "cpu/threading/share.h"

namespace openrnn::cpu {
namespace {

// Whose panels become rows: gate (first_gate + g) % gates of unit u is row g * units + u.
struct Rows {
  std::int64_t gates, first_gate, units;
};

// The square of `lanes` units and as many columns from `column` on: rows of `out`.
template <class T>
void transpose_square(const PackedMatrix<T>& from, std::int64_t vector, std::int64_t column,
                      std::int64_t units, std::int64_t step, T* out) {
  const std::int64_t lanes = from.lanes, row = from.width * lanes;
  const T* const first =
      from.data + vector / from.width * from.panel_size() + vector % from.width * lanes;
  const T* rows[kMostLanes] = {};
  const std::int64_t count = std::clamp<std::int64_t>(from.k - column, 0, lanes);
  for (std::int64_t i = 0; i < count; ++i) {
    rows[i] = first + (column + i) * row;
    __builtin_prefetch(rows[i] + lanes * row);
  }
  pack_vector_of_columns(rows, count, lanes, units, step, out);
}

template <class T>
void transpose(const PackedMatrix<T>& from, const Rows& rows, const PackedMatrix<T>& to, int member,
               int members) {
  const std::int64_t lanes = to.lanes, step = to.width * lanes;
  const Share panels(divide_up(to.vectors, to.width), 1, member, members);
  for (std::int64_t p = panels.first; p < panels.last; ++p) {
    T* const panel = to.data + p * to.panel_size();
    for (std::int64_t unit = 0; unit < rows.units; unit += lanes) {
      const std::int64_t units = std::min(lanes, rows.units - unit);
      // All gates of some columns lie side by side.
      for (std::int64_t v = 0; v < to.width; ++v) {
        for (std::int64_t g = 0; g < rows.gates; ++g) {
          const std::int64_t gate = (rows.first_gate + g) % rows.gates;
          transpose_square(from, unit / lanes * rows.gates + gate, p * step + v * lanes, units,
                           step, panel + (g * rows.units + unit) * step + v * lanes);
        }
      }
    }
  }
}

}  // namespace

template <class T>
T* transposed_in_gradient(const CpuPacked<T>& packed, std::int64_t layer, std::int64_t direction,
                          std::int64_t batch, T* dparams) {
  if (!dparams || batch <= kFewRows) return nullptr;
  std::int64_t elements = 0;
  T* first = nullptr;
  for (const ParamRegion& region : packed.layout().weights()) {
    if (region.layer != layer || region.direction != direction) continue;
    if (!first) first = dparams + region.offset;
    elements += region.size();
  }
  // Panels begin with a cache line.
  while (elements > 0 && reinterpret_cast<std::uintptr_t>(first) % 64 != 0) ++first, --elements;
  return elements >= transposed_size(packed.layer(layer, direction)) ? first : nullptr;
}

template <class T>
PackedLayer<T> with_transposed(const PackedLayer<T>& layer, T* memory, bool by_turns) {
  PackedLayer<T> result = layer;
  result.r_back.data = memory;
  result.r_n_back.data = memory + layer.r_back.size();
  result.proj_back.data = result.r_n_back.data + layer.r_n_back.size();
  T* const end = result.proj_back.data + layer.proj_back.size();
  result.w_back.data = by_turns ? end : memory;
  return result;
}

template <class T>
void transpose_recurrent(const RnnSpec& spec, const PackedLayer<T>& layer, int member,
                         int members) {
  transpose(layer.r, {recurrent_gates(spec), 0, spec.num_units}, layer.r_back, member, members);
  if (!spec.reset_after)
    transpose(layer.r_n, {1, 0, spec.num_units}, layer.r_n_back, member, members);
  if (!spec.projecting()) return;
  transpose(layer.proj, {1, 0, spec.hidden_size()}, layer.proj_back, member, members);
}

template <class T>
void transpose_input(const RnnSpec& spec, const PackedLayer<T>& layer, int member, int members) {
  // The input side of gru's gradients begins with n.
  const std::int64_t first = spec.mode == RnnMode::kGru ? 2 : 0;
  transpose(layer.w, {spec.num_gates(), first, spec.num_units}, layer.w_back, member, members);
}

template float* transposed_in_gradient<float>(const CpuPacked<float>&, std::int64_t, std::int64_t,
                                              std::int64_t, float*);
template double* transposed_in_gradient<double>(const CpuPacked<double>&, std::int64_t,
                                                std::int64_t, std::int64_t, double*);
template PackedLayer<float> with_transposed<float>(const PackedLayer<float>&, float*, bool);
template PackedLayer<double> with_transposed<double>(const PackedLayer<double>&, double*, bool);
template void transpose_recurrent<float>(const RnnSpec&, const PackedLayer<float>&, int, int);
template void transpose_recurrent<double>(const RnnSpec&, const PackedLayer<double>&, int, int);
template void transpose_input<float>(const RnnSpec&, const PackedLayer<float>&, int, int);
template void transpose_input<double>(const RnnSpec&, const PackedLayer<double>&, int, int);

}  // namespace openrnn::cpu
