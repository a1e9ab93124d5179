// The loss of connectionist temporal classification: rows of logits around ctc_row.
#include <cmath>

#include "cpu/device/parallel.h"
#include "ops/gradients/gradients.h"
#include "ops/per_sample/rows.h"
#include "ops/symbolic/replay.h"
#include "ops/tensor/ctc.h"

namespace openrnn::ops {
namespace {

struct Call {
  std::int64_t steps = 0, batch = 0, classes = 0, blank = 0;
  bool time_major = true;
  std::vector<std::int32_t> lengths;
  std::vector<std::vector<std::int32_t>> labels;

  std::int64_t stride() const { return time_major ? batch * classes : classes; }
  std::int64_t begin(std::int64_t b) const { return b * classes * (time_major ? 1 : steps); }
};

void check_shapes(const Tensor& logits, const Tensor& labels, const CtcOptions& options) {
  require_floating("ctc_loss", "logits", logits);
  if (logits.shape().size() != 3 || logits.shape()[2] == 0) {
    throw ArgumentError(message("[ctc_loss] logits have shape ", to_string(logits.shape()),
                                ", expected [T, B, C] or [B, T, C], C at least 1"));
  }
  const std::int64_t batch = logits.shape()[options.time_major ? 1 : 0];
  if (labels.empty() || labels.dtype() != DType::kInt32 || labels.shape().size() != 2 ||
      !dims_fit(labels.shape()[0], batch)) {
    throw ArgumentError(
        message("[ctc_loss] labels are ", labels.empty() ? "nothing" : dtype_name(labels.dtype()),
                " of shape ", to_string(labels.shape()), ", expected int32 [", batch, ", L]"));
  }
}

void check_lengths(const char* name, const std::vector<std::int32_t>& lengths, std::int64_t batch,
                   std::int64_t most) {
  if (static_cast<std::int64_t>(lengths.size()) != batch) {
    throw ArgumentError(
        message("[ctc_loss] ", lengths.size(), " ", name, ", expected ", batch, ", one a row"));
  }
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    if (lengths[b] >= 0 && lengths[b] <= most) continue;
    throw ArgumentError(
        message("[ctc_loss] ", name, "[", b, "] is ", lengths[b], ", expected 0 to ", most));
  }
}

// The labels of row b, each a class other than the blank.
std::vector<std::int32_t> labels_of(std::span<const std::int32_t> row, std::int64_t b,
                                    const CtcOptions& options, const Call& call) {
  const bool given = !options.label_lengths.empty();
  std::vector<std::int32_t> found;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (given ? static_cast<std::int32_t>(i) >= options.label_lengths[static_cast<std::size_t>(b)]
              : row[i] < 0) {
      break;
    }
    if (row[i] < 0 || row[i] >= call.classes || row[i] == call.blank) {
      throw ArgumentError(message("[ctc_loss] labels[", b, ", ", i, "] is ", row[i],
                                  ", expected 0 to ", call.classes - 1, " but the blank, ",
                                  call.blank));
    }
    found.push_back(row[i]);
  }
  return found;
}

Call made_call(const Tensor& logits, const Tensor& labels, const CtcOptions& options) {
  const Shape& shape = logits.shape();
  Call call{.steps = shape[options.time_major ? 0 : 1],
            .batch = shape[options.time_major ? 1 : 0],
            .classes = shape[2],
            .blank = options.blank < 0 ? options.blank + shape[2] : options.blank,
            .time_major = options.time_major,
            .lengths = options.logit_lengths,
            .labels = {}};
  if (call.blank < 0 || call.blank >= call.classes) {
    throw ArgumentError(message("[ctc_loss] blank is ", options.blank, ", expected ", -call.classes,
                                " to ", call.classes - 1));
  }
  const std::int64_t most = labels.shape()[1];
  if (call.lengths.empty()) {
    call.lengths.assign(static_cast<std::size_t>(call.batch),
                        static_cast<std::int32_t>(call.steps));
  }
  check_lengths("logit_lengths", call.lengths, call.batch, call.steps);
  if (!options.label_lengths.empty()) {
    check_lengths("label_lengths", options.label_lengths, call.batch, most);
  }
  const Array host = labels.to_host();
  for (std::int64_t b = 0; b < call.batch; ++b) {
    call.labels.push_back(
        labels_of(host.as<std::int32_t>().subspan(static_cast<std::size_t>(b * most),
                                                  static_cast<std::size_t>(most)),
                  b, options, call));
  }
  return call;
}

