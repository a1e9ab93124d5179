#include "cpu/backward/backward_rows.h"

#include "cpu/backward/blocks.h"
#include "cpu/tuning/tuning.h"

namespace openrnn::cpu {

template <class T>
void BackwardRows<T>::widen_output_gradient() noexcept {
  const RnnSpec& spec = shared_.spec();
  for (std::int64_t i = me_.index; i < me_.rows; i += me_.members) {
    const std::int64_t b = shared_.row(me_, i);
    for (std::int64_t t = 0; t < shared_.rows.length(b); ++t) {
      run_.user_dy.load(shared_.packed.table(), t, b, spec.output_size(), run_.dy.at(t, b));
    }
  }
}

template <class T>
void BackwardRows<T>::seed_states(std::int64_t layer, std::int64_t d) noexcept {
  const RnnSpec& spec = shared_.spec();
  const KernelTable& table = shared_.packed.table();
  const auto i_d = static_cast<std::size_t>(d);
  const std::int64_t p = layer * spec.num_dirs() + d, width = spec.hidden_size();
  const UserRows<T>&dhn = run_.states[i_d].dhn, &dcn = run_.states[i_d].dcn;
  for (std::int64_t i = me_.place.panel; i < me_.rows; i += shared_.plan.panel_threads) {
    const std::int64_t b = shared_.row(me_, i);
    T* const carry = run_.scratch_of(layer).carry[i_d].at(0, b);
    if (dhn.base) {
      dhn.load(table, p, b, width, carry);
    } else {
      std::fill_n(carry, width, T{0});
    }
    if (!spec.has_cell()) continue;
    T* const dc = run_.scratch_of(layer).dc[i_d].at(0, b);
    if (dcn.base) {
      dcn.load(table, p, b, spec.num_units, dc);
    } else {
      std::fill_n(dc, spec.num_units, T{0});
    }
  }
}

template <class T>
void BackwardRows<T>::store_states(std::int64_t layer, std::int64_t d) noexcept {
  const RnnSpec& spec = shared_.spec();
  const KernelTable& table = shared_.packed.table();
  const auto i_d = static_cast<std::size_t>(d);
  const std::int64_t p = layer * spec.num_dirs() + d;
  const UserRows<T>&dh0 = run_.states[i_d].dh0, &dc0 = run_.states[i_d].dc0;
  for (std::int64_t i = me_.place.panel; i < me_.rows; i += shared_.plan.panel_threads) {
    const std::int64_t b = shared_.row(me_, i);
    if (dh0.base)
      dh0.store(table, p, b, spec.hidden_size(), run_.scratch_of(layer).carry[i_d].at(0, b));
    if (dc0.base && spec.has_cell()) {
      dc0.store(table, p, b, spec.num_units, run_.scratch_of(layer).dc[i_d].at(0, b));
    }
  }
}

template <class T>
void BackwardRows<T>::input_gradient(std::int64_t layer, std::int64_t first,
                                     std::int64_t end) noexcept {
  const RnnSpec& spec = shared_.spec();
  if (layer == 0 && spec.skips_input()) return skip_gradient(first, end);
  const std::int64_t width = spec.layer_input_size(layer);
  const Grid<T>& to = layer == 0 ? run_.dx : run_.scratch.dx;
  const T** a = me_.space.rows_a;
  T** c = me_.space.rows_c;
  for (std::int64_t d = 0; d < spec.num_dirs(); ++d) {
    const PackedMatrix<T> matrix = run_.weights(layer, d).w_back;
    const Share vectors(matrix.vectors, 1, me_.index, me_.members);
    std::int64_t count = 0;
    const auto flush = [&] {
      Panels<T> w = matrix.panels(vectors.first, vectors.last, me_.space.staging);
      const bool begun = multiply_in_blocks(shared_.packed, w, {a, count, d > 0, c, width});
      shared_.packed.kernels().product({.w = w,
                                        .a = a,
                                        .a_step = 1,
                                        .rows = count,
                                        .accumulate = begun,
                                        .c = c,
                                        .columns = width});
      count = 0;
    };
    for (std::int64_t i = 0; i < me_.rows; ++i) {
      const std::int64_t b = shared_.row(me_, i);
      for (std::int64_t t = first; t < std::min(end, shared_.rows.length(b)); ++t) {
        a[count] = run_.scratch_of(layer).da[static_cast<std::size_t>(d)].at(t, b);
        c[count] = to.at(t, b);
        if (++count == kStagedRows) flush();
      }
    }
    if (count) flush();
  }
}

// Under skip_input x enters every gate as it is.
template <class T>
void BackwardRows<T>::skip_gradient(std::int64_t first, std::int64_t end) noexcept {
  const RnnSpec& spec = shared_.spec();
  const std::int64_t units = spec.num_units;
  for (std::int64_t i = me_.index; i < me_.rows; i += me_.members) {
    const std::int64_t b = shared_.row(me_, i);
    for (std::int64_t t = first; t < std::min(end, shared_.rows.length(b)); ++t) {
      T* const to = run_.dx.at(t, b);
      std::fill_n(to, units, T{0});
      for (std::int64_t d = 0; d < spec.num_dirs(); ++d) {
        const T* da = run_.scratch_of(0).da[static_cast<std::size_t>(d)].at(t, b);
        for (std::int64_t g = 0; g < spec.num_gates(); ++g) {
          shared_.packed.kernels().add(da + g * units, to, units);
        }
      }
    }
  }
}

template <class T>
void BackwardRows<T>::drop(std::int64_t layer, std::int64_t first, std::int64_t end) noexcept {
  for (std::int64_t i = me_.index; i < me_.rows; i += me_.members) {
    const std::int64_t b = shared_.row(me_, i);
    for (std::int64_t t = first; t < std::min(end, shared_.rows.length(b)); ++t) {
      shared_.drop(layer - 1, t, b, me_.space.mask, run_.scratch.dx.at(t, b));
    }
  }
}

template <class T>
void BackwardRows<T>::finish_input_gradient() noexcept {
  const RnnSpec& spec = shared_.spec();
  for (std::int64_t i = me_.index; i < me_.rows; i += me_.members) {
    const std::int64_t b = shared_.row(me_, i), length = shared_.rows.length(b);
    for (std::int64_t t = run_.scratch.dx_wide ? 0 : length; t < shared_.args.max_time; ++t) {
      run_.user_dx.store(shared_.packed.table(), t, b, spec.input_size,
                         t < length ? run_.dx.at(t, b) : nullptr);
    }
  }
}

template class BackwardRows<float>;
template class BackwardRows<double>;

}  // namespace openrnn::cpu
