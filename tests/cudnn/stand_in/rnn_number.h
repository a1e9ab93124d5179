// The number that the reference's loops run on inside the stand-in: double, but states are kept as
// the data's type at every step, and operands of products are seen as the math type sees them.
#pragma once

#include "cudnn/stand_in/numbers.h"
#include "reference/number.h"

namespace openrnn::stand_in {

enum class Operand { kWhole, kTf32, kHalf };

struct Number {
  double value = 0.0;
  static inline thread_local Operand operand = Operand::kWhole;

  Number() = default;
  explicit Number(double v) : value(v) {}
};

inline Number operator+(Number a, Number b) { return Number(a.value + b.value); }
inline Number operator-(Number a, Number b) { return Number(a.value - b.value); }
inline Number operator*(Number a, Number b) { return Number(a.value * b.value); }
inline Number& operator+=(Number& a, Number b) { return a = a + b; }

inline Number sigmoid(Number a) { return Number(reference::sigmoid(a.value)); }
inline Number tanh_of(Number a) { return Number(reference::tanh_of(a.value)); }
inline Number relu(Number a) { return Number(reference::relu(a.value)); }
inline Number relu_slope(Number a) { return Number(reference::relu_slope(a.value)); }
inline Number other_activation(const CellActivation& f, Number a) {
  return Number(reference::other_activation(f, a.value));
}
inline Number other_slope(const CellActivation& f, Number a) {
  return Number(reference::other_slope(f, a.value));
}
inline Number clamp_to(Number c, double low, double high) {
  return Number(reference::clamp_to(c.value, low, high));
}
inline Number clamp_slope(Number c, double low, double high) {
  return Number(reference::clamp_slope(c.value, low, high));
}
inline Number kept_as(Number a, DType dtype) {
  if (dtype == DType::kFloat32) return Number(static_cast<double>(static_cast<float>(a.value)));
  return Number(dtype == DType::kFloat16 ? as_half(a.value) : a.value);
}
inline Number inverse_root(Number variance, double epsilon) {
  return Number(reference::inverse_root(variance.value, epsilon));
}
inline Number times_mask(Number a, double mask) { return Number(a.value * mask); }
/// The loops call this for every operand of a network whose math is not exact.
inline Number as_bf16(Number a) {
  if (Number::operand == Operand::kTf32) return Number(as_tf32(a.value));
  return Number(Number::operand == Operand::kHalf ? as_half(a.value) : a.value);
}
inline Number as_split(Number a) { return a; }
inline std::vector<Number> as_int8(std::vector<Number> row) { return row; }

}  // namespace openrnn::stand_in
