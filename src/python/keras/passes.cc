#include "python/keras/passes.h"

#include <algorithm>

#include "python/keras/states.h"

namespace openrnn::python::keras {
namespace {

Shape sequence(const Call& call, std::int64_t width) {
  return {call.steps.batch(), call.steps.time(), width};
}

std::size_t width_in(const Cell& cell) {
  return static_cast<std::size_t>(cell.spec().input_size) * cell.element();
}

Columns columns_of(const Cell& cell, std::size_t direction) {
  const std::int64_t units = cell.spec().num_units;
  return {.first = static_cast<std::int64_t>(direction) * units,
          .count = units,
          .width = cell.spec().output_size(),
          .reversed = direction == 1};
}

// Whether the output of the last step is the state of its row, else it is 0 as in Steps::spread.
bool shows_state(const Call& call, std::int64_t row, const Columns& columns) {
  return call.steps.length(row) > 0 && (call.steps.ends(row, columns.reversed) || !call.zero);
}

template <class T>
void show_last(const Call& call, const T* hn, T* y, const Columns& columns) {
  for (std::int64_t row = 0; row < call.steps.batch(); ++row) {
    T* const to = y + row * columns.width + columns.first;
    if (shows_state(call, row, columns)) {
      std::copy_n(hn + row * columns.count, columns.count, to);
    } else {
      std::fill_n(to, columns.count, T{0});
    }
  }
}

// Adds its gradient to that of the state; both and the sum are [B, D*U].
template <class T>
void add_last(const Call& call, const T* dy, const T* dhn, T* sum, const Columns& columns) {
  for (std::int64_t row = 0; row < call.steps.batch(); ++row) {
    const bool shown = shows_state(call, row, columns);
    const std::int64_t first = row * columns.width + columns.first;
    for (std::int64_t u = first; u < first + columns.count; ++u) {
      sum[u] = (shown ? dy[u] : T{0}) + (dhn ? dhn[u] : T{0});
    }
  }
}

// Runs `compute` with the pointers as those of the dtype's elements, for each direction's columns.
template <class Compute>
void each_direction(const Cell& cell, const Compute& compute) {
  for (std::size_t d = 0; d < cell.directions(); ++d) {
    if (cell.spec().dtype == DType::kFloat64) {
      compute(double{}, d, columns_of(cell, d));
    } else {
      compute(float{}, d, columns_of(cell, d));
    }
  }
}

void finish(const Cell& cell, const Call& call, const void* y, const Made& out) {
  each_direction(cell, [&](auto zero, std::size_t d, const Columns& columns) {
    using T = decltype(zero);
    if (!call.sequences) {
      show_last(call, static_cast<const T*>(out.h[d]), static_cast<T*>(out.sequence), columns);
    } else if (y != out.sequence || call.steps.lengths() != nullptr) {
      call.steps.spread(static_cast<const T*>(y), static_cast<T*>(out.sequence), columns,
                        call.zero);
    }
  });
}

// Of a call, but for its arrays.
ForwardArgs sizes_of(const Call& call) {
  ForwardArgs args;
  args.max_time = call.steps.time();
  args.batch = call.steps.batch();
  args.time_major = false;
  args.sequence_lengths = call.steps.lengths();
  args.max_threads = call.threads;
  return args;
}

// Gradients of the engine's outputs, from those of Keras's.
struct Gradients {
  DeviceArray y, joined, summed, cells;

