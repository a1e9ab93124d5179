#include "layers/graph/values.h"

#include <algorithm>

#include "base/message.h"

namespace openrnn::layers {

namespace {

using Values = std::vector<GraphValue>;

std::int64_t product(const Shape& shape) {
  std::int64_t size = 1;
  for (const std::int64_t one : shape) size *= one;
  return size;
}

Tensor zeros_like(const Tensor& x) { return Tensor(Array(x.dtype(), x.shape()).view()); }

// Steps that do not count as zeros, whatever they hold.
Tensor without_masked(const Tensor& x, const std::vector<bool>& mask) {
  const Shape rows{static_cast<std::int64_t>(mask.size()), x.shape()[2]};
  const Tensor flat = ops::reshape(x, rows);
  return ops::reshape(ops::select_rows(mask, flat, zeros_like(flat)), x.shape());
}

Values compute_embedding(const GraphStep& step) {
  const Tensor& indices = step.inputs[0].x;
  GraphValue value{dynamic_cast<Embedding&>(*step.made)(indices)};
  if (layer_option_as<bool>(step.layer, "mask_zero")) {
    const Array host = indices.to_host();
    std::vector<bool> mask;
    for (const std::int32_t one : host.as<std::int32_t>()) mask.push_back(one != 0);
    value.mask = std::make_shared<const std::vector<bool>>(std::move(mask));
  }
  return {value};
}

// A step counts if one of its elements is another value; NaN is one.
Values compute_masking(const GraphStep& step) {
  const Tensor& x = step.inputs[0].x;
  const Array host = x.to_host();
  // In the dtype of the values, as 0.1 is no float32.
  Array wanted(DType::kFloat64, {1});
  wanted.as<double>()[0] = layer_option_as<double>(step.layer, "mask_value");
  const double value = element(cast(wanted.view(), x.dtype()).view(), 0);
  const std::int64_t width = x.shape()[2], steps = x.shape()[0] * x.shape()[1];
  std::vector<bool> mask(static_cast<std::size_t>(steps), false);
  for (std::int64_t i = 0; i < steps * width; ++i) {
    if (element(host.view(), i) != value) mask[static_cast<std::size_t>(i / width)] = true;
  }
  Tensor kept = without_masked(x, mask);
  return {{std::move(kept), std::make_shared<const std::vector<bool>>(std::move(mask))}};
}

Values compute_dense(const GraphStep& step) {
  const GraphValue& input = step.inputs[0];
  Tensor y = dynamic_cast<Dense&>(*step.made)(input.x);
  const LayerFunction function =
      parse_layer_function(layer_option_as<std::string>(step.layer, "activation"));
  if (!own_activation(function)) y = apply_function(function, y);
  return {{std::move(y), input.mask}};
}

Values compute_activation(const GraphStep& step) {
  const auto& name = layer_option_as<std::string>(step.layer, "activation");
  return {{apply_function(parse_layer_function(name), step.inputs[0].x), step.inputs[0].mask}};
}

Values compute_dropout(const GraphStep& step) {
  auto& dropout = dynamic_cast<Dropout&>(*step.made);
  return {{dropout(step.inputs[0].x, step.training), step.inputs[0].mask}};
}

Values compute_reshape(const GraphStep& step) {
  const Tensor& x = step.inputs[0].x;
  const auto& sizes = layer_option_as<std::vector<std::int64_t>>(step.layer, "shape");
  Shape shape{x.shape()[0]};
  std::int64_t known = 1;
  for (const std::int64_t size : sizes) {
    shape.push_back(size);
    if (size >= 0) known *= size;
  }
  // Not -1, which an empty batch leaves open.
  const std::int64_t row = product({x.shape().begin() + 1, x.shape().end()});
  std::replace(shape.begin() + 1, shape.end(), std::int64_t{-1}, known > 0 ? row / known : 0);
  return {{ops::reshape(x, shape)}};
}

Values compute_repeat(const GraphStep& step) {
  const auto count = layer_option_as<std::int64_t>(step.layer, "count");
  const std::vector<Tensor> copies(static_cast<std::size_t>(count), step.inputs[0].x);
  return {{ops::transpose_leading(ops::stack(copies))}};
}

// [B, C]: the number of steps that count, in each column.
Tensor step_counts(const Tensor& x, const StepMask& mask) {
  const std::int64_t batch = x.shape()[0], steps = x.shape()[1], width = x.shape()[2];
  Array counts(DType::kFloat64, {batch, width});
  for (std::int64_t row = 0; row < batch; ++row) {
    const auto first = mask ? mask->begin() + row * steps : std::vector<bool>::const_iterator();
    const auto count = mask ? std::count(first, first + steps, true) : steps;
    std::fill_n(counts.as<double>().begin() + row * width, width, static_cast<double>(count));
  }
  return Tensor(cast(counts.view(), x.dtype()).view());
}

// A row without such steps gives NaN, as 0 / 0 does.
Values compute_time_mean(const GraphStep& step) {
  const StepMask& mask = step.inputs[0].mask;
  const Tensor x = mask ? without_masked(step.inputs[0].x, *mask) : step.inputs[0].x;
  const std::int64_t batch = x.shape()[0], steps = x.shape()[1], width = x.shape()[2];
  Array ones(DType::kFloat64, {1, steps});
  std::ranges::fill(ones.as<double>(), 1.0);
  const Tensor by_step = ops::reshape(ops::transpose_leading(x), {steps, batch * width});
  const Tensor sum = ops::matmul(Tensor(cast(ones.view(), x.dtype()).view()), by_step);
  return {{ops::divide(ops::reshape(sum, {batch, width}), step_counts(x, mask))}};
}

Values compute_merge(const GraphStep& step) {
  const std::string& kind = step.layer.kind;
  std::vector<Tensor> parts;
  for (const GraphValue& input : step.inputs) parts.push_back(input.x);
  if (kind == "concat") {
    return {{ops::concat(parts, layer_option_as<std::int64_t>(step.layer, "axis"))}};
  }
  Tensor result = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (kind == "subtract") {
      result = ops::subtract(result, parts[i]);
    } else if (kind == "multiply") {
      result = ops::multiply(result, parts[i]);
    } else {
      result = ops::add(result, parts[i]);
    }
  }
  if (kind == "average") result = ops::scale(result, 1.0 / static_cast<double>(parts.size()));
  return {{std::move(result)}};
}

struct ComputedKind {
  const char* kind;
  Values (*compute)(const GraphStep& step);
};
constexpr ComputedKind kComputed[] = {
    {"embedding", compute_embedding},
    {"masking", compute_masking},
    {"recurrent", compute_recurrent},
    {"dense", compute_dense},
    {"activation", compute_activation},
    {"dropout", compute_dropout},
    {"reshape", compute_reshape},
    {"repeat", compute_repeat},
    {"time_mean", compute_time_mean},
    {"concat", compute_merge},
    {"add", compute_merge},
    {"subtract", compute_merge},
    {"multiply", compute_merge},
    {"average", compute_merge},
};

}  // namespace

Values compute_layer(const GraphStep& step) {
  for (const ComputedKind& one : kComputed) {
    if (step.layer.kind == one.kind) return one.compute(step);
  }
  throw ArgumentError(
      message("[layers] the kind of layer '", step.layer.kind, "' is not computed"));
}

}  // namespace openrnn::layers
