// The functions of one number that the equations need, for double. The loops are templates over
// the number, so that the same equations can also carry an error bound with each value.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "openrnn/spec.h"

namespace openrnn::reference {

inline double sigmoid(double a) { return 1.0 / (1.0 + std::exp(-a)); }
inline double tanh_of(double a) { return std::tanh(a); }
inline double relu(double a) { return std::max(a, 0.0); }
/// 1 where a > 0, else 0.
inline double relu_slope(double a) { return a > 0.0 ? 1.0 : 0.0; }
inline double clamp_to(double c, double low, double high) { return std::clamp(c, low, high); }
/// 0 where the clamp holds the value, else 1, also at its very ends, as tf.clip_by_value.
inline double clamp_slope(double c, double low, double high) {
  return c < low || high < c ? 0.0 : 1.0;
}
/// Rounding of a stored state: types of 16 bits round at every step, wider ones only in the
/// results.
inline double kept_as(double value, DType dtype) {
  if (dtype == DType::kFloat16) return static_cast<double>(to_float(to_half(value)));
  return dtype == DType::kBfloat16 ? static_cast<double>(to_float(to_bfloat16(value))) : value;
}
/// 1 / sqrt(variance + epsilon).
inline double inverse_root(double variance, double epsilon) {
  return 1.0 / std::sqrt(variance + epsilon);
}
inline double times_mask(double value, double mask) { return value * mask; }

// ---- Activations -------------------------------------------------------------------------------

/// f(a), of the functions that have no name of their own above.
inline double other_activation(const CellActivation& f, double a) {
  switch (f.kind) {
    case CellActivationKind::kAffine:
      return f.alpha * a + f.beta;
    case CellActivationKind::kLeakyRelu:
      return a > 0.0 ? a : f.alpha * a;
    case CellActivationKind::kThresholdedRelu:
      return a <= f.alpha ? 0.0 : a;
    case CellActivationKind::kScaledTanh:
      return f.alpha * std::tanh(f.beta * a);
    case CellActivationKind::kHardSigmoid:
      return std::clamp(f.alpha * a + f.beta, 0.0, 1.0);
    case CellActivationKind::kElu:
      return a > 0.0 ? a : f.alpha * std::expm1(a);
    case CellActivationKind::kSoftsign:
      return a / (1.0 + std::abs(a));
    default:  // softplus, so that e^a does not overflow
      return std::max(a, 0.0) + std::log1p(std::exp(-std::abs(a)));
  }
}
/// Its derivative; at a kink the one from the left of leaky_relu, thresholded_relu and elu, and 0
/// where hard_sigmoid has reached 0 or 1, as PyTorch and Keras 3 have them.
inline double other_slope(const CellActivation& f, double a) {
  switch (f.kind) {
    case CellActivationKind::kAffine:
      return f.alpha;
    case CellActivationKind::kLeakyRelu:
      return a > 0.0 ? 1.0 : f.alpha;
    case CellActivationKind::kThresholdedRelu:
      return a <= f.alpha ? 0.0 : 1.0;
    case CellActivationKind::kScaledTanh: {
      const double t = std::tanh(f.beta * a);
      return f.alpha * f.beta * (1.0 - t * t);
    }
    case CellActivationKind::kHardSigmoid: {
      const double y = f.alpha * a + f.beta;
      return y > 0.0 && y < 1.0 ? f.alpha : 0.0;
    }
    case CellActivationKind::kElu:
      return a > 0.0 ? 1.0 : f.alpha * std::exp(a);
    case CellActivationKind::kSoftsign: {
      const double d = 1.0 + std::abs(a);
      return 1.0 / (d * d);
    }
    default:
      return sigmoid(a);
  }
}

// ---- Operands of products ----------------------------------------------------------------------

/// The nearest bfloat16 of the float, ties to the even one.
inline double nearest_bf16(double value) {
  return static_cast<double>(to_float(to_bfloat16(static_cast<float>(value))));
}
/// An operand of math 'bf16', where subnormal floats count as 0.
inline double as_bf16(double value) {
  const auto rounded = static_cast<float>(value);
  return std::abs(rounded) < std::numeric_limits<float>::min() ? 0.0 : nearest_bf16(value);
}
/// An operand of math 'bf16x3', whose definition is the exact product.
inline double as_split(double value) { return value; }
/// A row of activations of weights_dtype 'int8': q * scale, in float32 up to q. A scale that would
/// be subnormal counts as 0; one element that is not finite makes them all NaN.
inline std::vector<double> as_int8(std::vector<double> row) {
  float largest = 0.0F;
  bool finite = true;
  for (const double a : row) {
    largest = std::max(largest, std::abs(static_cast<float>(a)));
    finite = finite && std::isfinite(static_cast<float>(a));
  }
  const float scale = largest / 127.0F, inverse = 127.0F / largest;
  for (double& a : row) {
    if (!finite) {
      a = std::numeric_limits<double>::quiet_NaN();
    } else if (scale < std::numeric_limits<float>::min()) {
      a = 0.0;
    } else {
      const float q = std::nearbyint(static_cast<float>(a) * inverse);
      a = static_cast<double>(q) * static_cast<double>(scale);
    }
  }
  return row;
}

// ---- Functions of units, for any number --------------------------------------------------------

template <class Real>
using Vector = std::vector<Real>;

/// A function at each unit: its argument, before a clip, its value, and its derivative by the
/// argument.
template <class Real>
struct Function {
  Vector<Real> argument, value, slope;
};

template <class Real>
Real activate(const CellActivation& f, const Real& a) {
  switch (f.kind) {
    case CellActivationKind::kSigmoid:
      return sigmoid(a);
    case CellActivationKind::kTanh:
      return tanh_of(a);
    case CellActivationKind::kRelu:
      return relu(a);
    default:
      return other_activation(f, a);
  }
}

/// The derivative where f(a) is y.
template <class Real>
Real slope_of(const CellActivation& f, const Real& a, const Real& y) {
  switch (f.kind) {
    case CellActivationKind::kSigmoid:
      return y * (Real(1.0) - y);
    case CellActivationKind::kTanh:
      return Real(1.0) - y * y;
    case CellActivationKind::kRelu:
      return relu_slope(y);
    default:
      return other_slope(f, a);
  }
}

/// Appends f(a), of a clamped first if there are bounds, and returns it.
template <class Real>
Real apply(const CellActivation& f, Real a, const std::optional<std::array<double, 2>>& clip,
           Function<Real>& result) {
  Real passed(1.0);
  result.argument.push_back(a);
  if (clip) {
    passed = clamp_slope(a, (*clip)[0], (*clip)[1]);
    a = clamp_to(a, (*clip)[0], (*clip)[1]);
  }
  const Real y = activate(f, a);
  const Real slope = slope_of(f, a, y);
  result.value.push_back(y);
  result.slope.push_back(clip ? slope * passed : slope);
  return y;
}

}  // namespace openrnn::reference
