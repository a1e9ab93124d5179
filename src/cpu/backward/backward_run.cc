#include "cpu/backward/backward_run.h"

#include "cpu/steps/mode.h"

namespace openrnn::cpu {

/// One thread: its place, its memory, its rows.
template <class T>
struct BackwardRun<T>::Member {
  Place place;
  int index, members;  // among the threads of its row group
  const BackwardSpace<T>& space;
  std::int64_t rows;
};

template <class T>
void BackwardRun<T>::thread_main(int thread) noexcept {
  const RnnSpec& spec = saved.packed->spec();
  const Place place = plan.place(thread);
  const Member me{place, plan.member(place), plan.row_members(), scratch.threads[thread],
                  rows.count(place.row_group)};
  Barrier& row_barrier = row_barriers[place.row_group];
  if (scratch.dy_wide && args.dy) {
    widen_output_gradient(me);
    row_barrier.wait(me.members);
  }
  const bool transposes = saved.packed->transposes();
  for (std::int64_t layer = spec.num_layers - 1; layer >= 0; --layer) {
    if (transposes) transpose_layer(layer, thread, false);
    for (std::int64_t d = place.dir_group; d < spec.num_dirs(); d += plan.dir_groups) {
      run_direction(me, layer, d);
    }
    // Every row's gate gradients are there.
    all_barrier->wait(plan.threads());
    if (layer > 0 || dx.base) {
      if (transposes) transpose_layer(layer, thread, true);
      input_gradient(me, layer);
    }
    if (layer > 0 && saved.dropping()) {
      row_barrier.wait(me.members);
      drop(me, layer);
    }
    if (dparams) {
      // They are written where transposed weights may lie.
      if (transposes) all_barrier->wait(plan.threads());
      weight_gradients(*this, layer, thread);
    }
    all_barrier->wait(plan.threads());
  }
  if (dx.base) finish_input_gradient(me);
  if constexpr (sizeof(T) == sizeof(float)) {
    if (!scratch.params_wide || !dparams) return;
    const Share own(saved.packed->layout().size(), 64, thread, plan.threads());
    saved.packed->table().narrow(dparams + own.first,
                                 static_cast<std::uint16_t*>(args.dparams) + own.first,
                                 own.last - own.first);
  }
}

template <class T>
void BackwardRun<T>::transpose_layer(std::int64_t layer, int thread, bool input) const noexcept {
  const RnnSpec& spec = saved.packed->spec();
  for (std::int64_t d = 0; d < spec.num_dirs(); ++d) {
    (input ? transpose_input<T> : transpose_recurrent<T>)(spec, weights(layer, d), thread,
                                                          plan.threads());
  }
  all_barrier->wait(plan.threads());
}

template <class T>
PackedLayer<T> BackwardRun<T>::weights(std::int64_t layer, std::int64_t direction) const noexcept {
  const CpuPacked<T>& packed = *saved.packed;
  if (!packed.transposes()) return packed.layer(layer, direction);
  T* const own = transposed_in_gradient(packed, layer, direction, saved.args.batch, dparams);
  return with_transposed(packed.layer(layer, direction),
                         own ? own : scratch.transposed[static_cast<std::size_t>(direction)]);
}

template <class T>
void BackwardRun<T>::widen_output_gradient(const Member& me) noexcept {
  const RnnSpec& spec = saved.packed->spec();
  const auto user = sequence_rows<T>(args.dy, spec, saved.args, spec.output_size());
  for (std::int64_t i = me.index; i < me.rows; i += me.members) {
    const std::int64_t b = rows.row(me.place.row_group, i);
    for (std::int64_t t = 0; t < rows.length(b); ++t) {
      user.load(saved.packed->table(), t, b, spec.output_size(), dy.at(t, b));
    }
  }
}

// Rows longer than `step`; they come first.
template <class T>
std::int64_t BackwardRun<T>::active(const Member& me, std::int64_t step) const {
  std::int64_t low = 0, high = me.rows;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (rows.length(rows.row(me.place.row_group, middle)) > step) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

template <class T>
void BackwardRun<T>::seed_states(const Member& me, std::int64_t layer, std::int64_t d) noexcept {
  const RnnSpec& spec = saved.packed->spec();
  const auto i_d = static_cast<std::size_t>(d);
  const std::int64_t p = layer * spec.num_dirs() + d, width = spec.hidden_size();
  const auto dhn = state_rows<T>(args.dhn, spec, saved.args, width);
  const auto dcn = state_rows<T>(args.dcn, spec, saved.args, spec.num_units);
  for (std::int64_t i = me.place.panel; i < me.rows; i += plan.panel_threads) {
    const std::int64_t b = rows.row(me.place.row_group, i);
    T* const carry = scratch.carry[i_d].at(0, b);
    if (args.dhn) {
      dhn.load(saved.packed->table(), p, b, width, carry);
    } else {
      std::fill_n(carry, width, T{0});
    }
    if (!spec.is_lstm()) continue;
    T* const dc = scratch.dc[i_d].at(0, b);
    if (args.dcn) {
      dcn.load(saved.packed->table(), p, b, spec.num_units, dc);
    } else {
      std::fill_n(dc, spec.num_units, T{0});
    }
  }
}

template <class T>
void BackwardRun<T>::store_states(const Member& me, std::int64_t layer, std::int64_t d) noexcept {
  const RnnSpec& spec = saved.packed->spec();
  const auto i_d = static_cast<std::size_t>(d);
  const std::int64_t p = layer * spec.num_dirs() + d;
  const auto dh0 = state_rows<T>(args.dh0, spec, saved.args, spec.hidden_size());
  const auto dc0 = state_rows<T>(args.dc0, spec, saved.args, spec.num_units);
  for (std::int64_t i = me.place.panel; i < me.rows; i += plan.panel_threads) {
    const std::int64_t b = rows.row(me.place.row_group, i);
    if (args.dh0) {
      dh0.store(saved.packed->table(), p, b, spec.hidden_size(), scratch.carry[i_d].at(0, b));
    }
    if (args.dc0 && spec.is_lstm()) {
      dc0.store(saved.packed->table(), p, b, spec.num_units, scratch.dc[i_d].at(0, b));
    }
  }
}

template <class T>
BackwardStep<T> BackwardRun<T>::step_call(const Member& me, std::int64_t layer,
                                          std::int64_t d) const {
  const RnnSpec& spec = saved.packed->spec();
  const PackedLayer<T> own = weights(layer, d);
  const PackedMatrix<T>& matrix = spec.projecting() ? own.proj_back : own.r_back;
  const Share vectors(matrix.vectors, 1, me.place.panel, plan.panel_threads);
  BackwardStep<T> call{};
  call.w = matrix.panels(vectors.first, vectors.last, me.space.staging);
  call.a = me.space.a;
  call.carry = me.space.carry;
  call.dy = output_gradient(layer).base && !spec.projecting() ? me.space.dy : nullptr;
  call.gates = me.space.gates;
  call.c = me.space.c;
  call.c_prev = me.space.c_prev;
  call.h_prev = me.space.h_prev;
  call.dc = me.space.dc;
  call.da = me.space.da;
  call.units = spec.num_units;
  call.clip = spec.cell_clip.has_value();
  if (call.clip) {
    call.clip_low = static_cast<T>((*spec.cell_clip)[0]);
    call.clip_high = static_cast<T>((*spec.cell_clip)[1]);
  }
  return call;
}

// Points at the first `count` rows of a step.
template <class T>
void BackwardRun<T>::point(const Member& me, std::int64_t layer, std::int64_t d, std::int64_t step,
                           std::int64_t count) noexcept {
  const RnnSpec& spec = saved.packed->spec();
  const LayerStore<T>& store = saved.layers[static_cast<std::size_t>(layer)];
  const auto i_d = static_cast<std::size_t>(d);
  const std::int64_t p = layer * spec.num_dirs() + d, side = d * spec.hidden_size();
  const std::int64_t back = d == 0 ? -1 : 1, recurrent = recurrent_side();
  const Grid<T> dout = output_gradient(layer);
  const BackwardSpace<T>& space = me.space;
  const T* zeros = saved.packed->zeros();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t b = rows.row(me.place.row_group, i), t = time_of(d, step, b);
    // Rows without a later step have no product and do not read this one.
    space.a[i] = step + 1 < rows.length(b) ? scratch.da[i_d].at(t - back, b) + recurrent : zeros;
    space.carry[i] = scratch.carry[i_d].at(0, b);
    if (dout.base) space.dy[i] = dout.at(t, b) + side;
    space.gates[i] = store.gates[i_d].at(t, b);
    space.da[i] = scratch.da[i_d].at(t, b);
    if (spec.mode == RnnMode::kGru) {
      const T* start = saved.h0.base ? saved.h0.at(p, b) : zeros;
      space.h_prev[i] = step > 0 ? store.out.at(t + back, b) + side : start;
    }
    if (spec.is_lstm()) {
      const T* start = saved.c0.base ? saved.c0.at(p, b) : zeros;
      space.c[i] = store.c[i_d].at(t, b);
      space.c_prev[i] = step > 0 ? store.c[i_d].at(t + back, b) : start;
      space.dc[i] = scratch.dc[i_d].at(0, b);
    }
  }
}

template <class T>
void BackwardRun<T>::run_direction(const Member& me, std::int64_t layer, std::int64_t d) noexcept {
  const RnnSpec& spec = saved.packed->spec();
  Barrier& barrier = step_barriers[me.place.row_group * plan.dir_groups + me.place.dir_group];
  seed_states(me, layer, d);
  barrier.wait(plan.panel_threads);
  BackwardStep<T> call = step_call(me, layer, d);
  const std::int64_t steps = me.rows ? rows.length(rows.row(me.place.row_group, 0)) : 0;
  std::int64_t older = 0;  // rows that have a later step already behind them
  for (std::int64_t s = steps - 1; s >= 0; --s) {
    const std::int64_t count = active(me, s);
    point(me, layer, d, s, count);
    call.w.reverse = s % 2 == 1;
    if (spec.projecting()) project_step(me, layer, d, s, count, older);
    step(call, count, older);
    barrier.wait(plan.panel_threads);
    older = count;
  }
  if (args.dh0) first_state(me, layer, d);
  barrier.wait(plan.panel_threads);
  store_states(me, layer, d);
}

template <class T>
void BackwardRun<T>::step(BackwardStep<T> call, std::int64_t count, std::int64_t older) noexcept {
  const Kernels<T>& kernels = saved.packed->kernels();
  const auto backward = kernels.backward[mode_index(saved.packed->spec().mode)];
  if (saved.packed->spec().projecting()) {
    call.rows = count;
    return backward(call);
  }
  call.rows = older;
  call.start_at_carry = saved.packed->spec().mode == RnnMode::kGru;
  if (older) {
    BackwardStep<T> last = call;
    last.start_at_carry =
        multiply_in_blocks(last.w, call.a, older, call.start_at_carry, call.carry, call.units);
    backward(last);
  }
  if (older == count) return;
  // The rows that end here begin with the gradient of their final state.
  const auto skip = [older](auto*& pointers) {
    if (pointers) pointers += older;
  };
  skip(call.a), skip(call.carry), skip(call.dy), skip(call.gates), skip(call.c);
  skip(call.c_prev), skip(call.h_prev), skip(call.dc), skip(call.da);
  call.rows = count - older;
  call.start_at_carry = true;
  call.w.k = 0;
  backward(call);
}

// Multiplies all but the last block of a k whose panels would not stay in the second cache into c,
// moves w and the rows of a on to that last block, and says whether c holds a beginning.
template <class T>
bool BackwardRun<T>::multiply_in_blocks(Panels<T>& w, const T** a, std::int64_t count,
                                        bool accumulate, T* const* c,
                                        std::int64_t columns) noexcept {
  const auto panel = static_cast<std::size_t>(w.b_step) * sizeof(T);
  // Whole spans: the part of a k is one, too, where the arithmetic has none.
  const auto fit = static_cast<std::int64_t>(l2_bytes() / 4 / panel);
  const std::int64_t block = std::max(fit / kSumSpan, std::int64_t{1}) * kSumSpan;
  if (w.k <= 2 * block || count <= kFewRows) return accumulate;
  const std::int64_t numbers = numbers_in(saved.packed->arithmetic(), block);
  while (w.k > block) {
    Panels<T> part = w;
    part.k = block;
    part.inner = numbers;
    saved.packed->kernels().product(
        {part, a, 1, count, nullptr, accumulate, c, columns, nullptr, nullptr});
    accumulate = true;
    for (std::int64_t i = 0; i < count; ++i) a[i] += numbers;
    w.b += block * w.b_step;
    w.k -= block;
    w.inner -= numbers;
  }
  return accumulate;
}

// dh of the projected output, [P]; then it takes the place of a, so that the cell's own step
// multiplies it by Wp.
template <class T>
void BackwardRun<T>::project_step(const Member& me, std::int64_t layer, std::int64_t d,
                                  std::int64_t step, std::int64_t count,
                                  std::int64_t older) noexcept {
  const RnnSpec& spec = saved.packed->spec();
  const PackedMatrix<T> matrix = weights(layer, d).r_back;
  const Share vectors(matrix.vectors, 1, me.place.panel, plan.panel_threads);
  const std::int64_t first = vectors.first * matrix.lanes;
  const std::int64_t last = std::min(spec.hidden_size(), vectors.last * matrix.lanes);
  const BackwardSpace<T>& space = me.space;
  const Grid<T>& dh = scratch.dh_proj[static_cast<std::size_t>(d)];
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t b = rows.row(me.place.row_group, i);
    space.rows_c[i] = dh.at(time_of(d, step, b), b);
  }
  if (first < last) {
    saved.packed->kernels().product({matrix.panels(vectors.first, vectors.last, me.space.staging),
                                     space.a, 1, older, nullptr, false, space.rows_c,
                                     spec.hidden_size(), nullptr, nullptr});
    for (std::int64_t i = 0; i < count; ++i) {
      if (i >= older)
        std::copy(space.carry[i] + first, space.carry[i] + last, space.rows_c[i] + first);
      if (output_gradient(layer).base) {
        saved.packed->kernels().add(space.dy[i] + first, space.rows_c[i] + first, last - first);
      }
    }
  }
  for (std::int64_t i = 0; i < count; ++i) space.a[i] = space.rows_c[i];
  step_barriers[me.place.row_group * plan.dir_groups + me.place.dir_group].wait(plan.panel_threads);
}

