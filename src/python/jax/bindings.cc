// What openrnn.jax calls: the handlers, as JAX registers them, and networks by their text.
#include "python/jax/capsule.h"
#include "python/jax/held.h"
#include "python/jax/passes.h"
#include "python/support/network.h"

namespace openrnn::python {
namespace {

using jax::Token;

nb::dict targets() {
  nb::dict all;
  all["openrnn_forward"] = jax::capsule_of(&jax::forward);
  all["openrnn_backward"] = jax::capsule_of(&jax::backward);
  all["openrnn_tangent"] = jax::capsule_of(&jax::tangent);
  return all;
}

std::string text_of(const nb::dict& options) {
  const ValidSpec spec(as_network("openrnn.jax", options));
  return spec_to_json(spec);
}

std::pair<std::uint32_t, std::uint32_t> hold(const std::string& text, std::uintptr_t params,
                                             bool stays) {
  const auto* const at = reinterpret_cast<const void*>(params);  // NOLINT: an address of JAX's
  const Token token = unlocked([&] { return jax::hold(text, at, stays ? params : 0); });
  return {token[0], token[1]};
}

}  // namespace

void bind_jax(nb::module_& m) {
  m.def("jax_targets", &targets, nb::sig("def jax_targets() -> dict[str, typing.Any]"));
  m.def("jax_network", &text_of, "options"_a,
        nb::sig("def jax_network(options: dict[str, typing.Any]) -> str"));
  m.def(
      "jax_reserve_bytes",
      [](const std::string& text, std::int64_t max_time, std::int64_t batch, bool training) {
        return jax::reserve_bytes(*jax::network_of("openrnn.jax", text), max_time, batch, training);
      },
      "network"_a, "max_time"_a, "batch"_a, "training"_a);
  m.def("jax_hold", &hold, "network"_a, "params"_a, "stays"_a);
  m.def(
      "jax_drop",
      [](std::uint32_t a, std::uint32_t b) {
        jax::drop({a, b});
      },
      "a"_a, "b"_a);
  m.def("jax_held", &jax::count_held);
}

}  // namespace openrnn::python
