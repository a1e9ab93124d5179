// The functions of one number that the equations need, for double. The loops are templates over
// the number, so that the same equations can also carry an error bound with each value.
#pragma once

#include <algorithm>
#include <cmath>

#include "openrnn/base.h"

namespace openrnn::reference {

inline double sigmoid(double a) { return 1.0 / (1.0 + std::exp(-a)); }
inline double tanh_of(double a) { return std::tanh(a); }
inline double relu(double a) { return std::max(a, 0.0); }
/// 1 where a > 0, else 0.
inline double relu_slope(double a) { return a > 0.0 ? 1.0 : 0.0; }
inline double clamp_to(double c, double low, double high) { return std::clamp(c, low, high); }
/// 1 inside the clamp, 0 where it holds the value; the ends count as held.
inline double clamp_slope(double c, double low, double high) {
  return low < c && c < high ? 1.0 : 0.0;
}
/// What a state is once it is kept: float16 rounds at every step, wider types in the results alone.
inline double kept_as(double value, DType dtype) {
  return dtype == DType::kFloat16 ? static_cast<double>(to_float(to_half(value))) : value;
}
inline double times_mask(double value, double mask) { return value * mask; }

}  // namespace openrnn::reference
