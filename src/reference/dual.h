// Numbers with a derivative: a + eps * d, eps^2 = 0. The loops of the reference on them compute the
// derivative of everything along one direction.
#pragma once

#include "reference/number.h"

namespace openrnn::reference {

struct Dual {
  double value = 0.0;
  double d = 0.0;

  Dual() = default;
  explicit Dual(double constant) : value(constant) {}
  Dual(double at, double along) : value(at), d(along) {}
};

inline Dual operator+(const Dual& a, const Dual& b) { return {a.value + b.value, a.d + b.d}; }
inline Dual operator-(const Dual& a, const Dual& b) { return {a.value - b.value, a.d - b.d}; }
inline Dual operator*(const Dual& a, const Dual& b) {
  return {a.value * b.value, a.value * b.d + a.d * b.value};
}
inline Dual& operator+=(Dual& a, const Dual& b) { return a = a + b; }

inline Dual sigmoid(const Dual& a) {
  const double y = sigmoid(a.value);
  return {y, y * (1.0 - y) * a.d};
}
inline Dual tanh_of(const Dual& a) {
  const double y = tanh_of(a.value);
  return {y, (1.0 - y * y) * a.d};
}
inline Dual relu(const Dual& a) { return {relu(a.value), relu_slope(a.value) * a.d}; }
inline Dual relu_slope(const Dual& y) { return Dual(relu_slope(y.value)); }
inline Dual clamp_to(const Dual& c, double low, double high) {
  return {clamp_to(c.value, low, high), clamp_slope(c.value, low, high) * c.d};
}
inline Dual clamp_slope(const Dual& c, double low, double high) {
  return Dual(clamp_slope(c.value, low, high));
}
inline Dual kept_as(const Dual& value, DType) { return value; }
inline Dual inverse_root(const Dual& variance, double epsilon) {
  const double y = inverse_root(variance.value, epsilon);
  return {y, -0.5 * y * y * y * variance.d};
}
inline Dual times_mask(const Dual& value, double mask) {
  return {times_mask(value.value, mask), times_mask(value.d, mask)};
}

/// The second derivative of an activation, 0 at its kinks.
inline double other_curvature(const CellActivation& f, double a) {
  switch (f.kind) {
    case CellActivationKind::kScaledTanh: {
      const double t = std::tanh(f.beta * a);
      return -2.0 * f.alpha * f.beta * f.beta * t * (1.0 - t * t);
    }
    case CellActivationKind::kElu:
      return a > 0.0 ? 0.0 : f.alpha * std::exp(a);
    case CellActivationKind::kSoftsign: {
      const double e = 1.0 + std::abs(a);
      return a == 0.0 ? 0.0 : std::copysign(2.0, -a) / (e * e * e);
    }
    case CellActivationKind::kSoftplus: {
      const double s = sigmoid(a);
      return s * (1.0 - s);
    }
    default:  // of straight pieces
      return 0.0;
  }
}
inline Dual other_activation(const CellActivation& f, const Dual& a) {
  return {other_activation(f, a.value), other_slope(f, a.value) * a.d};
}
inline Dual other_slope(const CellActivation& f, const Dual& a) {
  return {other_slope(f, a.value), other_curvature(f, a.value) * a.d};
}

// Operands count as not rounded.
inline Dual as_bf16(const Dual& value) { return value; }
inline Dual as_split(const Dual& value) { return value; }
inline std::vector<Dual> as_int8(std::vector<Dual> row) { return row; }

}  // namespace openrnn::reference
