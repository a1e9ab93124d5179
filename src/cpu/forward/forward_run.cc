#include "cpu/forward/forward_run.h"

#include "cpu/steps/mode.h"

namespace openrnn::cpu {
/// One thread: its place, its memory, its rows.
template <class T>
struct ForwardRun<T>::Member {
  int thread;
  Place place;
  int index, members;  // among the threads of its row group
  ThreadSpace<T> space;
  std::int64_t rows;
};

// False when this thread's part is over: somebody was late, and the caller goes on alone, which is
// possible wherever all threads of the call have met. Nobody is inside a piece then, so that those
// who leave touch nothing afterwards, and what is done is done.
template <class T>
bool ForwardRun<T>::meet(Member& me, Barrier& barrier, int members) noexcept {
  const bool all = members == plan.threads(), caller = me.thread == 0;
  if (!barrier.wait(members) || !all) return true;
  // Those who leave may not look at the plan any more.
  if (!caller) return false;
  went_on_alone();
  plan = {};
  me.place = {};
  me.index = 0;
  me.members = 1;
  me.space = scratch.of_thread(0, packed, {args.batch, args.max_time, 1});
  return true;
}

template <class T>
void ForwardRun<T>::thread_main(int thread) noexcept {
  const Place place = plan.place(thread);
  Member me{thread,
            place,
            plan.member(place),
            plan.row_members(),
            scratch.of_thread(thread, packed, room),
            rows.count(place.row_group)};
  if (gather) gather_inputs(me);
  if (gather && !meet(me, row_barriers[place.row_group], me.members)) return;
  if (run_layers(me)) finish_output(me);
}

// Whether this thread is still there.
template <class T>
bool ForwardRun<T>::run_layers(Member& me) noexcept {
  const RnnSpec& spec = packed.spec();
  Barrier& barrier = row_barriers[me.place.row_group];
  for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
    for (std::int64_t d = me.place.dir_group; d < spec.num_dirs(); d += plan.dir_groups) {
      if (!run_direction(me, layer, d)) return false;
    }
    if (!meet(me, barrier, me.members)) return false;
    finish_layer(me, layer);
    finish_every(me, layer);
    if (dropping && layer + 1 < spec.num_layers) {
      // States are read from the outputs before dropout may overwrite them.
      if (!meet(me, barrier, me.members)) return false;
      drop(me, layer);
      if (!meet(me, barrier, me.members)) return false;
    }
  }
  return true;
}

template <class T>
void ForwardRun<T>::gather_inputs(const Member& me) noexcept {
  const RnnSpec& spec = packed.spec();
  const auto user_x = sequence_rows<T>(args.x, spec, args, spec.input_size);
  const auto user_h0 = state_rows<T>(args.h0, spec, args, spec.hidden_size());
  const auto user_c0 = state_rows<T>(args.c0, spec, args, spec.num_units);
  for (std::int64_t i = me.index; i < me.rows; i += me.members) {
    const std::int64_t b = rows.row(me.place.row_group, i);
    for (std::int64_t t = 0; t < rows.length(b); ++t) {
      user_x.load(packed.table(), t, b, spec.input_size, x.at(t, b));
    }
    for (std::int64_t p = 0; p < spec.num_pseudo_layers(); ++p) {
      if (h0.base) user_h0.load(packed.table(), p, b, spec.hidden_size(), h0.at(p, b));
      if (c0.base) user_c0.load(packed.table(), p, b, spec.num_units, c0.at(p, b));
    }
  }
}

// Rows longer than `step`; they come first. `from` is the number of an earlier step.
template <class T>
std::int64_t ForwardRun<T>::active(const Member& me, std::int64_t step, std::int64_t from) const {
  while (from > 0 && rows.length(rows.row(me.place.row_group, from - 1)) <= step) --from;
  return from;
}

// The step after the last one that still fits a chunk; a chunk has one step at least.
template <class T>
std::int64_t ForwardRun<T>::chunk_end(const Member& me, std::int64_t step,
                                      std::int64_t most_rows) const {
  std::int64_t sum = 0, count = me.rows;
  for (const std::int64_t first = step;; ++step) {
    count = active(me, step, count);
    sum += count;
    if (count == 0 || (sum > most_rows && step > first)) return step;
  }
}