  void of(const Cell& cell, const Call& call, const Given& from, BackwardArgs& args) {
    const std::int64_t batch = call.steps.batch(), width = cell.spec().output_size();
    args.dy = call.sequences ? from.sequence : nullptr;
    args.dhn = join_states(cell, batch, from.h, &joined);
    args.dcn = join_states(cell, batch, from.c, &cells);
    if (from.sequence == nullptr) return;
    const void* const states = args.dhn;
    if (!call.sequences) {
      summed = scratch(cell, {batch, width});
      args.dhn = summed.data();
    } else if (call.steps.lengths() != nullptr) {
      y = scratch(cell, sequence(call, width));
      args.dy = y.data();
    }
    each_direction(cell, [&](auto zero, std::size_t, const Columns& columns) {
      using T = decltype(zero);
      const T* const given = static_cast<const T*>(from.sequence);
      if (!call.sequences) {
        add_last(call, given, static_cast<const T*>(states), static_cast<T*>(summed.mutable_data()),
                 columns);
      } else if (call.steps.lengths() != nullptr) {
        call.steps.collect(given, static_cast<T*>(y.mutable_data()), columns, call.zero);
      }
    });
  }
};

bool any_wanted(const Both<WeightGradients>& weights) {
  return std::any_of(weights.begin(), weights.end(), [](const WeightGradients& own) {
    return own.kernel || own.recurrent || own.bias;
  });
}

}  // namespace

std::shared_ptr<const SavedCall> forward(const std::shared_ptr<Cell>& cell,
                                         const Both<Weights>& weights, Call call, const Given& in,
                                         const Made& out, const Saving& saving) {
  const Steps& steps = call.steps;
  const std::int64_t batch = steps.batch();
  DeviceArray x, y, h0, c0, hn, cn;
  ForwardArgs args = sizes_of(call);
  args.params = cell->packed(
      weights, {saving.wanted ? PackFor::kTraining : PackFor::kInference, call.threads});
  args.reserve = saving.reserve;
  args.x = in.sequence;
  if (!steps.in_place()) {
    x = scratch(*cell, sequence(call, cell->spec().input_size));
    steps.gather(in.sequence, x.mutable_data(), width_in(*cell));
    args.x = x.data();
  }
  args.h0 = join_states(*cell, batch, in.h, &h0);
  args.c0 = join_states(*cell, batch, in.c, &c0);
  args.y = out.sequence;
  // In the order of the walk the outputs are the engine's own, unless a mask has holes.
  if (!call.sequences || (!steps.in_place() && steps.lengths() != nullptr)) {
    y = scratch(*cell, sequence(call, cell->spec().output_size()));
    args.y = y.mutable_data();
  }
  args.hn = room_for_states(*cell, batch, out.h, &hn);
  args.cn = room_for_states(*cell, batch, out.c, &cn);
  auto saved = std::make_shared<SavedCall>();
  if (saving.wanted) {
    saved->forward = cell->engine().forward_saving(args);
  } else {
    cell->engine().forward(args);
  }
  split_states(*cell, batch, hn, out.h);
  split_states(*cell, batch, cn, out.c);
  finish(*cell, call, args.y, out);
  if (!saving.wanted) return nullptr;
  const std::int64_t unknown = 0;
  saved->bytes = cell->engine().saved_bytes(cell->spec(), steps.time(), batch, 0).value_or(unknown);
  saved->cell = cell;
  saved->call = std::move(call);
  return saved;
}

std::optional<std::int64_t> reserve_bytes(const Cell& cell, std::int64_t time, std::int64_t batch) {
  ForwardArgs args;
  args.max_time = time;
  args.batch = batch;
  args.h0 = args.c0 = &args;  // no array is read
  return cell.engine().reserve_bytes(cell.spec(), args);
}

SavedCall saved_in(const std::shared_ptr<Cell>& cell, const Both<Weights>& weights, Call call,
                   void* reserve) {
  ForwardArgs args = sizes_of(call);
  args.params = cell->packed(weights, {PackFor::kTraining, call.threads});
  args.h0 = args.c0 = &args;  // no array is read
  args.reserve = reserve;
  return {.cell = cell, .forward = cell->engine().saved_in(args), .call = std::move(call)};
}

void backward(const SavedCall& saved, const Given& from, const Made& to,
              const Both<WeightGradients>& weights) {
  const Cell& cell = *saved.cell;
  const Call& call = saved.call;
  const std::int64_t batch = call.steps.batch();
  DeviceArray dx, dh0, dc0, params;
  BackwardArgs args;
  args.saved = saved.forward.get();
  Gradients gradients;
  gradients.of(cell, call, from, args);
  args.dx = to.sequence;
  if (to.sequence != nullptr && !call.steps.in_place()) {
    dx = scratch(cell, sequence(call, cell.spec().input_size));
    args.dx = dx.mutable_data();
  }
  args.dh0 = room_for_states(cell, batch, to.h, &dh0);
  args.dc0 = room_for_states(cell, batch, to.c, &dc0);
  if (any_wanted(weights)) {
    params = scratch(cell, {cell.layout().size()});
    args.dparams = params.mutable_data();
  }
  cell.engine().backward(args);
  split_states(cell, batch, dh0, to.h);
  split_states(cell, batch, dc0, to.c);
  if (args.dx != to.sequence) call.steps.scatter(args.dx, to.sequence, width_in(cell));
  if (args.dparams != nullptr) cell.split(args.dparams, weights);
}

}  // namespace openrnn::python::keras
