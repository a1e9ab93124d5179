// One Python object for one Variable and for one symbolic tensor, as long as somebody holds it.
#pragma once

#include <nanobind/nanobind.h>

#include "openrnn/graph_symbolic.h"

namespace openrnn::python {

/// What makes two C++ values the same Python object.
struct Identity {
  const void* object = nullptr;
  std::uint64_t index = 0;
  friend bool operator==(const Identity&, const Identity&) = default;
};

/// The live Python object of that identity, a new reference; null when there is none.
nanobind::handle find_alive(const Identity& identity);
/// Makes `object` the one of that identity until it is freed.
void remember(const Identity& identity, nanobind::handle object);
/// Unregisters it before, unless another object has the identity.
void forget(const Identity& identity, nanobind::handle object);

/// A symbolic tensor's graph lives as long as the tensor's Python object.
void keep_graph_of(const Tensor& tensor, nanobind::handle object);
inline void keep_graph_of(const Variable&, nanobind::handle) {}

/// Empty when every conversion makes a new Python object.
inline Identity identity_of(const Tensor& tensor) {
  return tensor.is_symbolic() ? Identity{tensor.symbol()->call.get(), tensor.symbol()->index}
                              : Identity{};
}
inline Identity identity_of(const Variable& variable) {
  return variable.empty() ? Identity{} : Identity{&typeid(Variable), variable.leaf_id()};
}

template <class T>
struct IdentityCaster : nanobind::detail::type_caster_base<T> {
  using Base = nanobind::detail::type_caster_base<T>;
  template <class V>
  static nanobind::handle from_cpp(V&& value, nanobind::rv_policy,
                                   nanobind::detail::cleanup_list* cleanup) noexcept {
    const Identity identity = identity_of(value);
    if (identity.object) {
      if (const nanobind::handle alive = find_alive(identity)) return alive;
    }
    const nanobind::handle made = Base::from_cpp(T(value), nanobind::rv_policy::move, cleanup);
    if (identity.object && made) {
      remember(identity, made);
      keep_graph_of(value, made);
    }
    return made;
  }
};

}  // namespace openrnn::python

namespace nanobind::detail {
template <>
struct type_caster<openrnn::Tensor> : openrnn::python::IdentityCaster<openrnn::Tensor> {};
template <>
struct type_caster<openrnn::Variable> : openrnn::python::IdentityCaster<openrnn::Variable> {};
}  // namespace nanobind::detail
