// The reference's results for a case, each element with its bound, and the comparison.
#pragma once

#include "conformance/support/kinks.h"
#include "conformance/support/machine.h"
#include "conformance/support/tolerance.h"
#include "reference/sequence_gradient.h"

namespace openrnn::conformance {

/// Bounds of every part of run_all, and what they know of the engine.
struct Bounds {
  Rounding rounding;
  std::vector<std::pair<std::string, std::vector<Bounded>>> parts;
};

inline ConstArrayView given(const Case& c, const Array& state) {
  ConstArrayView view = state.view();
  if (c.null_states) view.data = nullptr;
  return view;
}

/// The parameters as the products see them.
inline std::vector<Bounded> bounded_params(const reference::Network& net, const Data& d) {
  std::vector<double> values;
  for (std::size_t k = 0; k < net.size; ++k) {
    values.push_back(element(d.params.view(), static_cast<std::int64_t>(k)));
  }
  reference::store_weights(net, values);
  std::vector<Bounded> params;
  for (const double value : values) params.emplace_back(value);
  return params;
}

/// What is known of the tested engine's arithmetic. The stand-in of a GPU rounds where the other
/// engines do, but for 'tf32' and 'fp16'.
inline Rounding rounding_of(const Case& c) {
  const bool wide = tests_gpu() && (!pretends() || c.spec.compute.math != Math::kFloat32);
  if (wide) return Rounding::of_gpu(c.spec.dtype, c.spec.compute.math);
  Rounding rounding = Rounding::of(c.spec.dtype);
  const std::string_view kind = tests_gpu() ? "" : cpu().math_kind(c.spec);
  if (kind.starts_with("float")) rounding.order = {32.0, 16.0};
  if (kind == "dot") rounding.order = {64.0, 16.0};  // pairs
  if (kind == "amx") rounding.order = {32.0, 1.0};   // one product of tiles after another
  return rounding;
}

/// Runs the reference's loops on numbers with bounds, for the rounding of the tested engine.
inline Bounds bounds_of(const Case& c, const Data& d) {
  Bounds bounds{rounding_of(c), {}};
  Bounded::rounding = bounds.rounding;
  const reference::Network net = reference::make_network(c.spec);
  const std::vector<Bounded> params = bounded_params(net, d);
  const reference::ForwardInput<Bounded> in{params.data(), d.x.view(), given(c, d.h0),
                                            given(c, d.c0)};
  reference::Call call = reference_call(c);
  const bool random = call.training;
  call.training = false;
  auto forward = reference::forward<Bounded>(net, call, in);
  bounds.parts = {
      {"inference y", forward.y}, {"inference hn", forward.hn}, {"inference cn", forward.cn}};
  if (!c.trains()) return bounds;
  call.training = random;
  if (random) forward = reference::forward<Bounded>(net, call, in);
  const auto backward = reference::backward<Bounded>(
      net, call, forward.tape, {params.data(), d.dy.view(), d.dhn.view(), d.dcn.view()});
  bounds.parts.emplace_back("y", forward.y);
  bounds.parts.emplace_back("hn", forward.hn);
  bounds.parts.emplace_back("cn", forward.cn);
  bounds.parts.emplace_back("dx", backward.dx);
  bounds.parts.emplace_back("dh0", backward.dh0);
  bounds.parts.emplace_back("dc0", backward.dc0);
  bounds.parts.emplace_back("dparams", backward.dparams);
  return bounds;
}

/// The outcome of a comparison.
struct Agreement {
  std::string failure;   // empty: every element is inside its bound
  double worst = 0.0;    // largest |difference| / bound
  double loosest = 0.0;  // largest bound of any element
};

inline Agreement compare(const Bounds& bounds, const Result& result) {
  Bounded::rounding = bounds.rounding;
  Agreement found;
  for (const auto& [name, expected] : bounds.parts) {
    const Array& values = result[name];
    if (values.size() != static_cast<std::int64_t>(expected.size())) {
      found.failure = name + " has the wrong size";
      return found;
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double value = element(values.view(), static_cast<std::int64_t>(i));
      const double bound = border_error(expected[i]);
      const double difference = std::abs(value - expected[i].value);
      found.loosest = std::max(found.loosest, bound);
      if (difference <= bound) {
        found.worst = std::max(found.worst, difference / bound);
      } else if (found.failure.empty()) {
        std::ostringstream out;
        out << name << "[" << i << "] of " << expected.size() << " is " << value << ", reference "
            << expected[i].value << ", off by " << difference << ", bound " << bound;
        found.failure = out.str();
      }
    }
  }
  return found;
}

}  // namespace openrnn::conformance