// logits - log(sum(exp(logits))) of one step, in double.
void normalize(const double* logits, std::int64_t classes, double* to) {
  double top = logits[0], sum = 0.0;
  for (std::int64_t c = 1; c < classes; ++c) top = logits[c] > top ? logits[c] : top;
  for (std::int64_t c = 0; c < classes; ++c) sum += portable_exp(logits[c] - top);
  const double log_sum = portable_log(sum);
  for (std::int64_t c = 0; c < classes; ++c) to[c] = logits[c] - top - log_sum;
}

// Losses [B], and their gradients by the logits, 0 past a row's length.
void compute(const Call& call, std::span<const double> logits, std::span<double> losses,
             std::span<double> gradients) {
  const std::int64_t cost = call.steps * (call.classes + 8) * 8;
  std::vector<double> steps(logits.size());  // of which each row is its own part
  cpu::parallel_ranges(call.batch, 1, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      const std::int64_t first = call.begin(b);
      const auto row = static_cast<std::size_t>(b);
      for (std::int64_t t = 0; t < call.lengths[row]; ++t) {
        const std::int64_t at = first + t * call.stride();
        normalize(logits.data() + at, call.classes, steps.data() + at);
      }
      losses[row] = ctc_row({.steps = call.lengths[row],
                             .classes = call.classes,
                             .stride = call.stride(),
                             .blank = call.blank,
                             .log_probabilities = steps.data() + first,
                             .labels = call.labels[row]},
                            gradients.empty() ? nullptr : gradients.data() + first);
    }
  });
}

}  // namespace

Tensor ctc_loss(const Tensor& logits, const Tensor& labels, const CtcOptions& options) {
  check_shapes(logits, labels, options);
  if (any_symbolic(logits, labels)) {
    return defer_one("ctc_loss",
                     {wide_dtype(logits.dtype()), {logits.shape()[options.time_major ? 1 : 0]}},
                     logits, labels, options);
  }
  const Call call = made_call(logits, labels, options);
  const Device& device = logits.value().device();
  const Array host = openrnn::cast(logits.to_host().view(), DType::kFloat64);
  Array losses(DType::kFloat64, {call.batch});
  const bool keep = recording({logits});
  Array gradients(DType::kFloat64, keep ? logits.shape() : Shape{0});
  compute(call, host.as<double>(), losses.as<double>(), gradients.as<double>());
  const DType wide = wide_dtype(logits.dtype());
  const auto placed = [&device](const Array& values, DType dtype) {
    return DeviceArray::from_host(device, openrnn::cast(values.view(), dtype).view());
  };
  const DeviceArray slopes = keep ? placed(gradients, wide) : DeviceArray();
  Shape spread{1, call.batch, 1};
  if (!call.time_major) spread = {call.batch, 1, 1};
  return record_one(
      "ctc_loss", {logits}, placed(losses, wide),
      [slopes, spread, dtype = logits.dtype()](const DeviceArray& dy) {
        const Tensor found = multiply(Tensor(slopes), reshape(Tensor(dy), spread));
        return std::vector{found.dtype() == dtype ? found.value() : cast(found, dtype).value()};
      },
      {},
      [view = RowsView::along(logits.shape(), call.time_major ? 1 : 0)](
          const Node& node, const RowCall& made) { return per_sample::all_in(view, node, made); });
}

}  // namespace openrnn::ops
