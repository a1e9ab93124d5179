#include "python/keras/passes.h"

#include <algorithm>

#include "openrnn/runtime.h"

namespace openrnn::python::keras {
namespace {

DeviceArray scratch(const Cell& cell, Shape shape) {
  return {device("cpu"), cell.spec().dtype, std::move(shape)};
}

Shape sequence(const Call& call, std::int64_t width) {
  return {call.steps.batch(), call.steps.time(), width};
}

std::size_t width_in(const Cell& cell) {
  return static_cast<std::size_t>(cell.spec().input_size) * cell.element();
}

// The output of the last step: the state where it counts, else as Steps::spread.
template <class T>
void show_last(const Call& call, const T* hn, T* y, std::int64_t units) {
  for (std::int64_t row = 0; row < call.steps.batch(); ++row) {
    const bool shown = call.steps.length(row) > 0 && (call.steps.ends(row) || !call.zero);
    if (shown) {
      std::copy_n(hn + row * units, units, y + row * units);
    } else {
      std::fill_n(y + row * units, units, T{0});
    }
  }
}

// Adds its gradient to that of the state.
template <class T>
void add_last(const Call& call, const T* dy, const T* dhn, T* sum, std::int64_t units) {
  for (std::int64_t row = 0; row < call.steps.batch(); ++row) {
    const bool shown = call.steps.length(row) > 0 && (call.steps.ends(row) || !call.zero);
    for (std::int64_t u = row * units; u < (row + 1) * units; ++u) {
      sum[u] = (shown ? dy[u] : T{0}) + (dhn ? dhn[u] : T{0});
    }
  }
}

// Runs `compute` with the pointers as those of the dtype's elements.
template <class Compute>
void typed(const Cell& cell, const Compute& compute) {
  if (cell.spec().dtype == DType::kFloat64) {
    compute(double{});
  } else {
    compute(float{});
  }
}

void finish(const Cell& cell, const Call& call, const void* y, const void* hn, void* to) {
  const std::int64_t units = cell.spec().num_units;
  typed(cell, [&](auto zero) {
    using T = decltype(zero);
    if (!call.sequences) {
      show_last(call, static_cast<const T*>(hn), static_cast<T*>(to), units);
    } else if (y != to || call.steps.lengths() != nullptr) {
      call.steps.spread(static_cast<const T*>(y), static_cast<T*>(to), units, call.zero);
    }
  });
}

}  // namespace

std::shared_ptr<const SavedCall> forward(const std::shared_ptr<Cell>& cell, const Weights& weights,
                                         Call call, const Inputs& in, const Outputs& out,
                                         bool saving) {
  const Steps& steps = call.steps;
  DeviceArray x, y;
  ForwardArgs args;
  args.params = cell->packed(weights, saving ? PackFor::kTraining : PackFor::kInference);
  args.max_time = steps.time();
  args.batch = steps.batch();
  args.time_major = false;
  args.sequence_lengths = steps.lengths();
  args.x = in.x;
  if (!steps.in_place()) {
    x = scratch(*cell, sequence(call, cell->spec().input_size));
    steps.gather(in.x, x.mutable_data(), width_in(*cell));
    args.x = x.data();
  }
  args.h0 = in.h0;
  args.c0 = in.c0;
  args.y = out.y;
  // In the order of the walk the outputs are the engine's own, unless a mask has holes.
  if (!call.sequences || (!steps.in_place() && steps.lengths() != nullptr)) {
    y = scratch(*cell, sequence(call, cell->spec().num_units));
    args.y = y.mutable_data();
  }
  args.hn = out.hn;
  args.cn = out.cn;
  auto saved = std::make_shared<SavedCall>();
  if (saving) {
    saved->forward = cell->engine().forward_saving(args);
  } else {
    cell->engine().forward(args);
  }
  finish(*cell, call, args.y, out.hn, out.y);
  if (!saving) return nullptr;
  const std::int64_t unknown = 0;
  saved->bytes =
      cell->engine().saved_bytes(cell->spec(), steps.time(), steps.batch(), 0).value_or(unknown);
  saved->cell = cell;
  saved->call = std::move(call);
  return saved;
}

void backward(const SavedCall& saved, const Inputs& from, const Outputs& to,
              const WeightGradients& weights) {
  const Cell& cell = *saved.cell;
  const Call& call = saved.call;
  const std::int64_t units = cell.spec().num_units;
  DeviceArray dy, dhn, dx, params;
  BackwardArgs args;
  args.saved = saved.forward.get();
  args.dy = call.sequences ? from.x : nullptr;
  args.dhn = from.h0;
  args.dcn = from.c0;
  typed(cell, [&](auto zero) {
    using T = decltype(zero);
    if (from.x == nullptr) return;
    const T* const given = static_cast<const T*>(from.x);
    if (!call.sequences) {
      dhn = scratch(cell, {call.steps.batch(), units});
      add_last(call, given, static_cast<const T*>(from.h0), static_cast<T*>(dhn.mutable_data()),
               units);
      args.dhn = dhn.data();
    } else if (call.steps.lengths() != nullptr) {
      dy = scratch(cell, sequence(call, units));
      call.steps.collect(given, static_cast<T*>(dy.mutable_data()), units, call.zero);
      args.dy = dy.data();
    }
  });
  args.dx = to.y;
  if (to.y != nullptr && !call.steps.in_place()) {
    dx = scratch(cell, sequence(call, cell.spec().input_size));
    args.dx = dx.mutable_data();
  }
  args.dh0 = to.hn;
  args.dc0 = to.cn;
  if (weights.kernel || weights.recurrent || weights.bias) {
    params = scratch(cell, {cell.layout().size()});
    args.dparams = params.mutable_data();
  }
  cell.engine().backward(args);
  if (args.dx != to.y) call.steps.scatter(args.dx, to.y, width_in(cell));
  if (args.dparams != nullptr) cell.split(args.dparams, weights);
}

}  // namespace openrnn::python::keras
