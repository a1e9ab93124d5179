#include <cmath>

#include "base/message.h"
#include "layers/graph/values.h"

namespace openrnn::layers {

namespace {

// min(x, 0).
Tensor negative_part(const Tensor& x) { return ops::negate(ops::relu(ops::negate(x))); }

Tensor hard_sigmoid(const Tensor& x, double slope, double offset) {
  return ops::clip(ops::add_scalar(ops::scale(x, slope), offset), 0.0, 1.0);
}

Tensor elu(const Tensor& x, double alpha) {
  const Tensor below = ops::add_scalar(ops::exp(negative_part(x)), -1.0);
  return ops::add(ops::relu(x), ops::scale(below, alpha));
}

// Hendrycks and Gimpel's approximation: x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
Tensor gelu_tanh(const Tensor& x) {
  const Tensor cube = ops::multiply(ops::square(x), x);
  const double outer = std::sqrt(2.0 / 3.14159265358979323846);
  const Tensor inside = ops::scale(ops::add(x, ops::scale(cube, 0.044715)), outer);
  return ops::multiply(ops::scale(x, 0.5), ops::add_scalar(ops::tanh(inside), 1.0));
}

// The constants of Klambauer et al. 2017.
constexpr double kSeluScale = 1.0507009873554805, kSeluAlpha = 1.6732632423543772;

}  // namespace

std::optional<Activation> own_activation(const LayerFunction& function) {
  if (function.name == "linear") return Activation::kLinear;
  if (function.name == "relu") return Activation::kRelu;
  if (function.name == "tanh") return Activation::kTanh;
  if (function.name == "sigmoid") return Activation::kSigmoid;
  return std::nullopt;
}

Tensor apply_function(const LayerFunction& function, const Tensor& x) {
  const auto is = [&](const char* name) { return function.name == name; };
  if (is("linear")) return x;
  if (is("relu")) return ops::relu(x);
  if (is("tanh")) return ops::tanh(x);
  if (is("sigmoid")) return ops::sigmoid(x);
  if (is("softmax")) return ops::softmax(x);
  if (is("exponential")) return ops::exp(x);
  if (is("softsign")) return ops::divide(x, ops::add_scalar(ops::absolute(x), 1.0));
  if (is("silu")) return ops::multiply(x, ops::sigmoid(x));
  if (is("hard_sigmoid")) return hard_sigmoid(x, function.alpha, function.beta);
  if (is("hard_silu")) {
    return ops::multiply(x, hard_sigmoid(x, function.alpha, function.beta));
  }
  if (is("leaky_relu")) {
    return ops::add(ops::relu(x), ops::scale(negative_part(x), function.alpha));
  }
  if (is("elu")) return elu(x, function.alpha);
  if (is("selu")) return ops::scale(elu(x, kSeluAlpha), kSeluScale);
  if (is("gelu_tanh")) return gelu_tanh(x);
  if (is("clip")) return ops::clip(x, function.alpha, function.beta);
  throw ArgumentError(message("[layers] the activation '", function.name, "' is not computed"));
}

}  // namespace openrnn::layers
