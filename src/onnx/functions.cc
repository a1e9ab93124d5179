// Functions of one array: activations, softmax and what goes with them.
#include <algorithm>
#include <cmath>

#include "base/message.h"
#include "mapping/onnx/values/attributes.h"
#include "onnx/kernel.h"
#include "openrnn/ops.h"

namespace openrnn::onnx {

using mapping::find_number;
using mapping::integer_or;
using mapping::MemoryBudget;

namespace {

template <Tensor (*function)(const Tensor&)>
std::vector<Array> by_operation(const KernelCall& call) {
  return one_output(function(Tensor(call.input(0).view())).to_host());
}

// In double, rounded once; from no function whose bits depend on the machine.
template <class Function>
std::vector<Array> in_double(const KernelCall& call, const Function& function) {
  MemoryBudget free;
  const DType dtype = call.input(0).dtype();
  if (!is_floating(dtype)) {
    throw ArgumentError(message("x is ", dtype_name(dtype), ", expected a floating dtype"));
  }
  Array values = mapping::converted(call.input(0), DType::kFloat64, &free);
  for (double& x : values.as<double>()) x = function(x);
  return one_output(mapping::converted(values, dtype, &free));
}

double number_or(const KernelCall& call, const char* name, double other) {
  const float* found = find_number(call.node, name);
  return found ? *found : other;
}

std::vector<Array> leaky_relu_kernel(const KernelCall& call) {
  const double alpha = number_or(call, "alpha", 0.01f);
  return in_double(call, [&](double x) { return x < 0.0 ? alpha * x : x; });
}
std::vector<Array> elu_kernel(const KernelCall& call) {
  const double alpha = number_or(call, "alpha", 1.0);
  return in_double(call, [&](double x) { return x < 0.0 ? alpha * (portable_exp(x) - 1.0) : x; });
}
std::vector<Array> hard_sigmoid_kernel(const KernelCall& call) {
  const double alpha = number_or(call, "alpha", 0.2f), beta = number_or(call, "beta", 0.5);
  return in_double(call, [&](double x) { return std::clamp(alpha * x + beta, 0.0, 1.0); });
}
std::vector<Array> softplus_kernel(const KernelCall& call) {
  return in_double(call, [](double x) {
    return std::max(x, 0.0) + portable_log(1.0 + portable_exp(-std::abs(x)));
  });
}
std::vector<Array> softsign_kernel(const KernelCall& call) {
  return in_double(call, [](double x) { return x / (1.0 + std::abs(x)); });
}
std::vector<Array> log_kernel(const KernelCall& call) {
  return in_double(call, [](double x) { return portable_log(x); });
}

// Bounds were attributes until version 11; either may be left out.
std::vector<Array> clip_kernel(const KernelCall& call) {
  const auto bound = [&](std::size_t index, const char* name, double other) {
    const Array* given = call.optional(index);
    return given ? element(given->view(), 0) : number_or(call, name, other);
  };
  constexpr double kAll = std::numeric_limits<double>::infinity();
  const double low = bound(1, "min", -kAll), high = bound(2, "max", kAll);
  return in_double(call,
                   [&](double x) { return std::isnan(x) ? x : std::min(std::max(x, low), high); });
}

std::vector<Array> dropout_kernel(const KernelCall& call) {
  const Array* training = call.optional(2);
  if (training && training->dtype() == DType::kBool && training->as<bool>()[0]) {
    throw ArgumentError("training_mode is true, expected a model for inference");
  }
  std::vector<Array> outputs = one_output(call.input(0));
  if (call.node.outputs.size() > 1) {
    Array mask(DType::kBool, call.input(0).shape());
    std::ranges::fill(mask.as<bool>(), true);
    outputs.push_back(std::move(mask));
  }
  return outputs;
}

// x - max - log(sum of exp(x - max)) of each row of the last dimension, in double.
Array log_softmax(const Array& x) {
  MemoryBudget free;
  Array values = mapping::converted(x, DType::kFloat64, &free);
  const auto width = static_cast<std::size_t>(x.shape().back());
  const auto all = values.as<double>();
  for (std::size_t at = 0; at < all.size(); at += width) {
    const auto row = all.subspan(at, width);
    const double most = *std::max_element(row.begin(), row.end());
    double sum = 0.0;
    for (const double value : row) sum += portable_exp(value - most);
    const double log_sum = portable_log(sum);
    for (double& value : row) value = value - most - log_sum;
  }
  return mapping::converted(values, x.dtype(), &free);
}

Array softmax_rows(const Array& x) { return ops::softmax(Tensor(x.view())).to_host(); }

// Over one axis; before version 13 over all axes from there on, as one.
template <Array (*rows)(const Array&)>
std::vector<Array> over_axis(const KernelCall& call) {
  const Array& x = call.input(0);
  const Shape& shape = x.shape();
  const std::size_t rank = shape.size();
  const bool old = call.opset < 13;
  const std::size_t axis = mapping::axis_of(integer_or(call.node, "axis", old ? 1 : -1), rank);
  if (x.size() == 0) return one_output(x);
  if (old) {
    const std::int64_t first =
        shape_size(Shape(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis)));
    Array flat = Array(x).reshaped({first, x.size() / first});
    return one_output(rows(flat).reshaped(shape));
  }
  if (axis + 1 == rank) return one_output(rows(x));
  std::vector<std::int64_t> perm(rank);
  for (std::size_t i = 0; i < rank; ++i) perm[i] = static_cast<std::int64_t>(i);
  std::swap(perm[axis], perm[rank - 1]);  // its own inverse
  MemoryBudget free;
  return one_output(mapping::transposed(rows(mapping::transposed(x, perm, &free)), perm, &free));
}

}  // namespace

std::span<const KernelRow> function_kernels() {
  static const KernelRow kRows[] = {
      {"Abs", by_operation<ops::absolute>, {}},
      {"Clip", clip_kernel, {"max", "min"}},
      {"Dropout", dropout_kernel, {"is_test", "ratio", "seed"}},
      {"Elu", elu_kernel, {"alpha"}},
      {"Exp", by_operation<ops::exp>, {}},
      {"HardSigmoid", hard_sigmoid_kernel, {"alpha", "beta"}},
      {"LeakyRelu", leaky_relu_kernel, {"alpha"}},
      {"Log", log_kernel, {}},
      {"LogSoftmax", over_axis<log_softmax>, {"axis"}},
      {"Neg", by_operation<ops::negate>, {}},
      {"Relu", by_operation<ops::relu>, {}},
      {"Sigmoid", by_operation<ops::sigmoid>, {}},
      {"Softmax", over_axis<softmax_rows>, {"axis"}},
      {"Softplus", softplus_kernel, {}},
      {"Softsign", softsign_kernel, {}},
      {"Sqrt", by_operation<ops::sqrt>, {}},
      {"Tanh", by_operation<ops::tanh>, {}},
  };
  return kRows;
}

}  // namespace openrnn::onnx