template <class T>
ForwardStep<T> ForwardRun<T>::step_call(const Member& me, std::int64_t layer,
                                        std::int64_t direction,
                                        const Share& vectors) const noexcept {
  const RnnSpec& spec = packed.spec();
  const PackedLayer<T>& weights = packed.layer(layer, direction);
  ForwardStep<T> call{};
  call.w = weights.r.panels(vectors.first, vectors.last, me.space.staging);
  call.pre = me.space.pre;
  call.bias = weights.bias;
  call.hn_bias = weights.hn_bias;
  call.units = spec.num_units;
  call.clip = spec.cell_clip.has_value();
  if (call.clip) {
    call.clip_low = static_cast<T>((*spec.cell_clip)[0]);
    call.clip_high = static_cast<T>((*spec.cell_clip)[1]);
  }
  call.round_c = spec.dtype == DType::kFloat16;
  call.round_h = call.round_c && !spec.projecting();
  call.rows = me.rows;
  return call;
}

// Whether this thread is still there.
template <class T>
bool ForwardRun<T>::run_direction(Member& me, std::int64_t layer, std::int64_t direction) noexcept {
  const PackedMatrix<T>& matrix = packed.layer(layer, direction).r;
  const std::int64_t grain = packed.gates() == 1 ? 1 : matrix.width;
  std::int64_t first = 0;
  while (true) {
    const int sharing = plan.panel_threads;
    const Share vectors(matrix.vectors, grain, me.place.panel, sharing);
    const std::int64_t own = (vectors.last - vectors.first) * matrix.lanes;
    const std::int64_t most =
        own ? std::min(me.space.a_rows, me.space.pre_size / own) : me.space.a_rows;
    const std::int64_t last = chunk_end(me, first, most);
    if (last == first) return true;
    project(me, layer, direction, first, last, vectors);
    ForwardStep<T> call = step_call(me, layer, direction, vectors);
    for (std::int64_t s = first, count = me.rows; s < last; ++s) {
      count = active(me, s, count);
      call.pre_rows += count;
    }
    do {
      if (!step(me, layer, direction, first, call)) return false;
      // Who goes on alone has more to project.
    } while (++first < last && plan.panel_threads == sharing);
  }
}

template <class T>
void ForwardRun<T>::project(const Member& me, std::int64_t layer, std::int64_t direction,
                            std::int64_t first, std::int64_t last, const Share& vectors) noexcept {
  const PackedLayer<T>& weights = packed.layer(layer, direction);
  const Grid<T>& input = layer == 0 ? x : scratch.layers[layer - 1].input;
  std::int64_t count = 0, now = me.rows;
  for (std::int64_t s = first; s < last; ++s) {
    now = active(me, s, now);
    for (std::int64_t i = 0; i < now; ++i) {
      const std::int64_t b = rows.row(me.place.row_group, i);
      me.space.a[count++] = input.at(time_of(direction, s, b), b);
    }
  }
  if (layer == 0 && packed.spec().skips_input()) {
    packed.kernels().skip({packed.gates(), vectors.first, vectors.last, weights.r.width, me.space.a,
                           count, me.space.pre, packed.spec().num_units});
    return;
  }
  packed.kernels().product({weights.w.panels(vectors.first, vectors.last, me.space.staging),
                            me.space.a, 1, count, nullptr, false, nullptr, 0, me.space.pre,
                            nullptr});
}

template <class T>
bool ForwardRun<T>::step(Member& me, std::int64_t layer, std::int64_t direction, std::int64_t step,
                         ForwardStep<T>& call) noexcept {
  const RnnSpec& spec = packed.spec();
  const LayerStore<T>& store = scratch.layers[layer];
  const auto d = static_cast<std::size_t>(direction);
  const std::int64_t p = layer * spec.num_dirs() + direction;
  const std::int64_t side = direction * spec.hidden_size(), back = direction == 0 ? -1 : 1;
  const ThreadSpace<T>& space = me.space;
  call.rows = active(me, step, call.rows);
  for (std::int64_t i = 0; i < call.rows; ++i) {
    const std::int64_t b = rows.row(me.place.row_group, i);
    const std::int64_t t = time_of(direction, step, b);
    T* const h = store.out.at(t, b) + side;
    space.h[i] = spec.projecting() ? store.h_tilde[d].at(t, b) : h;
    if (step > 0) {
      space.h_prev[i] = store.out.at(t + back, b) + side;
    } else {
      space.h_prev[i] = h0.base ? h0.at(p, b) : packed.zeros();
    }
    if (spec.is_lstm()) {
      space.c[i] = store.c[d].at(t, b);
      space.c_prev[i] = step > 0  ? store.c[d].at(t + back, b)
                        : c0.base ? c0.at(p, b)
                                  : packed.zeros();
    }
    if (saving) space.gates[i] = store.gates[d].at(t, b);
  }
  call.h_prev = space.h_prev;
  call.c_prev = space.c_prev;
  call.c = space.c;
  call.h = space.h;
  call.gates = saving ? space.gates : nullptr;
  // What of the weights stayed in the cache after a step is read first in the next.
  call.w.reverse = step % 2 == 1;
  packed.kernels().forward[mode_index(spec.mode)](call);
  call.pre_first += call.rows;
  if (args.layer_cells && args.layer_cells[layer]) keep_cells(me, layer, direction, step, call);
  Barrier& barrier = step_barriers[me.place.row_group * plan.dir_groups + me.place.dir_group];
  if (!meet(me, barrier, plan.panel_threads)) return false;
  if (!spec.projecting()) return true;
  for (std::int64_t i = 0; i < call.rows; ++i) {
    const std::int64_t b = rows.row(me.place.row_group, i);
    space.c[i] = store.out.at(time_of(direction, step, b), b) + side;
    space.c_prev[i] = space.h[i];
  }
  project_output(me, layer, direction, call.rows);
  return meet(me, barrier, plan.panel_threads);
}

