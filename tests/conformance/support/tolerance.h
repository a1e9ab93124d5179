// How far an engine may be from the reference: derived by carrying a bound along with each number.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "openrnn/spec.h"
#include "reference/number.h"

namespace openrnn::conformance {

/// The order of an engine's sums: terms of a block, blocks of a span; 0: none is promised.
struct SumOrder {
  double block = 0.0, blocks = 0.0;
};

/// What the bounds know of an engine: the arithmetic it computes in and the memory it keeps.
struct Rounding {
  double eps = 0.0;         // of the engine's arithmetic, plus float64's for the reference's own
  double memory_eps = 0.0;  // of the type that states are kept in; 0 if they are not rounded
  double memory_tiny = 0.0;
  double border_eps = 0.0;  // of the results
  double border_tiny = 0.0;
  bool short_sigmoid = false;  // 1 / (1 + 2^(-x log2 e)) of approximate instructions
  SumOrder order = {};

  static Rounding of(DType dtype) {
    constexpr double k8 = 0x1p-7, k16 = 0x1p-10, k32 = 0x1p-23, k64 = 0x1p-52;
    if (dtype == DType::kFloat16) return {k32 + k64, k16, 0x1p-24, k16, 0x1p-24};
    if (dtype == DType::kBfloat16) return {k32 + k64, k8, 0x1p-120, k8, 0x1p-120};
    if (dtype == DType::kFloat32) return {k32 + k64, 0.0, 0.0, k32, 0x1p-120};
    return {2 * k64, 0.0, 0.0, k64, 0x1p-1000};
  }
  /// Of a GPU: its kernels hand float16 to each other, so every term may be one; 'tf32' and 'fp16'
  /// round both operands of every product to 10 bits.
  static Rounding of_gpu(DType dtype, Math math) {
    constexpr double k10 = 0x1p-10;
    Rounding rounding = of(dtype);
    rounding.short_sigmoid = dtype != DType::kFloat64;
    if (dtype == DType::kFloat16) rounding.eps = k10;
    if (dtype == DType::kFloat32 && math != Math::kFloat32) rounding.eps = 2 * k10;
    return rounding;
  }
  /// How many roundings a term of a sum of n goes through at most: those of its block, of its span
  /// and of the spans, of which gradients of weights have one more for each 32 steps. Sums apart
  /// (W x, R h, the bias) join by three more.
  double roundings(double n) const {
    if (order.block == 0.0) return n;
    const double inner = std::min(std::ceil(n / order.block), order.blocks);
    const double outer = std::ceil(n / (order.block * order.blocks)) + std::ceil(n / 32.0);
    return std::min(n, order.block + inner + outer + 3.0);
  }
};

/// A number of the reference with a bound on how far another engine's may be from it. The
/// reference's own loops run on it, so the bound follows each product through layers and steps:
///
/// - A term of a sum of k products is rounded at most Rounding::roundings(k) times with what came
///   before it. The errors are independent, so r of them add as sqrt(r): 0.5 eps sqrt(r) sum
///   |terms|, and sum |a_i b_i| is at most the product of the norms. The last sum stays open
///   (`terms`, `magnitude`): adding goes on with the same one, whichever way an engine cuts or
///   joins it.
/// - What the factors of a product bring along is |a| eb + |b| ea + ea eb. In a sum these add up
///   (`linear`); from 16 terms on the independent sum, 4 sqrt(sum of squares), is the smaller one.
///   Four standard deviations, were each error as large as its bound; it is under a third of it.
/// - Activations are within 2 ulp, at most 2 eps |value|, and carry slope * e + 0.5 max|f''| e^2.
/// - A slope with a kink (relu, clamp) is in doubt where the kink is nearer than the error.
/// - An operand that is rounded to bfloat16 or int8 for a product brings a step along where its
///   error reaches a tie, and nothing elsewhere: both engines round the same definition.
/// - A state kept in 16 bits is rounded on both sides, which may fall to either side of a tie.
struct Bounded {
  static inline Rounding rounding;

  double value = 0.0;
  double linear = 0.0, squares = 0.0;
  double terms = 0.0, magnitude = 0.0;

