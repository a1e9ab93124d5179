#include "ops/per_sample/rows.h"

#include <algorithm>
#include <limits>

#include "ops/gradients/gradients.h"
#include "ops/symbolic/infer.h"
#include "ops/symbolic/replay.h"

namespace openrnn::ops {
namespace {

using gradients::upstream;

constexpr std::int64_t kMostRows = std::numeric_limits<std::int32_t>::max();

// [A, B, ..] to [B, A, ..].
DeviceArray swapped(const DeviceArray& x) {
  Shape shape = x.shape();
  std::swap(shape[0], shape[1]);
  DeviceArray y = make(x, x.dtype(), std::move(shape));
  const auto a = static_cast<std::size_t>(x.shape()[0]), b = static_cast<std::size_t>(x.shape()[1]);
  if (y.size_bytes() == 0) return y;
  const std::size_t inner = y.size_bytes() / (a * b);
  const auto* const from = static_cast<const std::byte*>(x.data());
  auto* const to = static_cast<std::byte*>(y.mutable_data());
  // Few long copies, as each is a call of the device.
  for (std::size_t i = 0; i < std::min(a, b); ++i) {
    const BlockCopy row{.count = static_cast<std::int64_t>(b),
                        .bytes = inner,
                        .from = from + i * b * inner,
                        .from_stride = inner,
                        .to = to + i * inner,
                        .to_stride = a * inner};
    const BlockCopy column{.count = static_cast<std::int64_t>(a),
                           .bytes = inner,
                           .from = from + i * inner,
                           .from_stride = b * inner,
                           .to = to + i * a * inner,
                           .to_stride = inner};
    x.device().copy(a <= b ? row : column);
  }
  return y;
}

DeviceArray gathered(const DeviceArray& table, std::int64_t cols, const DeviceArray& indices,
                     Shape shape) {
  DeviceArray out = make(table, table.dtype(), std::move(shape));
  table.device().gather_rows(table.dtype(), indices.size(), cols, table.data(),
                             static_cast<const std::int32_t*>(indices.data()), out.mutable_data());
  return out;
}

// Copies runs of rows from a where `choose` is `wanted`; the other rows of `to` stay.
void copy_chosen(const std::vector<bool>& choose, bool wanted, const DeviceArray& from,
                 DeviceArray& to) {
  const std::size_t row = choose.empty() ? 0 : to.size_bytes() / choose.size();
  for (std::size_t begin = 0, end; begin < choose.size(); begin = end) {
    for (end = begin; end < choose.size() && choose[end] == choose[begin];) ++end;
    if (choose[begin] != wanted) continue;
    from.device().copy({.count = 1,
                        .bytes = (end - begin) * row,
                        .from = static_cast<const std::byte*>(from.data()) + begin * row,
                        .from_stride = 0,
                        .to = static_cast<std::byte*>(to.mutable_data()) + begin * row,
                        .to_stride = 0});
  }
}

DeviceArray masked_rows(const std::vector<bool>& choose, bool wanted, const DeviceArray& from) {
  DeviceArray to = DeviceArray::zeros(from.device(), from.dtype(), from.shape());
  copy_chosen(choose, wanted, from, to);
  return to;
}

void check_lengths(const std::vector<std::int32_t>& lengths, std::int64_t max_time,
                   std::int64_t batch) {
  if (static_cast<std::int64_t>(lengths.size()) != batch) {
    throw ArgumentError(message("[reverse_sequence] ", lengths.size(), " lengths, expected ", batch,
                                ", one a row"));
  }
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    if (lengths[b] < 0 || lengths[b] > max_time) {
      throw ArgumentError(message("[reverse_sequence] lengths[", b, "] is ", lengths[b],
                                  ", expected 0 to ", max_time));
    }
  }
}

// The permutation of the rows of [T * B] (or [B * T]); its own inverse.
Array reversal(const std::vector<std::int32_t>& lengths, std::int64_t max_time, std::int64_t batch,
               bool time_major) {
  Array indices(DType::kInt32, {max_time * batch});
  const std::span<std::int32_t> to = indices.as<std::int32_t>();
  const auto place = [&](std::int64_t t, std::int64_t b) {
    return time_major ? t * batch + b : b * max_time + t;
  };
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t length = lengths.empty() ? max_time : lengths[static_cast<std::size_t>(b)];
    for (std::int64_t t = 0; t < max_time; ++t) {
      const std::int64_t source = t < length ? length - 1 - t : t;
      to[static_cast<std::size_t>(place(t, b))] = static_cast<std::int32_t>(place(source, b));
    }
  }
  return indices;
}