// A thread copies the units that it computed: the next step may overwrite them before others come.
template <class T>
void ForwardRun<T>::keep_cells(const Member& me, std::int64_t layer, std::int64_t direction,
                               std::int64_t step, const ForwardStep<T>& call) noexcept {
  const RnnSpec& spec = packed.spec();
  const std::int64_t lanes = packed.layer(layer, direction).r.lanes, units = spec.num_units;
  const std::int64_t first = call.w.first / packed.gates() * lanes;
  const std::int64_t count = std::min(units, call.w.last / packed.gates() * lanes) - first;
  if (count <= 0) return;
  const auto cells = sequence_rows<T>(args.layer_cells[layer], spec, args, spec.num_dirs() * units)
                         .from(direction * units + first);
  for (std::int64_t i = 0; i < call.rows; ++i) {
    const std::int64_t b = rows.row(me.place.row_group, i);
    cells.store(packed.table(), time_of(direction, step, b), b, count, me.space.c[i] + first);
  }
}

// h = Wp h~ for the rows of this step, whose pointers lie in the places of c and c_prev.
template <class T>
void ForwardRun<T>::project_output(const Member& me, std::int64_t layer, std::int64_t direction,
                                   std::int64_t active_rows) noexcept {
  const PackedMatrix<T>& proj = packed.layer(layer, direction).proj;
  const Share vectors(proj.vectors, 1, me.place.panel, plan.panel_threads);
  const std::int64_t columns = packed.spec().hidden_size();
  packed.kernels().product({proj.panels(vectors.first, vectors.last, me.space.staging),
                            me.space.c_prev, 1, active_rows, nullptr, false, me.space.c, columns,
                            nullptr, nullptr});
  if constexpr (sizeof(T) == sizeof(float)) {
    if (packed.spec().dtype != DType::kFloat16) return;
    const std::int64_t first = vectors.first * proj.lanes;
    const std::int64_t last = std::min(columns, vectors.last * proj.lanes);
    for (std::int64_t i = 0; i < active_rows && first < last; ++i) {
      packed.table().round_half(me.space.c[i] + first, last - first);
    }
  }
}

template <class T>
void ForwardRun<T>::finish_layer(const Member& me, std::int64_t layer) noexcept {
  const RnnSpec& spec = packed.spec();
  const LayerStore<T>& store = scratch.layers[layer];
  const std::int64_t width = spec.hidden_size();
  const auto hn = state_rows<T>(args.hn, spec, args, width);
  const auto cn = state_rows<T>(args.cn, spec, args, spec.num_units);
  for (std::int64_t i = me.index; i < me.rows; i += me.members) {
    const std::int64_t b = rows.row(me.place.row_group, i), length = rows.length(b);
    for (std::int64_t d = 0; d < spec.num_dirs(); ++d) {
      const std::int64_t p = layer * spec.num_dirs() + d, t = d == 0 ? length - 1 : 0;
      const T* h = length > 0 ? store.out.at(t, b) + d * width : h0.base ? h0.at(p, b) : nullptr;
      if (args.hn) hn.store(packed.table(), p, b, width, h);
      if (!args.cn || !spec.is_lstm()) continue;
      const T* c = length > 0 ? store.c[static_cast<std::size_t>(d)].at(t, b)
                   : c0.base  ? c0.at(p, b)
                              : nullptr;
      cn.store(packed.table(), p, b, spec.num_units, c);
    }
  }
}