// The gradient of the initial state takes the place of carry; a row of length zero has it there.
template <class T>
void BackwardRun<T>::first_state(const Member& me, std::int64_t layer, std::int64_t d) noexcept {
  const PackedMatrix<T> matrix = weights(layer, d).r_back;
  const Share vectors(matrix.vectors, 1, me.place.panel, plan.panel_threads);
  const std::int64_t count = active(me, 0);
  const auto i_d = static_cast<std::size_t>(d);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t b = rows.row(me.place.row_group, i);
    me.space.a[i] = scratch.da[i_d].at(time_of(d, 0, b), b) + recurrent_side();
    me.space.carry[i] = scratch.carry[i_d].at(0, b);
  }
  const RnnSpec& spec = saved.packed->spec();
  saved.packed->kernels().product({matrix.panels(vectors.first, vectors.last, me.space.staging),
                                   me.space.a, 1, count, nullptr, spec.mode == RnnMode::kGru,
                                   me.space.carry, spec.hidden_size(), nullptr, nullptr});
}

// dx of the rows of this group, forward's chain first; a member takes a share of the columns.
template <class T>
void BackwardRun<T>::input_gradient(const Member& me, std::int64_t layer) noexcept {
  constexpr std::int64_t kRowsAtOnce = 192;
  const RnnSpec& spec = saved.packed->spec();
  if (layer == 0 && spec.skips_input()) return skip_gradient(me);
  const std::int64_t width = spec.layer_input_size(layer);
  const Grid<T>& to = layer == 0 ? dx : scratch.dx;
  const T** a = me.space.rows_a;
  T** c = me.space.rows_c;
  for (std::int64_t d = 0; d < spec.num_dirs(); ++d) {
    const PackedMatrix<T> matrix = weights(layer, d).w_back;
    const Share vectors(matrix.vectors, 1, me.index, me.members);
    std::int64_t count = 0;
    const auto flush = [&] {
      Panels<T> w = matrix.panels(vectors.first, vectors.last, me.space.staging);
      const bool begun = multiply_in_blocks(w, a, count, d > 0, c, width);
      saved.packed->kernels().product({w, a, 1, count, nullptr, begun, c, width, nullptr, nullptr});
      count = 0;
    };
    for (std::int64_t i = 0; i < me.rows; ++i) {
      const std::int64_t b = rows.row(me.place.row_group, i);
      for (std::int64_t t = 0; t < rows.length(b); ++t) {
        a[count] = scratch.da[static_cast<std::size_t>(d)].at(t, b);
        c[count] = to.at(t, b);
        if (++count == kRowsAtOnce) flush();
      }
    }
    if (count) flush();
  }
}

