// How near a call comes to a kink of relu or of the clamp, where a gradient has no difference.
#pragma once

#include "conformance/support/run.h"
#include "reference/sequence.h"

namespace openrnn::conformance {

namespace detail {

/// The distances of one step of one row.
inline double step_distance(const reference::Cell<double>& cell, const reference::Step<double>& s) {
  double nearest = 1e9;
  for (std::size_t u = 0; u < cell.net.units; ++u) {
    const auto sum = [&](std::size_t k) {
      return reference::input_side(cell, k, u, s) + reference::recurrent_side(cell, k, u, s);
    };
    if (cell.net.mode == RnnMode::kRnnRelu) {
      nearest = std::min(nearest, std::abs(sum(reference::kH)));
    } else if (cell.net.clip) {
      const double c = s.gate[reference::kF][u] * s.c_before[u] +
                       s.gate[reference::kI][u] * s.gate[reference::kC][u];
      for (const double end : *cell.net.clip) nearest = std::min(nearest, std::abs(c - end));
    }
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
  call.drops = c.spec.training.dropout > 0.0;
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
      nearest = std::min(nearest, detail::step_distance({net, net.pseudo[p], params.data()}, step));
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
