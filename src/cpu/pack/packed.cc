#include "cpu/pack/packed.h"

#include <algorithm>

#include "cpu/isa/arithmetic.h"
#include "cpu/isa/isa.h"
#include "cpu/pack/vectors.h"
#include "cpu/plan/plan.h"
#include "cpu/threading/thread_lease.h"
#include "spec/gains.h"

namespace openrnn::cpu {

/// Arguments of one packing thread; `plain` has room for the values of one panel.
template <class T>
struct Part {
  int member, members;
  Arithmetic arithmetic;
  const Kernels<T>& kernels;
  T* plain;
};

namespace {

template <class T>
PackedMatrix<T> columns_matrix(std::int64_t columns, std::int64_t k, std::int64_t lanes) {
  return {.k = k, .width = kColumnWidth, .vectors = divide_up(columns, lanes), .lanes = lanes};
}

// A panel of values [k][columns] in the form of the arithmetic.
void narrow(const Part<float>& part, const PackedMatrix<float>& matrix, float* out) {
  const std::int64_t columns = matrix.width * matrix.lanes;
  if (part.arithmetic != kDot || part.kernels.big.form != kDot) {
    return narrow_panel(part.arithmetic, part.plain, matrix.k, columns, matrix.lanes, out);
  }
  // The processor has instructions that make pairs.
  const float* rows[64];
  for (std::int64_t k = 0; k < matrix.k; k += 64) {
    const std::int64_t count = std::min<std::int64_t>(64, matrix.k - k);
    for (std::int64_t i = 0; i < count; ++i) rows[i] = part.plain + (k + i) * columns;
    part.kernels.big.pack_b({.rows = rows,
                             .k = count,
                             .count = columns,
                             .width = columns,
                             .out = out + k / 2 * columns});
  }
}

// Fills this thread's panels by fill(panel, out), directly or through plain values.
template <class T, class Fill>
void fill_panels(const PackedMatrix<T>& matrix, const Part<T>& part, Fill fill) {
  const Share panels(divide_up(matrix.vectors, matrix.width), 1, part.member, part.members);
  for (std::int64_t p = panels.first; p < panels.last; ++p) {
    T* const out = matrix.data + p * matrix.panel_size();
    fill(p, part.arithmetic == kExact ? out : part.plain);
    if constexpr (sizeof(T) == sizeof(float)) {
      if (part.arithmetic != kExact) narrow(part, matrix, out);
    }
  }
}

// Lane `lane` of vector `v` is row `rows(v)[lane]` of a row-major matrix with k columns.
template <class T, class Rows>
void pack_rows(const PackedMatrix<T>& matrix, const Part<T>& part, Rows rows_of) {
  fill_panels(matrix, part, [&](std::int64_t p, T* out) {
    for (std::int64_t v = 0; v < matrix.width; ++v) {
      const T* rows[kMostLanes] = {};
      const std::int64_t count = rows_of(p * matrix.width + v, rows);
      pack_vector_of_columns(rows, count, matrix.lanes, matrix.k, matrix.width * matrix.lanes,
                             out + v * matrix.lanes);
    }
  });
}

// The matrix has its k as rows: blocks of `rows_each` rows, one below the other.
template <class T>
void pack_stacked(const PackedMatrix<T>& matrix, const Part<T>& part, const Stack<T>& blocks,
                  std::int64_t rows_each, std::int64_t columns) {
  const std::int64_t panel = matrix.width * matrix.lanes;
  const T* rows[64];
  fill_panels(matrix, part, [&](std::int64_t p, T* out) {
    for (const T* block : blocks) {
      if (!block) break;
      for (std::int64_t row = 0; row < rows_each; row += 64) {
        const std::int64_t count = std::min<std::int64_t>(64, rows_each - row);
        for (std::int64_t i = 0; i < count; ++i) rows[i] = block + (row + i) * columns;
        pack_panel_of_rows(rows, count, p * panel, columns, panel, out);
        out += count * panel;
      }
    }
  });
}

// The gates of a matrix: `count` of them from `first` on.
struct Gates {
  ParamRole role;
  std::int64_t first, count;
};

// Vector v of gate panels is gate v % G of the units from v / G * lanes on.
template <class T>
void pack_gates(const PackedMatrix<T>& matrix, const Source<T>& source, const Gates& of,
                std::int64_t units, const Part<T>& part) {
  const std::int64_t gates = of.count;
  pack_rows<T>(matrix, part, [&](std::int64_t v, const T** rows) {
    const T* base = source.weight(of.role, of.first + v % gates);
    const std::int64_t unit = v / gates * matrix.lanes;
    const std::int64_t count = std::clamp<std::int64_t>(units - unit, 0, matrix.lanes);
    for (std::int64_t i = 0; i < count; ++i) rows[i] = base + (unit + i) * matrix.k;
    return count;
  });
}

}  // namespace

template <class T>
CpuPacked<T>::CpuPacked(const RnnSpec& spec, const ConstArrayView& params,
                        const PackOptions& options)
    : PackedParams(spec, options.purpose),
      table_(&cpu::kernels()),
      arithmetic_(arithmetic_of(spec, *table_)),
      kernels_(&kernels_for<T>(*table_, arithmetic_)),
      layout_(spec),
      has_options_(cpu::has_options(spec)) {
  check_params("pack", spec, params, layout_.size());
  Block wide;
  const T* values = static_cast<const T*>(params.data);
  if (is_16_bit_float(spec.dtype)) {
    wide = Block(static_cast<std::size_t>(layout_.size()) * sizeof(float));
    table_->storage[storage_of(spec.dtype)].widen(static_cast<const std::uint16_t*>(params.data),
                                                  static_cast<float*>(wide.data()), layout_.size());
    values = static_cast<const T*>(wide.data());
  }
  layers_.resize(static_cast<std::size_t>(spec.num_pseudo_layers()));
  Carver measure;
  carve(measure);
  memory_ = Block(measure.used());
  Carver carver(memory_.data());
  carve(carver);
  std::fill_n(zeros_, std::max({spec.num_units, spec.input_size, spec.output_size()}), T{0});
  // A small network is packed before another thread would have woken up.
  ThreadLease lease(threads_for(static_cast<double>(layout_.size()), kAlonePacking,
                                most_threads(options.max_threads)));
  if (const double latency = lease.barrier_latency(); lease.threads() > 1) {
    const double row = rates_of<T>(kernels(), arithmetic_, nullptr).row;
    lease.keep(packing_threads(layout_.size(), lease.threads(), row, latency));
  }
  const std::int64_t panel = most_inner_ * std::max(gates(), kColumnWidth) * kernels().lanes;
  const std::int64_t values_at_once = arithmetic_ == kExact ? 0 : lease.threads() * panel;
  const Block plain(static_cast<std::size_t>(values_at_once) * sizeof(T));
  lease.run([&](int thread) {
    T* const own = values_at_once ? static_cast<T*>(plain.data()) + thread * panel : nullptr;
    const Part<T> part{thread, lease.threads(), arithmetic_, *kernels_, own};
    for (std::int64_t l = 0; l < spec.num_layers; ++l) {
      for (std::int64_t d = 0; d < spec.num_dirs(); ++d) fill_layer(values, l, d, part);
    }
  });
}

template <class T>
void CpuPacked<T>::carve(Carver& carver) {
  const RnnSpec& s = spec();
  const std::int64_t lanes = kernels().lanes, units = s.num_units, out = s.hidden_size();
  const bool back = purpose() == PackFor::kTraining;
  const std::int64_t blocks = divide_up(units, lanes);
  zeros_ = carver.take<T>(std::max({units, s.input_size, s.output_size()}));
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    PackedLayer<T>& p = layers_[i];
    const std::int64_t layer = static_cast<std::int64_t>(i) / s.num_dirs();
    const std::int64_t input = s.layer_input_size(layer);
    const bool skipped = layer == 0 && s.skips_input();
    const std::int64_t width = gates() == 1 ? kColumnWidth : gates();
    p.w = {.k = skipped ? 0 : input, .width = width, .vectors = blocks * gates(), .lanes = lanes};
    p.r = {.k = out,
           .width = resets_before() ? recurrent_gates() : width,
           .vectors = blocks * recurrent_gates(),
           .lanes = lanes};
    if (resets_before()) p.r_n = columns_matrix<T>(units, units, lanes);
    if (resets_before() && back) p.r_n_back = columns_matrix<T>(units, units, lanes);
    if (s.projecting()) p.proj = columns_matrix<T>(out, units, lanes);
    if (back) p.r_back = columns_matrix<T>(out, recurrent_gates() * units, lanes);
    if (back && !skipped) p.w_back = columns_matrix<T>(input, gates() * units, lanes);
    if (back && s.projecting()) p.proj_back = columns_matrix<T>(units, out, lanes);
    for (PackedMatrix<T>* matrix :
         {&p.w, &p.r, &p.r_n, &p.proj, &p.r_back, &p.r_n_back, &p.w_back, &p.proj_back}) {
      matrix->count = count_elements(arithmetic_, matrix->k);
      most_inner_ = std::max(most_inner_, matrix->k);
    }
    for (PackedMatrix<T>* matrix : {&p.w, &p.r, &p.r_n, &p.proj}) {
      matrix->data = carver.take<T>(matrix->size());
    }
    for (PackedMatrix<T>* matrix : {&p.r_back, &p.r_n_back, &p.w_back, &p.proj_back}) {
      if (!transposes()) matrix->data = carver.take<T>(matrix->size());
    }
    p.bias = carver.take<T>(divide_up(p.w.vectors, width) * width * lanes);
    p.hn_bias = carver.take<T>(blocks * lanes);
    p.peephole = carver.take<T>(s.use_peepholes ? 3 * blocks * lanes : 0);
    p.gains = carver.take<T>((spec::gains_per_gate(s) * gates() + (s.normalizes_cell() ? 2 : 0)) *
                             blocks * lanes);
  }
}