// Under skip_input x enters every gate as it is.
template <class T>
void BackwardRun<T>::skip_gradient(const Member& me) noexcept {
  const RnnSpec& spec = saved.packed->spec();
  const std::int64_t units = spec.num_units;
  for (std::int64_t i = me.index; i < me.rows; i += me.members) {
    const std::int64_t b = rows.row(me.place.row_group, i);
    for (std::int64_t t = 0; t < rows.length(b); ++t) {
      T* const to = dx.at(t, b);
      std::fill_n(to, units, T{0});
      for (std::int64_t d = 0; d < spec.num_dirs(); ++d) {
        const T* da = scratch.da[static_cast<std::size_t>(d)].at(t, b);
        for (std::int64_t g = 0; g < spec.num_gates(); ++g) {
          saved.packed->kernels().add(da + g * units, to, units);
        }
      }
    }
  }
}

// The gradient of a dropped output passes the same mask.
template <class T>
void BackwardRun<T>::drop(const Member& me, std::int64_t layer) noexcept {
  const RnnSpec& spec = saved.packed->spec();
  const std::int64_t width = spec.output_size();
  const Grid<T>& gradient = scratch.dx;
  for (std::int64_t i = me.index; i < me.rows; i += me.members) {
    const std::int64_t b = rows.row(me.place.row_group, i);
    for (std::int64_t t = 0; t < rows.length(b); ++t) {
      const DropoutRow at{static_cast<std::uint32_t>(layer - 1), static_cast<std::uint32_t>(t),
                          static_cast<std::uint32_t>(b)};
      dropout_mask<T>(saved.args.dropout, at, spec.dropout,
                      {me.space.mask, static_cast<std::size_t>(width)});
      saved.packed->kernels().multiply(me.space.mask, gradient.at(t, b), width);
    }
  }
}

template <class T>
void BackwardRun<T>::finish_input_gradient(const Member& me) noexcept {
  const RnnSpec& spec = saved.packed->spec();
  const auto user = sequence_rows<T>(args.dx, spec, saved.args, spec.input_size);
  for (std::int64_t i = me.index; i < me.rows; i += me.members) {
    const std::int64_t b = rows.row(me.place.row_group, i), length = rows.length(b);
    for (std::int64_t t = scratch.dx_wide ? 0 : length; t < saved.args.max_time; ++t) {
      user.store(saved.packed->table(), t, b, spec.input_size, t < length ? dx.at(t, b) : nullptr);
    }
  }
}

template struct BackwardRun<float>;
template struct BackwardRun<double>;

}  // namespace openrnn::cpu
