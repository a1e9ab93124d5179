// How near a call comes to a kink of relu or of the clamp, where a gradient has no difference.
#pragma once

#include "conformance/support/run.h"
#include "reference/sequence.h"

namespace openrnn::conformance {

namespace detail {

using Clip = std::optional<std::array<double, 2>>;

inline double distance_from_ends(const Clip& clip, double value) {
  if (!clip) return 1e9;
  return std::min(std::abs(value - (*clip)[0]), std::abs(value - (*clip)[1]));
}

/// From where a function has a kink.
inline double distance_from_kink(const CellActivation& f, double a) {
  switch (f.kind) {
    case CellActivationKind::kRelu:
    case CellActivationKind::kLeakyRelu:
    case CellActivationKind::kElu:
      return std::abs(a);
    case CellActivationKind::kThresholdedRelu:
      return std::abs(a - f.alpha);
    case CellActivationKind::kHardSigmoid:
      return std::min(std::abs(f.alpha * a + f.beta), std::abs(f.alpha * a + f.beta - 1.0)) /
             std::abs(f.alpha);
    default:
      return 1e9;
  }
}

/// The distances of one step of one row.
inline double step_distance(const reference::Network& net, const reference::Step<double>& s) {
  double nearest = 1e9;
  const auto visit = [&](double distance) { nearest = std::min(nearest, distance); };
  for (std::size_t k = 0; k < net.gates; ++k) {
    for (const double a : s.gate[k].argument) {
      visit(distance_from_ends(net.gate_clip, a));
      visit(distance_from_kink(reference::function_of(net, k), a));
    }
  }
  for (const double c : s.cell.argument) visit(distance_from_kink(net.cell_function, c));
  for (const double h : s.projected) visit(distance_from_ends(net.proj_clip, h));
  for (std::size_t u = 0; net.clip && u < net.units; ++u) {
    const auto gate = [&](std::size_t k) { return s.gate[k].value[u]; };
    const double g = reference::masked_candidate(s, u, gate(reference::kC));
    const double c = gate(reference::kF) * s.c_before[u] + gate(reference::kI) * g;
    visit(distance_from_ends(net.clip, c));
  }
  return nearest;
}

}  // namespace detail

inline reference::Call reference_call(const Case& c) {
  reference::Call call;
  call.max_time = static_cast<std::size_t>(c.time);
  call.batch = static_cast<std::size_t>(c.batch);
  call.time_major = c.time_major;
  call.lengths.assign(call.batch, call.max_time);
  for (std::size_t b = 0; b < c.lengths.size(); ++b) {
    call.lengths[b] = static_cast<std::size_t>(c.lengths[b]);
  }
  call.training = c.spec.draws_masks();
  call.key = kKey;
  return call;
}

/// The least distance of any pre-activation from zero (relu), or of any cell from the clamp's ends.
inline double distance_from_kinks(const Case& c, const Data& d) {
  const reference::Network net = reference::make_network(c.spec);
  const auto params = d.params.as<double>();
  ConstArrayView h0 = d.h0.view(), c0 = d.c0.view();
  if (c.null_states) h0.data = c0.data = nullptr;
  const auto result =
      reference::forward<double>(net, reference_call(c), {params.data(), d.x.view(), h0, c0});
  double nearest = 1e9;
  for (std::size_t p = 0; p < net.pseudo.size(); ++p) {
    for (const auto& step : result.tape[p]) {
      if (step.h.empty()) continue;
      nearest = std::min(nearest, detail::step_distance(net, step));
    }
  }
  return nearest;
}

/// Data that stays further from every kink than a difference of 1e-4 can move it: the first seed
/// that does. Throws: ArgumentError if none of a thousand does.
inline Data data_clear_of_kinks(const Case& c) {
  constexpr double kMargin = 2e-3;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Data d = make_data(c, seed);
    if (distance_from_kinks(c, d) > kMargin) return d;
  }
  throw ArgumentError("[data_clear_of_kinks] no seed of 1000 is clear in " + c.text);
}

}  // namespace openrnn::conformance