// Rows of the batch in x [A, B, ..], from those in [B, A, ..].
RowsView transposed_view(const RowsView& view, std::int64_t a, std::int64_t b) {
  if (view.rows == 1) return view;
  const std::int64_t each = a * b > 0 ? view.size() / (a * b) : 0;
  if (view.outer == 1 && view.rows == b && view.inner == a * each) return {a, b, each};
  if (view.outer == b && view.rows == a && view.inner == each) return {1, a, b * each};
  // Further in than both.
  if (a * b > 0 && view.outer % (a * b) != 0) per_sample::refuse_meeting("transpose_leading");
  return view;
}

void require_two_leading(const char* call, const Tensor& x) {
  require_floating(call, "x", x);
  if (x.shape().size() >= 2) return;
  throw ArgumentError(message("[", call, "] x has shape ", to_string(x.shape()),
                              ", expected at least 2 dimensions"));
}

}  // namespace

Tensor transpose_leading(const Tensor& x) {
  require_two_leading("transpose_leading", x);
  if (x.is_symbolic()) {
    return defer_one("transpose_leading", infer::transpose_leading(x), x);
  }
  return record_one(
      "transpose_leading", {x}, swapped(x.value()),
      [](const DeviceArray& dy) { return std::vector{swapped(dy)}; },
      [](const GradientCall& call) { return std::vector{transpose_leading(upstream(call))}; },
      [a = x.shape()[0], b = x.shape()[1]](const Node& node, const RowCall& call) {
        return per_sample::all_in(transposed_view(call.views[0], a, b), node, call);
      });
}

Tensor reverse_sequence(const Tensor& x, const std::vector<std::int32_t>& lengths,
                        bool time_major) {
  require_two_leading("reverse_sequence", x);
  if (x.is_symbolic()) {
    return defer_one("reverse_sequence", infer::like("reverse_sequence", x), x, lengths,
                     time_major);
  }
  const std::int64_t max_time = x.shape()[time_major ? 0 : 1];
  const std::int64_t batch = x.shape()[time_major ? 1 : 0];
  if (!lengths.empty()) check_lengths(lengths, max_time, batch);
  if (max_time > 0 && batch > kMostRows / max_time) {
    throw ArgumentError(message("[reverse_sequence] x has ", max_time, " times ", batch,
                                " rows, expected at most ", kMostRows));
  }
  const std::int64_t cols = span_size(x.shape(), 2, x.shape().size());
  const DeviceArray indices = DeviceArray::from_host(
      x.value().device(), reversal(lengths, max_time, batch, time_major).view());
  return record_one(
      "reverse_sequence", {x}, gathered(x.value(), cols, indices, x.shape()),
      [=](const DeviceArray& dy) { return std::vector{gathered(dy, cols, indices, dy.shape())}; },
      [=](const GradientCall& call) {
        return std::vector{reverse_sequence(upstream(call), lengths, time_major)};
      },
      [view = RowsView::along(x.shape(), time_major ? 1 : 0)](const Node& node,
                                                              const RowCall& call) {
        if (!(call.views[0] == view)) per_sample::refuse_meeting("reverse_sequence");
        return per_sample::same_places(node, call);
      });
}

Tensor reverse_sequence_by(const Tensor& x, const Tensor& lengths, bool time_major) {
  if (any_symbolic(x, lengths)) {
    return defer_one("reverse_sequence_by", infer::like("reverse_sequence", x), x, lengths,
                     time_major);
  }
  return reverse_sequence(x, *lengths_of("reverse_sequence", lengths), time_major);
}

