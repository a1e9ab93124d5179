#include <algorithm>
#include <limits>

#include "ops/gradients/gradients.h"
#include "ops/per_sample/rows.h"
#include "ops/symbolic/infer.h"
#include "ops/symbolic/replay.h"

namespace openrnn::ops {
namespace {

Matrix checked_logits(const char* call, const Tensor& logits) {
  require_floating(call, "logits", logits);
  const Matrix size = as_rows(call, "logits", logits);
  if (size.cols > 0) return size;
  throw ArgumentError(message("[", call, "] logits has shape ", to_string(logits.shape()),
                              ", expected at least one class"));
}

/// The labels in host memory; labels on a GPU are waited for.
Tensor on_host(const Tensor& labels) {
  const bool there = !labels.empty() && labels.device().engine();
  return there ? Tensor(labels.to_host().view()) : labels;
}

void check_labels(const Tensor& logits, const Tensor& labels, const Matrix& size) {
  require_indices("softmax_cross_entropy", "labels", labels,
                  std::numeric_limits<std::int32_t>::min(), size.cols);
  const Shape rows(logits.shape().begin(), logits.shape().end() - 1);
  if (labels.shape() != rows) {
    throw ArgumentError(message("[softmax_cross_entropy] labels has shape ",
                                to_string(labels.shape()), ", expected ", to_string(rows),
                                " for logits of shape ", to_string(logits.shape())));
  }
}

// Losses, and what their gradient needs if it is recorded.
struct CrossEntropy {
  Matrix size;
  DType dtype;
  Shape shape;
  DeviceArray losses, probabilities, labels;
  std::int64_t counted = 0;  // labels of 0 and above

  CrossEntropy(const Tensor& logits, const Tensor& given_labels)
      : size(checked_logits("softmax_cross_entropy", logits)),
        dtype(logits.dtype()),
        shape(logits.shape()) {
    const Tensor near = on_host(given_labels);
    check_labels(logits, near, size);
    const auto* const values = static_cast<const std::int32_t*>(near.value().data());
    counted = std::count_if(values, values + size.rows, [](auto label) { return label >= 0; });
    const DType wide = wide_dtype(dtype);
    losses = make(logits, wide, given_labels.shape());
    const DeviceArray classes = on_device(given_labels.value(), logits.device());
    if (recording({logits})) {
      probabilities = make(logits, wide, shape);
      labels = classes;
    }
    losses.device().softmax_cross_entropy(
        {.dtype = dtype,
         .rows = size.rows,
         .classes = size.cols,
         .logits = logits.value().data(),
         .labels = static_cast<const std::int32_t*>(classes.data()),
         .losses = losses.mutable_data(),
         .probabilities = probabilities.empty() ? nullptr : probabilities.mutable_data()});
  }

