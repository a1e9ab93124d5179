#include "cpu/tangent/functions.h"

#include <algorithm>
#include <cmath>

#include "cpu/gemm/gemm.h"

namespace openrnn::cpu {
namespace {

// A function's value and its two derivatives.
template <class T>
struct Jet {
  T y, slope, curve;
};

// ln(1 + z), 0 <= z <= 1, by 2 atanh(z / (2 + z)): w <= 1/3, so w^2k / (2k + 1) is below an ulp of
// double from the 16th term on.
double log_of_one_plus(double z) {
  const double w = z / (2.0 + z), square = w * w;
  double sum = 0.0;
  for (int k = 17; k >= 0; --k) sum = sum * square + 1.0 / (2 * k + 1);
  return 2.0 * w * sum;
}

// `t` is what transform() made of a.
template <class T>
Jet<T> jet_of(const CellActivation& f, T a, T t) {
  const T alpha = static_cast<T>(f.alpha), beta = static_cast<T>(f.beta);
  switch (f.kind) {
    case CellActivationKind::kSigmoid: {
      const T slope = t * (T(1) - t);
      return {t, slope, slope * (T(1) - T(2) * t)};
    }
    case CellActivationKind::kTanh: {
      const T slope = T(1) - t * t;
      return {t, slope, T(-2) * t * slope};
    }
    case CellActivationKind::kRelu:
      return {a > T(0) ? a : T(0), a > T(0) ? T(1) : T(0), T(0)};
    case CellActivationKind::kAffine:
      return {alpha * a + beta, alpha, T(0)};
    case CellActivationKind::kLeakyRelu:
      return {a > T(0) ? a : alpha * a, a > T(0) ? T(1) : alpha, T(0)};
    case CellActivationKind::kThresholdedRelu:
      return {a > alpha ? a : T(0), a > alpha ? T(1) : T(0), T(0)};
    case CellActivationKind::kScaledTanh: {
      const T slope = alpha * beta * (T(1) - t * t);
      return {alpha * t, slope, T(-2) * beta * t * slope};
    }
    case CellActivationKind::kHardSigmoid: {
      const T y = alpha * a + beta;
      return {std::clamp(y, T(0), T(1)), y > T(0) && y < T(1) ? alpha : T(0), T(0)};
    }
    case CellActivationKind::kElu: {
      if (a > T(0)) return {a, T(1), T(0)};
      // e^a - 1 = 2 t / (1 - t) for t = tanh(a / 2), exact to some ulps near 0 too.
      const T less = T(2) * t / (T(1) - t);
      return {alpha * less, alpha * (less + T(1)), alpha * (less + T(1))};
    }
    case CellActivationKind::kSoftsign: {
      const T e = T(1) + std::abs(a), slope = T(1) / (e * e);
      const T curve = T(2) * slope / e;
      return {a / e, slope, a == T(0) ? T(0) : a > T(0) ? -curve : curve};
    }
    default: {  // softplus: t is sigmoid(-|a|), so e^-|a| is t / (1 - t)
      const auto wide = static_cast<double>(t);
      const T tail = static_cast<T>(log_of_one_plus(wide / (1.0 - wide)));
      const T slope = a > T(0) ? T(1) - t : t;
      return {std::max(a, T(0)) + tail, slope, t * (T(1) - t)};
    }
  }
}

template <class T>
void apply_to(Unary function, T* x, std::int64_t size) {
  apply(function, std::is_same_v<T, double> ? DType::kFloat64 : DType::kFloat32, x, x, size);
}

// What the functions need of exp and its like, in place.
template <class T>
void transform(const CellActivation& f, T* a, std::int64_t size) {
  switch (f.kind) {
    case CellActivationKind::kSigmoid:
      return apply_to(Unary::kSigmoid, a, size);
    case CellActivationKind::kTanh:
      return apply_to(Unary::kTanh, a, size);
    case CellActivationKind::kScaledTanh:
      for (std::int64_t k = 0; k < size; ++k) a[k] *= static_cast<T>(f.beta);
      return apply_to(Unary::kTanh, a, size);
    case CellActivationKind::kElu:
      for (std::int64_t k = 0; k < size; ++k) a[k] = std::min(a[k], T(0)) * T(0.5);
      return apply_to(Unary::kTanh, a, size);
    case CellActivationKind::kSoftplus:
      for (std::int64_t k = 0; k < size; ++k) a[k] = -std::abs(a[k]);
      return apply_to(Unary::kSigmoid, a, size);
    default:
      return;
  }
}

}  // namespace

template <class T>
void evaluate(const CellActivation& f, const std::optional<std::array<double, 2>>& clip,
              std::int64_t size, DualPtr<T> a, DualPtr<T> value, DualPtr<T> slope, T* scratch) {
  const T low = clip ? static_cast<T>((*clip)[0]) : T(0);
  const T high = clip ? static_cast<T>((*clip)[1]) : T(0);
  for (std::int64_t k = 0; k < size; ++k)
    scratch[k] = clip ? std::clamp(a.v[k], low, high) : a.v[k];
  std::copy(scratch, scratch + size, value.v);
  transform(f, scratch, size);
  for (std::int64_t k = 0; k < size; ++k) {
    const Jet<T> jet = jet_of(f, value.v[k], scratch[k]);
    const T along = clip && (a.v[k] < low || high < a.v[k]) ? T(0) : T(1);
    const T moved = along * a.d[k];
    value.set(k, {jet.y, jet.slope * moved});
    slope.set(k, {along * jet.slope, jet.curve * moved});
  }
}

template void evaluate<float>(const CellActivation&, const std::optional<std::array<double, 2>>&,
                              std::int64_t, DualPtr<float>, DualPtr<float>, DualPtr<float>, float*);
template void evaluate<double>(const CellActivation&, const std::optional<std::array<double, 2>>&,
                               std::int64_t, DualPtr<double>, DualPtr<double>, DualPtr<double>,
                               double*);

}  // namespace openrnn::cpu