Tensor select_rows(const std::vector<bool>& choose, const Tensor& a, const Tensor& b) {
  if (any_symbolic(a, b)) {
    return defer_one("select_rows", infer::same("select_rows", a, b), choose, a, b);
  }
  if (apart(a, b)) {
    const std::array<Tensor, 2> in = together("select_rows", a, b);
    return select_rows(choose, in[0], in[1]);
  }
  require_same("select_rows", a, b);
  if (a.shape().empty() || a.shape()[0] != static_cast<std::int64_t>(choose.size())) {
    throw ArgumentError(message("[select_rows] a has shape ", to_string(a.shape()), ", expected ",
                                choose.size(), " rows, one a choice"));
  }
  DeviceArray out = make(a, a.dtype(), a.shape());
  copy_chosen(choose, true, a.value(), out);
  copy_chosen(choose, false, b.value(), out);
  const bool want_a = a.tracked(), want_b = b.tracked();
  return record_one(
      "select_rows", {a, b}, std::move(out),
      [=](const DeviceArray& dy) {
        std::vector<DeviceArray> gradients(2);
        if (want_a) gradients[0] = masked_rows(choose, true, dy);
        if (want_b) gradients[1] = masked_rows(choose, false, dy);
        return gradients;
      },
      [=](const GradientCall& call) { return gradients::of_select_rows(call, choose); },
      per_sample::same_places);
}

Tensor embedding_lookup(const Tensor& table, const Tensor& indices) {
  require_floating("embedding_lookup", "table", table);
  if (any_symbolic(table, indices)) {
    const std::int64_t width = table.shape().size() == 2 ? table.shape()[1] : -1;
    return defer_one("embedding_lookup",
                     infer::lookup("embedding_lookup", table.dtype(), indices, width), table,
                     indices);
  }
  if (table.shape().size() != 2) {
    throw ArgumentError(message("[embedding_lookup] table has shape ", to_string(table.shape()),
                                ", expected 2 dimensions"));
  }
  require_indices("embedding_lookup", "indices", indices, 0, table.shape()[0]);
  const std::int64_t cols = table.shape()[1];
  Shape shape = indices.shape();
  shape.push_back(cols);
  const DeviceArray places = on_device(indices.value(), table.device());
  return record_one(
      "embedding_lookup", {table}, gathered(table.value(), cols, places, std::move(shape)),
      [=, table_shape = table.shape()](const DeviceArray& dy) {
        DeviceArray gradient = DeviceArray::zeros(dy.device(), dy.dtype(), table_shape);
        dy.device().scatter_add_rows(dy.dtype(), places.size(), cols, dy.data(),
                                     static_cast<const std::int32_t*>(places.data()),
                                     gradient.mutable_data());
        return std::vector{gradient};
      },
      [places = Tensor(places)](const GradientCall& call) {
        return std::vector{gradients::scattered(upstream(call), places, call.inputs[0].shape())};
      },
      [=, table_shape = table.shape()](const Node&, const RowCall& call) {
        per_sample::require_apart("embedding_lookup", call.views[0], cols);
        std::vector<RowGradient> found(1);
        found[0].shared = per_sample::scattered(
            call.shared[0], {call.output_gradients[0], call.views[0], cols}, places, table_shape);
        return found;
      });
}

Tensor one_hot(const Tensor& indices, std::int64_t depth, DType dtype) {
  if (depth < 1 || !is_floating(dtype)) {
    throw ArgumentError(message("[one_hot] depth is ", depth, " and dtype ", dtype_name(dtype),
                                ", expected at least 1 and a floating dtype"));
  }
  if (indices.is_symbolic()) {
    return defer_one("one_hot", infer::lookup("one_hot", dtype, indices, depth), indices, depth,
                     dtype);
  }
  require_indices("one_hot", "indices", indices, std::numeric_limits<std::int32_t>::min(), depth);
  Shape shape = indices.shape();
  shape.push_back(depth);
  Array rows(DType::kFloat32, std::move(shape));
  const Array host = indices.to_host();
  const std::span<const std::int32_t> places = host.as<std::int32_t>();
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] < 0) continue;
    rows.as<float>()[i * static_cast<std::size_t>(depth) + static_cast<std::size_t>(places[i])] = 1;
  }
  const Array result = openrnn::cast(rows.view(), dtype);
  return indices.placed() ? Tensor(result.view(), indices.device()) : Tensor(result.view());
}

}  // namespace openrnn::ops
