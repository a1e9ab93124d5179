#include "python/support/casters.h"

#include <unordered_map>

#include "graph/graph_state.h"

namespace openrnn::python {
namespace {

struct IdentityHash {
  std::size_t operator()(const Identity& identity) const noexcept {
    return std::hash<const void*>()(identity.object) * 31 + identity.index;
  }
};

// Borrowed references: each is removed when its object is freed. Guarded by the interpreter lock;
// never destroyed, because objects are freed until the very end of the process.
auto& alive() {
  static auto* const objects = new std::unordered_map<Identity, PyObject*, IdentityHash>;
  return *objects;
}

}  // namespace

nanobind::handle find_alive(const Identity& identity) {
  const auto found = alive().find(identity);
  return found == alive().end() ? nanobind::handle() : nanobind::handle(found->second).inc_ref();
}

void keep_graph_of(const Tensor& tensor, nanobind::handle object) {
  if (!tensor.is_symbolic() || !graph::is_alive(tensor.symbol()->call->graph_id)) return;
  const nanobind::object graph =
      nanobind::cast(tensor.symbol()->call->graph, nanobind::rv_policy::reference);
  nanobind::keep_alive_obj(object, graph);
}

void remember(const Identity& identity, nanobind::handle object) {
  alive()[identity] = object.ptr();
  using Entry = std::pair<Identity, PyObject*>;
  nanobind::keep_alive_cb(object, new Entry(identity, object.ptr()), [](void* payload) noexcept {
    const std::unique_ptr<Entry> mine(static_cast<Entry*>(payload));
    forget(mine->first, mine->second);
  });
}

void forget(const Identity& identity, nanobind::handle object) {
  const auto found = alive().find(identity);
  // Another object may have it by now: addresses are reused.
  if (found != alive().end() && found->second == object.ptr()) alive().erase(found);
}

}  // namespace openrnn::python