// Outputs of this layer that the caller asked for, and the padding of its cells.
template <class T>
void ForwardRun<T>::finish_every(const Member& me, std::int64_t layer) noexcept {
  const RnnSpec& spec = packed.spec();
  void* const out = args.layer_outputs ? args.layer_outputs[layer] : nullptr;
  void* const cells = args.layer_cells ? args.layer_cells[layer] : nullptr;
  const std::int64_t out_width = spec.output_size(), cell_width = spec.num_dirs() * spec.num_units;
  const auto out_rows = sequence_rows<T>(out, spec, args, out_width);
  const auto cell_rows = sequence_rows<T>(cells, spec, args, cell_width);
  const Grid<T>& from = scratch.layers[layer].out;
  for (std::int64_t i = me.index; i < me.rows; i += me.members) {
    const std::int64_t b = rows.row(me.place.row_group, i), length = rows.length(b);
    for (std::int64_t t = 0; out && t < args.max_time; ++t) {
      out_rows.store(packed.table(), t, b, out_width, t < length ? from.at(t, b) : nullptr);
    }
    for (std::int64_t t = length; cells && t < args.max_time; ++t) {
      cell_rows.store(packed.table(), t, b, cell_width, nullptr);
    }
  }
}

template <class T>
void ForwardRun<T>::drop(const Member& me, std::int64_t layer) noexcept {
  const RnnSpec& spec = packed.spec();
  const LayerStore<T>& store = scratch.layers[layer];
  const std::int64_t width = spec.output_size();
  for (std::int64_t i = me.index; i < me.rows; i += me.members) {
    const std::int64_t b = rows.row(me.place.row_group, i);
    for (std::int64_t t = 0; t < rows.length(b); ++t) {
      const DropoutRow at{static_cast<std::uint32_t>(layer), static_cast<std::uint32_t>(t),
                          static_cast<std::uint32_t>(b)};
      dropout_mask<T>(args.dropout, at, spec.dropout,
                      {me.space.mask, static_cast<std::size_t>(width)});
      T* to = store.input.at(t, b);
      if (to != store.out.at(t, b)) std::copy_n(store.out.at(t, b), width, to);
      packed.kernels().multiply(me.space.mask, to, width);
    }
  }
}

template <class T>
void ForwardRun<T>::finish_output(const Member& me) noexcept {
  const RnnSpec& spec = packed.spec();
  const auto y = sequence_rows<T>(args.y, spec, args, spec.output_size());
  const Grid<T>& out = scratch.layers[spec.num_layers - 1].out;
  const bool elsewhere = out.base != args.y;
  for (std::int64_t i = me.index; i < me.rows; i += me.members) {
    const std::int64_t b = rows.row(me.place.row_group, i), length = rows.length(b);
    for (std::int64_t t = elsewhere ? 0 : length; t < args.max_time; ++t) {
      y.store(packed.table(), t, b, spec.output_size(), t < length ? out.at(t, b) : nullptr);
    }
  }
}

template <class T>
void place_layers(ForwardRun<T>& run) {
  const RnnSpec& spec = run.packed.spec();
  const ForwardArgs& args = run.args;
  const Scratch<T>& scratch = run.scratch;
  const std::int64_t out = spec.output_size(), units = spec.num_units;
  const auto y = sequence_rows<T>(args.y, spec, args, out);
  for (std::int64_t l = 0; l < spec.num_layers; ++l) {
    LayerStore<T>& store = scratch.layers[l];
    store = {};
    if (l + 1 < spec.num_layers) {
      store.out = {scratch.ping[l % 2], args.batch * out, out};
    } else if (y.half) {
      store.out = {scratch.last, args.batch * out, out};
    } else {
      store.out = {static_cast<T*>(args.y), y.step, y.row};
    }
    store.input = store.out;
    for (std::int64_t d = 0; d < spec.num_dirs(); ++d) {
      const auto i = static_cast<std::size_t>(d);
      // Of its own for every layer: cn is read while the next one has begun.
      store.c[i] = {scratch.c + (l * spec.num_dirs() + d) * args.batch * units, 0, units};
      store.h_tilde[i] = {scratch.h_tilde + d * args.batch * units, 0, units};
    }
  }
}

template <class T>
void run_forward(ForwardRun<T>& run, ThreadLease& lease) {
  lease.run([&run](int thread) { run.thread_main(thread); });
}

template struct ForwardRun<float>;
template struct ForwardRun<double>;
template void place_layers<float>(ForwardRun<float>&);
template void place_layers<double>(ForwardRun<double>&);
template void run_forward<float>(ForwardRun<float>&, ThreadLease&);
template void run_forward<double>(ForwardRun<double>&, ThreadLease&);

}  // namespace openrnn::cpu