  DeviceArray gradient(const DeviceArray& row_gradients) const {
    DeviceArray result = make(row_gradients, dtype, shape);
    result.device().softmax_cross_entropy_gradient(
        {.dtype = dtype,
         .rows = size.rows,
         .classes = size.cols,
         .probabilities = probabilities.data(),
         .labels = static_cast<const std::int32_t*>(labels.data()),
         .row_gradients = row_gradients.data(),
         .logits_gradient = result.mutable_data()});
    return result;
  }
  // The same with history.
  Tensor gradient(const Tensor& logits, const Tensor& row_gradients) const {
    return gradients::cross_entropy_gradient(logits, row_gradients, Tensor(labels),
                                             gradient(row_gradients.value()));
  }
};

}  // namespace

Tensor softmax(const Tensor& logits) {
  if (logits.is_symbolic()) {
    return defer_one("softmax", infer::like("softmax", logits), logits);
  }
  const Matrix size = checked_logits("softmax", logits);
  const DType dtype = logits.dtype(), wide = wide_dtype(dtype);
  DeviceArray y = make(logits, wide, logits.shape());
  const Device& device = y.device();
  device.softmax_cross_entropy({.dtype = dtype,
                                .rows = size.rows,
                                .classes = size.cols,
                                .logits = logits.value().data(),
                                .probabilities = y.mutable_data()});
  if (wide != dtype) {
    DeviceArray narrow = make(logits, dtype, logits.shape());
    device.convert(y.size(), wide, y.data(), dtype, narrow.mutable_data());
    y = std::move(narrow);
  }
  return record_one(
      "softmax", {logits}, y,
      [size, y](const DeviceArray& dy) {
        DeviceArray dx = make(dy, dy.dtype(), dy.shape());
        dy.device().softmax_gradient(dy.dtype(), size.rows, size.cols, y.data(), dy.data(),
                                     dx.mutable_data());
        return std::vector{dx};
      },
      [](const GradientCall& call) {
        return std::vector{gradients::softmax_gradient(call.outputs[0], gradients::upstream(call))};
      },
      [size](const Node& node, const RowCall& call) {
        per_sample::require_apart("softmax", call.views[0], size.cols);
        return per_sample::same_places(node, call);
      });
}

Tensor softmax_cross_entropy_rows(const Tensor& logits, const Tensor& labels) {
  if (any_symbolic(logits, labels)) {
    return defer_one("softmax_cross_entropy_rows",
                     infer::losses("softmax_cross_entropy_rows", logits, labels), logits, labels);
  }
  CrossEntropy result(logits, labels);
  const DeviceArray losses = std::move(result.losses);
  const auto kept = std::make_shared<const CrossEntropy>(std::move(result));
  return record_one(
      "softmax_cross_entropy_rows", {logits}, losses,
      [kept](const DeviceArray& dy) { return std::vector{kept->gradient(dy)}; },
      [kept](const GradientCall& call) {
        return std::vector{kept->gradient(call.inputs[0], gradients::upstream(call))};
      },
      [kept](const Node& node, const RowCall& call) {
        const RowsView view = per_sample::with_columns(call.views[0], 1, kept->size.cols);
        return per_sample::all_in(view, node, call);
      });
}

Tensor softmax_cross_entropy(const Tensor& logits, const Tensor& labels) {
  if (any_symbolic(logits, labels)) {
    TensorSpec spec = infer::losses("softmax_cross_entropy", logits, labels);
    spec.shape.clear();
    return defer_one("softmax_cross_entropy", std::move(spec), logits, labels);
  }
  CrossEntropy result(logits, labels);
  const double share = result.counted > 0 ? 1.0 / static_cast<double>(result.counted) : 0.0;
  const DeviceArray losses = std::move(result.losses);
  const auto kept = std::make_shared<const CrossEntropy>(std::move(result));
  return record_one(
      "softmax_cross_entropy", {logits},
      summed(losses, {.factor = share, .out_dtype = losses.dtype()}),
      [share, kept](const DeviceArray& dy) {
        DeviceArray rows = make(dy, dy.dtype(), {kept->size.rows});
        dy.device().fill(rows.dtype(), rows.size(), share, dy.dtype(), dy.data(),
                         rows.mutable_data());
        return std::vector{kept->gradient(rows)};
      },
      [share, kept](const GradientCall& call) {
        const Tensor& dy = gradients::upstream(call);
        const Tensor rows = gradients::filled(dy, share, dy.dtype(), {kept->size.rows});
        return std::vector{kept->gradient(call.inputs[0], rows)};
      });
}

Tensor mean_squared_error(const Tensor& a, const Tensor& b) {
  if (!any_symbolic(a, b)) {
    if (apart(a, b)) {
      return std::apply(mean_squared_error, together("mean_squared_error", a, b));
    }
    require_same("mean_squared_error", a, b);
  }
  // In 16 bits the square of a modest difference would overflow.
  const Tensor difference = subtract(a, b);
  return reduce_mean(square(cast(difference, wide_dtype(a.dtype()))));
}

}  // namespace openrnn::ops
