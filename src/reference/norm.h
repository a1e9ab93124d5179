// Layer normalization of one row, forward and backward (Ba, Kiros and Hinton 2016).
#pragma once

#include "reference/network.h"
#include "reference/number.h"

namespace openrnn::reference {

/// Gates whose values are normalized together.
struct NormGroup {
  std::size_t first, count;
};

inline std::vector<NormGroup> norm_groups(const Network& net) {
  switch (net.norm) {
    case LayerNorm::kNone:
      return {};
    case LayerNorm::kProducts:
      return {{0, net.gates}};
    case LayerNorm::kSplitProducts:
      return {{kR, 2}, {kN, 1}};
    default:
      return {{kI, 1}, {kF, 1}, {kC, 1}, {kO, 1}};
  }
}

/// (x - mean) / sqrt(variance + epsilon) of some values, and its products with gains.
template <class Real>
struct Normalized {
  std::vector<Real> hat, value;
  Real inverse = Real(0.0);  // 1 / sqrt(variance + epsilon)
};

/// Of `values`, as of one vector; `gain(n)` is that of the n-th.
template <class Real, class Gain>
Normalized<Real> normalized(const Network& net, const std::vector<Real>& values, Gain gain) {
  const Real part(1.0 / static_cast<double>(values.size()));
  Real mean(0.0), variance(0.0);
  for (const Real& x : values) mean += x;
  mean = mean * part;
  for (const Real& x : values) variance += (x - mean) * (x - mean);
  Normalized<Real> result;
  result.inverse = inverse_root(variance * part, net.norm_epsilon);
  for (std::size_t n = 0; n < values.size(); ++n) {
    result.hat.push_back((values[n] - mean) * result.inverse);
    result.value.push_back(result.hat[n] * gain(n));
  }
  return result;
}

/// The gradient of the values from that of `norm.value`, `d`; adds that of the gains to dgain(n).
template <class Real, class Gain, class GainGradient>
std::vector<Real> normalized_gradient(const Normalized<Real>& norm, const std::vector<Real>& d,
                                      Gain gain, GainGradient dgain) {
  const Real part(1.0 / static_cast<double>(d.size()));
  Real mean(0.0), along(0.0);
  for (std::size_t n = 0; n < d.size(); ++n) {
    mean += d[n] * gain(n);
    along += d[n] * gain(n) * norm.hat[n];
    dgain(n) += d[n] * norm.hat[n];
  }
  mean = mean * part;
  along = along * part;
  std::vector<Real> dvalues;
  for (std::size_t n = 0; n < d.size(); ++n) {
    dvalues.push_back(norm.inverse * (d[n] * gain(n) - mean - norm.hat[n] * along));
  }
  return dvalues;
}

/// All groups of a side's gates.
template <class Real>
using NormalizedSide = std::vector<Normalized<Real>>;

/// Normalizes what `sum(k, u)` is of gate k and unit u; `gains` are the places of a side's.
template <class Real, class Sum>
NormalizedSide<Real> normalized_side(const Network& net, const Real* params,
                                     const std::array<std::size_t, 4>& gains, Sum sum) {
  NormalizedSide<Real> side;
  for (const NormGroup& group : norm_groups(net)) {
    std::vector<Real> values;
    for (std::size_t n = 0; n < group.count * net.units; ++n) {
      values.push_back(sum(group.first + n / net.units, n % net.units));
    }
    side.push_back(normalized(net, values, [&](std::size_t n) {
      return params[gains[group.first + n / net.units] + n % net.units];
    }));
  }
  return side;
}

/// The normalized sum of gate k at unit u.
template <class Real>
const Real& value_of(const Network& net, const NormalizedSide<Real>& side, std::size_t k,
                     std::size_t u) {
  const std::vector<NormGroup> groups = norm_groups(net);
  std::size_t at = 0;
  while (k >= groups[at].first + groups[at].count) ++at;
  return side[at].value[(k - groups[at].first) * net.units + u];
}

/// Replaces the gradients `d` of a side's normalized sums, by gate, by those of the sums.
template <class Real>
void side_gradient(const Network& net, const Real* params, const std::array<std::size_t, 4>& gains,
                   const NormalizedSide<Real>& side, std::array<std::vector<Real>, 4>& d,
                   Real* dparams) {
  const std::vector<NormGroup> groups = norm_groups(net);
  for (std::size_t at = 0; at < groups.size(); ++at) {
    const auto place = [&](std::size_t n) {
      return gains[groups[at].first + n / net.units] + n % net.units;
    };
    std::vector<Real> joined;
    for (std::size_t k = 0; k < groups[at].count; ++k) {
      const std::vector<Real>& part = d[groups[at].first + k];
      joined.insert(joined.end(), part.begin(), part.end());
    }
    joined = normalized_gradient(
        side[at], joined, [&](std::size_t n) { return params[place(n)]; },
        [&](std::size_t n) -> Real& { return dparams[place(n)]; });
    for (std::size_t n = 0; n < joined.size(); ++n) {
      d[groups[at].first + n / net.units][n % net.units] = joined[n];
    }
  }
}

}  // namespace openrnn::reference