  Bounded() = default;
  explicit Bounded(double exact) : value(exact), magnitude(std::abs(exact)) {}
  static Bounded closed(double value, double error) {
    Bounded b(value);
    b.linear = error;
    b.squares = error * error;
    return b;
  }
  double error() const {
    const double carried = linear == 0.0 ? 0.0 : std::min(linear, 4.0 * std::sqrt(squares));
    return carried + 0.5 * rounding.eps * std::sqrt(rounding.roundings(terms)) * magnitude;
  }
};

inline Bounded operator+(const Bounded& a, const Bounded& b) {
  Bounded sum;
  sum.value = a.value + b.value;
  sum.linear = a.linear + b.linear;
  sum.squares = a.squares + b.squares;
  sum.terms = std::max(a.terms, 1.0) + std::max(b.terms, 1.0);
  sum.magnitude = a.magnitude + b.magnitude;
  return sum;
}
inline Bounded operator-(const Bounded& a, Bounded b) {
  b.value = -b.value;
  return a + b;
}
inline Bounded& operator+=(Bounded& a, const Bounded& b) { return a = a + b; }
inline Bounded operator*(const Bounded& a, const Bounded& b) {
  const double ea = a.error(), eb = b.error();
  Bounded product =
      Bounded::closed(a.value * b.value, std::abs(a.value) * eb + std::abs(b.value) * ea + ea * eb);
  product.terms = 1.0;
  return product;
}

inline Bounded sigmoid(const Bounded& a) {
  const double s = 1.0 / (1.0 + std::exp(-a.value)), e = a.error();
  const double moved = std::min(s * (1.0 - s) * e + 0.0482 * e * e, 1.0);
  // The exponent is rounded, the power and the quotient may be 2 and 1 ulp off.
  const double steps = 0.5 * ((1.0 - s) * (std::abs(a.value) + 5.0) + 3.0);
  const double ulps = Bounded::rounding.short_sigmoid ? std::max(2.0, steps) : 2.0;
  return Bounded::closed(s, moved + ulps * Bounded::rounding.eps * s);
}
inline Bounded tanh_of(const Bounded& a) {
  const double t = std::tanh(a.value), e = a.error();
  const double moved = std::min((1.0 - t * t) * e + 0.385 * e * e, 2.0);
  return Bounded::closed(t, moved + 2.0 * Bounded::rounding.eps * std::abs(t));
}
inline Bounded relu(const Bounded& a) {
  return Bounded::closed(std::max(a.value, 0.0), a.value < -a.error() ? 0.0 : a.error());
}
/// Of h = relu(a): h > 0 says a > 0. Near zero on either side it is in doubt.
inline Bounded relu_slope(const Bounded& h) {
  return Bounded::closed(h.value > 0.0 ? 1.0 : 0.0, h.error() > 0.0 && h.value <= h.error());
}

/// Where a function or its slope has a kink, a jump or an extreme.
inline std::array<double, 3> turning_points(const CellActivation& f) {
  if (f.kind == CellActivationKind::kThresholdedRelu) return {f.alpha, 0.0, 0.0};
  if (f.kind == CellActivationKind::kHardSigmoid && f.alpha != 0.0) {
    return {-f.beta / f.alpha, (1.0 - f.beta) / f.alpha, 0.0};
  }
  return {0.0, 0.0, 0.0};
}
/// How far `function` may be from its value at `a` inside [a - e, a + e]: it has its extremes there
/// at the ends, or on either side of a turning point.
template <class F>
double moved_by(const CellActivation& f, double a, double e, F function) {
  const double at = function(f, a);
  double most = 0.0;
  const auto visit = [&](double x) { most = std::max(most, std::abs(function(f, x) - at)); };
  if (e == 0.0) return 0.0;
  visit(a - e);
  visit(a + e);
  for (const double point : turning_points(f)) {
    if (std::abs(point - a) > e) continue;
    visit(point);
    visit(std::nextafter(point, -1e9));
    visit(std::nextafter(point, 1e9));
  }
  return most;
}
/// Those without parameters are within 2 ulp. A parameter is rounded once, and so is each product
/// and sum with it: affine and hard_sigmoid are within 2 eps (|alpha a| + |beta|), the others
/// within 4 eps |f(a)|, and scaled_tanh's beta moves its argument by eps |beta a|.
inline Bounded other_activation(const CellActivation& f, const Bounded& a) {
  const double y = reference::other_activation(f, a.value), e = a.error();
  const double eps = Bounded::rounding.eps;
  double own = 4.0 * eps * std::abs(y);
  if (f.kind == CellActivationKind::kAffine || f.kind == CellActivationKind::kHardSigmoid) {
    own = 2.0 * eps * (std::abs(f.alpha * a.value) + std::abs(f.beta));
  } else if (f.kind == CellActivationKind::kScaledTanh) {
    own += eps * std::abs(a.value * reference::other_slope(f, a.value));
  }
  const auto value = [](const CellActivation& g, double x) {
    return reference::other_activation(g, x);
  };
  return Bounded::closed(y, moved_by(f, a.value, e, value) + own);
}
/// Slopes are computed from values near 1, and so within 6 eps of the largest one. A kink is in
/// doubt within the rounding of the argument too.
inline Bounded other_slope(const CellActivation& f, const Bounded& a) {
  const double eps = Bounded::rounding.eps;
  const double e = a.error() + 4.0 * eps * std::abs(a.value);
  const auto slope = [](const CellActivation& g, double x) { return reference::other_slope(g, x); };
  const bool scaled = f.kind == CellActivationKind::kScaledTanh;
  const double largest = std::max(1.0, std::abs(f.alpha) * (scaled ? std::abs(f.beta) : 1.0));
  return Bounded::closed(slope(f, a.value), moved_by(f, a.value, e, slope) + 6.0 * eps * largest);
}
inline Bounded clamp_to(const Bounded& c, double low, double high) {
  return Bounded::closed(std::clamp(c.value, low, high), c.error());
}
inline Bounded clamp_slope(const Bounded& c, double low, double high) {
  const double near = std::min(std::abs(c.value - low), std::abs(c.value - high));
  return Bounded::closed(c.value < low || high < c.value ? 0.0 : 1.0, near <= c.error());
}
inline Bounded kept_as(const Bounded& a, DType dtype) {
  if (!is_16_bit_float(dtype)) return Bounded::closed(a.value, a.error());
  const double kept = reference::kept_as(a.value, dtype);
  const Rounding& r = Bounded::rounding;
  return Bounded::closed(kept, a.error() + r.memory_eps * std::abs(a.value) + r.memory_tiny);
}
/// Monotone, so its extremes lie at the ends of the variance's interval. Epsilon, its sum with the
/// variance, the root and the quotient are rounded: 0.25, 0.25, 0.5 and 0.5 eps.
inline Bounded inverse_root(const Bounded& variance, double epsilon) {
  const double e = variance.error(), v = variance.value;
  const double at = reference::inverse_root(v, epsilon);
  const double above = reference::inverse_root(std::max(v - e, 0.0), epsilon);
  const double moved = std::max(above - at, at - reference::inverse_root(v + e, epsilon));
  return Bounded::closed(at, moved + 1.5 * Bounded::rounding.eps * above);
}
/// The mask's scale is rounded to the engine's arithmetic, and so is what an engine keeps of it.
inline Bounded times_mask(const Bounded& a, double mask) {
  const Rounding& r = Bounded::rounding;
  const double scaled = a.value * mask;
  return Bounded::closed(scaled, mask * a.error() + std::abs(scaled) * (r.eps + r.memory_eps));
}

/// The two nearest bfloat16 that an engine may see, and how far they are from the reference's: an
/// error that reaches no tie adds nothing, one that does adds the step to the other side.
inline Bounded as_bf16(const Bounded& a) {
  const double e = a.error(), value = reference::as_bf16(a.value);
  const double below = reference::as_bf16(a.value - e), above = reference::as_bf16(a.value + e);
  return Bounded::closed(value, std::max(value - below, above - value));
}
/// Three of the four products of hi + lo. A bfloat16 has 8 bits, so for 2^e <= |a| < 2^(e+1) the
/// nearest one, hi, is off by at most 2^(e-8). That rest is below 2^(e-8) or that power itself, so
/// the nearest lo is off by at most 2^(e-17), half its last place: |lo| <= 2^-8 |a|, and
/// d = a - hi - lo is at most 2^-17 |a|. With lo lo' left out, a a' is off by
/// a d' + a' d - d d' + lo lo', at most (2^-17 + 2^-17 + 2^-16) |a a'| = 2^-15 |a a'|, half of it
/// for each operand; ea eb covers d d'.
inline Bounded as_split(const Bounded& a) {
  return Bounded::closed(a.value, a.error() + 0x1p-16 * std::abs(a.value));
}
/// A row as int8. The scale is that of the largest element, wherever inside its error that is;
/// three roundings make q's argument. Where its range holds a tie, q may be the other one.
inline std::vector<Bounded> as_int8(std::vector<Bounded> row) {
  std::vector<double> values;
  double largest = 0.0, least = 0.0, most = 0.0;
  for (const Bounded& a : row) {
    values.push_back(a.value);
    largest = std::max(largest, std::abs(a.value));
    least = std::max(least, std::abs(a.value) - a.error());
    most = std::max(most, std::abs(a.value) + a.error());
  }
  const std::vector<double> kept = reference::as_int8(values);
  const double scale = largest / 127.0, relative = (most - least) / largest + 3 * 0x1p-23;
  for (std::size_t k = 0; k < row.size(); ++k) {
    const double e = row[k].error(), q = std::round(kept[k] / scale);
    const double width = std::abs(values[k]) / scale * relative + e / scale * (1.0 + relative);
    const double low = std::nearbyint(values[k] / scale - width);
    const double high = std::nearbyint(values[k] / scale + width);
    const double flips = std::max(q - low, high - q) * scale + std::abs(kept[k]) * relative;
    // Each side is within half a step of its own value, which bounds wide ranges better.
    row[k] =
        Bounded::closed(kept[k], largest > 0.0 ? std::min(flips, e + most / 127.0 * 1.001) : e);
  }
  return row;
}

/// The bound of a result: both sides round it to its type.
inline double border_error(const Bounded& result) {
  const Rounding& r = Bounded::rounding;
  return result.error() + r.border_eps * std::abs(result.value) + r.border_tiny;
}

}  // namespace openrnn::conformance
