#include "ops/dropout.h"

#include <atomic>

#include "openrnn/ops.h"
#include "ops/gradients/gradients.h"
#include "ops/per_sample/rows.h"
#include "ops/symbolic/dropout.h"
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

// A recorded call has no place in a batch: that of a part is the replay's.
void refuse_part(const DropoutKey& key) {
  if (key.whole_batch == 0) return;
  throw ArgumentError(message("[dropout] key is of rows from ", key.first_row, " of a batch of ",
                              key.whole_batch,
                              ", expected one of a whole batch, as x is symbolic"));
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

BatchPlace place_in(const PartScope& scope, const Shape& shape) {
  const std::int64_t rows = scope.part().rows;
  const auto has_rows = [&](std::size_t axis) {
    return axis + 1 < shape.size() && shape[axis] == rows;
  };
  if (const auto given = scope.batch_axis()) {
    const auto axis = shape.size() == 2 ? 0 : static_cast<std::size_t>(*given);
    if (has_rows(axis)) return place_at(shape, axis);
    if (shape.size() == 2 && shape[0] % rows == 0) {
      const std::int64_t times = shape[0] / rows;
      return *given == 0 ? BatchPlace{.after = times} : BatchPlace{.before = times};
    }
    throw ArgumentError(message("[dropout] x has shape ", to_string(shape), " in a part of ", rows,
                                " rows of a batch, expected them along axis ", axis,
                                " and more after it"));
  }
  // Two axes of size 1 are one place.
  if (has_rows(0) != has_rows(1)) return place_at(shape, has_rows(0) ? 0 : 1);
  if (has_rows(0) && rows == 1) return place_at(shape, 0);
  throw ArgumentError(message(
      "[dropout] x has shape ", to_string(shape), " in a part of ", rows,
      " rows of a batch, expected them along one of the axes 0 and 1, ",
      has_rows(0) ? "not both: another number of parts has other rows" : "and more after it"));
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

PartScope::PartScope(const BatchPart& part, std::uint64_t step,
                     std::optional<std::int64_t> batch_axis)
    : part_(part), step_(step), batch_axis_(batch_axis), outer_(current_part) {
  part.validate();
  if (batch_axis && *batch_axis != 0 && *batch_axis != 1) {
    throw ArgumentError(message("[PartScope] batch_axis is ", *batch_axis, ", expected 0 or 1"));
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
  if (x.is_symbolic()) {
    refuse_part(key);
    return defer_one("dropout", infer::like("dropout", x), x, rate, key);
  }
  if (key.whole_batch == 0) return run_dropout(x, rate, key, {});
  return run_dropout(x, rate, key, place_along(x.shape(), batch_axis, key));
}

Tensor next_dropout(const Tensor& x, double rate, const std::function<DropoutKey()>& next_key) {
  check_dropout(x, rate);
  return x.is_symbolic() ? record_dropout(x, rate, next_key()) : dropout(x, rate, next_key());
}

Tensor next_dropout(const Tensor& x, double rate, DropoutState& state) {
  check_dropout(x, rate);
  if (x.is_symbolic()) return record_dropout(x, rate, state.next());
  const PartScope* const scope = PartScope::current();
  const BatchPlace place = scope ? place_in(*scope, x.shape()) : BatchPlace{};
  return run_dropout(x, rate, state.next(), place);
}

}  // namespace openrnn::ops
