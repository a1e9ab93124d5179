// The gradient of a recurrent call for each row of its batch.
#include <algorithm>

#include "ops/gradients/rnn.h"
#include "ops/per_sample/rows.h"

namespace openrnn::ops::gradients {
namespace {

using Arrays = std::vector<DeviceArray>;
using Saved = std::shared_ptr<const SavedCall>;

constexpr std::size_t kParams = 3;
// Gradients of rows that are made at once for their norms.
constexpr std::int64_t kBytesAtOnce = std::int64_t{32} << 20U;

std::int64_t batch_of(const SavedCall& saved) { return saved.x_shape[saved.time_major ? 1 : 0]; }

// Rows of the batch in a sequence or a state of the call.
RowsView view_of(const SavedCall& saved, std::int64_t width) {
  Shape shape = saved.x_shape;
  shape[2] = width;
  return RowsView::along(shape, saved.time_major ? 1 : 0);
}
RowsView view_of_state(const SavedCall& saved, const Shape& shape) {
  return shape.empty() ? RowsView() : RowsView::along(shape, saved.time_major ? 1 : 0);
}

BackwardArgs upstream_args(const SavedCall& saved, const Arrays& outputs) {
  return {.saved = saved.forward.get(),
          .dy = outputs[0].data(),
          .dhn = outputs[1].data(),
          .dcn = outputs.size() > 2 ? outputs[2].data() : nullptr};
}

// [last - first, parameters], before it is computed.
DeviceArray make_rows(const SavedCall& saved, std::int64_t rows) {
  return {*saved.device, saved.spec->dtype, {rows, params_size(saved.spec)}};
}

// The same as gradients of the parameters that the call was given, whose tail it does not read.
DeviceArray with_tail(const SavedCall& saved, const DeviceArray& rows) {
  const std::int64_t size = params_size(saved.spec), count = rows.shape()[0];
  if (saved.params_shape[0] == size) return rows;
  DeviceArray longer =
      DeviceArray::zeros(rows.device(), rows.dtype(), {count, saved.params_shape[0]});
  const auto bytes = [&](std::int64_t elements) {
    return static_cast<std::size_t>(elements) * dtype_size(rows.dtype());
  };
  rows.device().copy({.count = count,
                      .bytes = bytes(size),
                      .from = rows.data(),
                      .from_stride = bytes(size),
                      .to = longer.mutable_data(),
                      .to_stride = bytes(saved.params_shape[0])});
  return longer;
}

DeviceArray rows_of(const SavedCall& saved, const Arrays& outputs, std::int64_t first,
                    std::int64_t last) {
  DeviceArray rows = make_rows(saved, last - first);
  BackwardArgs args = upstream_args(saved, outputs);
  args.row_dparams = rows.mutable_data();
  args.first_row = first;
  args.last_row = last;
  saved.engine->backward(args);
  return with_tail(saved, rows);
}

// Of a call that keeps too little for norms on the way.
std::vector<double> squares_in_parts(const SavedCall& saved, const Arrays& outputs) {
  const std::int64_t size = params_size(saved.spec), batch = batch_of(saved);
  const std::int64_t bytes = size * static_cast<std::int64_t>(dtype_size(saved.spec->dtype));
  const std::int64_t at_once = std::max<std::int64_t>(kBytesAtOnce / bytes, 1);
  std::vector<double> squares;
  for (std::int64_t first = 0; first < batch; first += at_once) {
    const DeviceArray part = rows_of(saved, outputs, first, std::min(first + at_once, batch));
    const std::int64_t width = part.shape()[1];
    const auto* at = static_cast<const std::byte*>(part.data());
    for (std::int64_t b = 0; b < part.shape()[0]; ++b) {
      squares.push_back(part.device().sum_of_squares(part.dtype(), width, at));
      at += static_cast<std::size_t>(width) * dtype_size(part.dtype());
    }
  }
  return squares;
}

void check(const SavedCall& saved, const RowCall& call) {
  if (!saved.engine->has_row_gradients()) {
    throw UnsupportedError(message("[per_sample] '", saved.call, "' ran on engine '",
                                   saved.engine->name(),
                                   "', which does not tell rows apart, expected engine 'cpu'"));
  }
  const RowsView views[] = {view_of(saved, saved.spec->output_size()),
                            view_of_state(saved, saved.h_shape),
                            view_of_state(saved, saved.c_shape)};
  for (std::size_t i = 0; i < call.output_gradients.size(); ++i) {
    if (call.output_gradients[i].empty() || call.views[i] == views[i]) continue;
    per_sample::refuse_meeting(saved.call);
  }
}

}  // namespace

std::vector<RowGradient> row_gradients(const Saved& saved, const RowCall& call) {
  check(*saved, call);
  const Arrays outputs = call.output_gradients;
  std::vector<RowGradient> found(kParams + 1);
  const auto apart = [&](std::size_t i, const Shape& shape, const RowsView& view) {
    if (!call.wanted[i]) return static_cast<void*>(nullptr);
    found[i].gradient = DeviceArray(*saved->device, saved->spec->dtype, shape);
    found[i].view = view;
    return found[i].gradient.mutable_data();
  };
  BackwardArgs args = upstream_args(*saved, outputs);
  args.dx = apart(0, saved->x_shape, view_of(*saved, saved->spec->input_size));
  args.dh0 = apart(1, saved->h_shape, view_of_state(*saved, saved->h_shape));
  args.dc0 = apart(2, saved->c_shape, view_of_state(*saved, saved->c_shape));
  const std::int64_t batch = batch_of(*saved);
  const OfRows wish = call.wanted[kParams] ? call.shared[kParams] : OfRows::kNothing;
  SharedGradient& params = found[kParams].shared;
  DeviceArray all;
  if (wish == OfRows::kSquares && !saved->recomputes) {
    params.squares.resize(static_cast<std::size_t>(batch));
    args.row_norms = params.squares.data();
  } else if (wish == OfRows::kAll) {
    all = make_rows(*saved, batch);
    args.row_dparams = all.mutable_data();
    args.last_row = batch;
  }
  if (args.dx || args.dh0 || args.dc0 || args.row_norms || args.row_dparams) {
    saved->engine->backward(args);
  }
  if (wish == OfRows::kSquares && saved->recomputes) {
    params.squares = squares_in_parts(*saved, outputs);
  } else if (wish == OfRows::kAll) {
    params.of_rows = [all = with_tail(*saved, all)](std::int64_t, std::int64_t) { return all; };
  } else if (wish == OfRows::kLater) {
    params.of_rows = [saved, outputs](std::int64_t first, std::int64_t last) {
      return rows_of(*saved, outputs, first, last);
    };
  }
  return found;
}

}  // namespace openrnn::ops::gradients