template <class T>
void CpuPacked<T>::fill_layer(const T* params, std::int64_t layer, std::int64_t direction,
                              const Part<T>& part) {
  const RnnSpec& s = spec();
  PackedLayer<T>& p = layers_[static_cast<std::size_t>(layer * s.num_dirs() + direction)];
  const Source<T> source{layout_, params, layer, direction};
  const std::int64_t units = s.num_units, out = s.hidden_size();
  constexpr ParamRole kInput = ParamRole::kInputWeight, kState = ParamRole::kRecurrentWeight;
  if (p.w.k > 0) pack_gates(p.w, source, {kInput, 0, gates()}, units, part);
  pack_gates(p.r, source, {kState, 0, recurrent_gates()}, units, part);
  if (resets_before()) pack_gates(p.r_n, source, {kState, 2, 1}, units, part);
  if (part.member == 0) {
    pack_bias(p, source, s);
    if (has_options()) pack_options(p, source, s);
  }
  if (s.projecting()) {
    pack_rows<T>(p.proj, part, [&](std::int64_t v, const T** rows) {
      const T* base = source.weight(ParamRole::kProjection, 0);
      const std::int64_t count = std::clamp<std::int64_t>(out - v * p.proj.lanes, 0, p.proj.lanes);
      for (std::int64_t i = 0; i < count; ++i) rows[i] = base + (v * p.proj.lanes + i) * units;
      return count;
    });
  }
  if (purpose() == PackFor::kInference || transposes()) return;
  const bool gru = s.mode == RnnMode::kGru;
  const auto gate_blocks = [&](ParamRole role) {
    // The input side of gru's gradients begins with n.
    if (gru && role == ParamRole::kInputWeight) return source.gates(role, {2, 0, 1});
    if (gru && resets_before()) return source.gates(role, {0, 1});
    if (gru) return source.gates(role, {0, 1, 2});
    return s.is_lstm() ? source.gates(role, {0, 1, 2, 3}) : source.gates(role, {0});
  };
  pack_stacked(p.r_back, part, gate_blocks(ParamRole::kRecurrentWeight), units, out);
  if (resets_before()) pack_stacked(p.r_n_back, part, source.gates(kState, {2}), units, out);
  if (p.w_back.k > 0) {
    pack_stacked(p.w_back, part, gate_blocks(ParamRole::kInputWeight), units,
                 s.layer_input_size(layer));
  }
  if (s.projecting()) {
    pack_stacked(p.proj_back, part, {source.weight(ParamRole::kProjection, 0)}, out, units);
  }
}

template class CpuPacked<float>;
template class CpuPacked<double>;

}  // namespace openrnn::cpu
