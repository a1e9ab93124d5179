#include "ops/dropout.h"

#include <atomic>

#include "openrnn/ops.h"
#include "ops/gradients/gradients.h"
#include "ops/per_sample/rows.h"
#include "ops/symbolic/infer.h"
#include "ops/symbolic/replay.h"

namespace openrnn::ops {
namespace {

using gradients::upstream;
using per_sample::same_places;
using Tensors = std::vector<Tensor>;

thread_local const PartScope* current_part = nullptr;

BatchPlace place_at(const Shape& shape, std::size_t axis) {
  return {.before = span_size(shape, 0, axis),
          .after = span_size(shape, axis + 1, shape.size() - 1)};
}

void check_dropout(const Tensor& x, double rate) {
  require_floating("dropout", "x", x);
  if (rate >= 0.0 && rate <= 1.0) return;
  throw ArgumentError(message("[dropout] rate is ", rate, ", expected 0 to 1"));
}

Tensor run_dropout(const Tensor& x, double rate, DropoutKey key, const BatchPlace& place) {
  const Matrix size = as_rows("dropout", "x", x);
  const auto masked = [=](const DeviceArray& from) {
    DeviceArray to = make(from, from.dtype(), from.shape());
    from.device().dropout({.dtype = from.dtype(),
                           .rows = size.rows,
                           .cols = size.cols,
                           .before = place.before,
                           .after = place.after,
                           .key = key,
                           .rate = rate,
                           .x = from.data(),
                           .out = to.mutable_data()});
    return to;
  };
  return record_one(
      "dropout", {x}, masked(x.value()),
      [masked](const DeviceArray& dy) { return std::vector{masked(dy)}; },
      [=](const GradientCall& call) {
        return Tensors{run_dropout(upstream(call), rate, key, place)};
      },
      same_places);
}

}  // namespace

void BatchPart::validate() const {
  if (rows > 0 && first_row >= 0 && rows <= whole_batch - first_row) return;
  throw ArgumentError(message("[BatchPart] ", rows, " rows from row ", first_row, " of a batch of ",
                              whole_batch, ", expected at least one, and all of them in it"));
}

std::uint64_t new_step_of_parts() {
  static std::atomic<std::uint64_t> steps{0};
  return ++steps;
}

PartScope::PartScope(const BatchPart& part, std::uint64_t step, std::int64_t batch_axis)
    : part_(part), step_(step), batch_axis_(batch_axis), outer_(current_part) {
  part.validate();
  if (batch_axis != 0 && batch_axis != 1) {
    throw ArgumentError(message("[PartScope] batch_axis is ", batch_axis, ", expected 0 or 1"));
  }
  current_part = this;
}

PartScope::~PartScope() { current_part = outer_; }

const PartScope* PartScope::current() noexcept { return current_part; }

BatchPlace place_along(const Shape& shape, std::size_t batch_axis, const DropoutKey& key) {
  if (batch_axis + 1 >= shape.size()) {
    throw ArgumentError(message("[dropout] x has shape ", to_string(shape), ", expected the batch ",
                                "along axis ", batch_axis, ", and more after it"));
  }
  check_part("dropout", key, shape[batch_axis]);
  return place_at(shape, batch_axis);
}

std::optional<BatchPlace> place_in_part(const Shape& shape) {
  const PartScope* const scope = PartScope::current();
  if (!scope) return std::nullopt;
  const auto axis = static_cast<std::size_t>(scope->batch_axis());
  const std::int64_t rows = scope->part().rows;
  if (shape.size() > 2 && shape[axis] == rows) return place_at(shape, axis);
  if (shape.size() == 2 && shape[0] % rows == 0) {
    const std::int64_t times = shape[0] / rows;
    return axis == 0 ? BatchPlace{.after = times} : BatchPlace{.before = times};
  }
  throw ArgumentError(message("[dropout] x has shape ", to_string(shape), " in a part of ", rows,
                              " rows of a batch, expected them along axis ",
                              shape.size() > 2 ? axis : 0, " and more after it"));
}

void check_rows_of_part(const RnnInputs& in) {
  const PartScope* const scope = PartScope::current();
  if (!scope) return;
  const std::int64_t batch = in.x.shape()[in.time_major ? 1 : 0], rows = scope->part().rows;
  if (batch != rows) {
    throw ArgumentError(message("[", in.call, "] a batch of ", batch, " in a part of ", rows,
                                " rows of a batch, expected these: masks are of their numbers"));
  }
  if (!in.flags.any()) return;
  throw UnsupportedError(message("[", in.call,
                                 "] mask or reset with masks of dropout in a part of ",
                                 "a batch, expected sequence_lengths, or the whole batch"));
}

Tensor dropout(const Tensor& x, double rate, DropoutKey key) {
  return dropout_along(x, rate, key, 0);
}

Tensor dropout_along(const Tensor& x, double rate, DropoutKey key, std::size_t batch_axis) {
  check_dropout(x, rate);
  if (x.is_symbolic()) return defer_one("dropout", infer::like("dropout", x), x, rate, key);
  if (key.whole_batch == 0) return run_dropout(x, rate, key, {});
  return run_dropout(x, rate, key, place_along(x.shape(), batch_axis, key));
}

Tensor next_dropout(const Tensor& x, double rate, const std::function<DropoutKey()>& next_key) {
  check_dropout(x, rate);
  if (x.is_symbolic()) return dropout(x, rate, next_key());
  const std::optional<BatchPlace> place = place_in_part(x.shape());
  const DropoutKey key = next_key();
  // A key of the caller's own may be of a whole batch inside a part.
  return run_dropout(x, rate, key, key.whole_batch > 0 && place ? *place : BatchPlace{});
}

}  // namespace openrnn::ops
