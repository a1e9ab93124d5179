// The layers and variables among the attributes of a layer's Python object are its parts.
#include <map>
#include <set>

#include "base/message.h"
#include "python/layers/layer_ref.h"

namespace openrnn::python {
namespace {

std::optional<LayerPart> part_of(const std::string& name, nb::handle value,
                                 std::set<PyObject*>& above);

void add_part(std::vector<LayerPart>& parts, const std::string& name, nb::handle value,
              std::set<PyObject*>& above) {
  if (auto part = part_of(name, value, above)) parts.push_back(std::move(*part));
}

std::string key_of(nb::handle key, const LayerPart& part) {
  if (nb::isinstance<nb::str>(key)) return nb::cast<std::string>(key);
  throw TypeError(message("[Layer] the dictionary '", part.name, "' has the key ",
                          nb::cast<std::string>(nb::repr(key)), " for a layer or a variable, ",
                          "expected a string"));
}

LayerPart group_of(const std::string& name, nb::handle value, std::set<PyObject*>& above) {
  LayerPart group{.name = name};
  if (nb::isinstance<nb::dict>(value)) {
    for (const auto& [key, item] : nb::borrow<nb::dict>(value)) {
      if (auto part = part_of("", item, above)) {
        part->name = key_of(key, group);
        group.parts.push_back(std::move(*part));
      }
    }
    return group;
  }
  std::size_t index = 0;
  for (const nb::handle item : value) add_part(group.parts, std::to_string(index++), item, above);
  return group;
}

// Nothing for what is neither a layer nor a variable nor holds one. `above` are the containers
// around it, which a container may hold again.
std::optional<LayerPart> part_of(const std::string& name, nb::handle value,
                                 std::set<PyObject*>& above) {
  // An unfinished copy may hold an object that is made later.
  if (nb::isinstance<LayerRef>(value) && !nb::inst_ready(value)) return {};
  const LayerRef* layer = nullptr;
  if (nb::try_cast<const LayerRef*>(value, layer) && layer) {
    if (!layer->share()) return {};
    return Layer::part_of(name, layer->share());
  }
  const Variable* variable = nullptr;
  if (nb::try_cast<const Variable*>(value, variable) && variable) {
    return LayerPart{.name = name, .variable = *variable};
  }
  const bool is_group = nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value) ||
                        nb::isinstance<nb::dict>(value);
  if (!is_group || !above.insert(value.ptr()).second) return {};
  LayerPart group = group_of(name, value, above);
  above.erase(value.ptr());
  if (group.parts.empty()) return {};
  return group;
}

// Attributes that are never parts: a class lists its own.
bool is_left_out(nb::handle object, nb::handle name) {
  return nb::cast<bool>(object.type().attr("_untracked").attr("__contains__")(name));
}

std::vector<LayerPart> attribute_parts(const Layer* layer) {
  const nb::gil_scoped_acquire lock;
  std::vector<LayerPart> parts;
  const nb::handle alive = find_alive({layer, 0});
  if (!alive) return parts;
  const nb::object object = nb::steal(alive);
  if (!nb::hasattr(object, "__dict__")) return parts;
  std::set<PyObject*> above;
  for (const auto& [name, value] : nb::cast<nb::dict>(object.attr("__dict__"))) {
    if (is_left_out(object, name)) continue;
    add_part(parts, nb::cast<std::string>(name), value, above);
  }
  return parts;
}

// What is kept of a layer's Python object; freed with the layer.
struct Remembered {
  explicit Remembered(const Layer* of) : layer(of) {}
  ~Remembered();
  Remembered(const Remembered&) = delete;
  Remembered& operator=(const Remembered&) = delete;
  const Layer* layer;
  Kept type, attributes;
};

// Guarded by the interpreter lock; never destroyed, as layers are freed until the very end.
auto& remembered() {
  static auto* const by_layer = new std::map<const Layer*, std::weak_ptr<Remembered>>;
  return *by_layer;
}

Remembered::~Remembered() {
  if (!Py_IsInitialized()) return;
  const nb::gil_scoped_acquire lock;
  remembered().erase(layer);
}

bool may_hold_layers(nb::handle object, nb::handle name, nb::handle value) {
  if (is_left_out(object, name)) return false;  // cells, which a wrapper holds already
  std::set<PyObject*> above;
  return is_symbolic(value) || part_of(nb::cast<std::string>(name), value, above);
}

}  // namespace

void track_attributes(Layer& layer) {
  std::shared_ptr<Remembered> kept = remembered()[&layer].lock();
  if (!kept) kept = std::make_shared<Remembered>(&layer);
  remembered()[&layer] = kept;
  layer.track_from([&layer, kept] { return attribute_parts(&layer); });
}

bool remember_attributes(const Layer& layer) {
  const nb::handle alive = find_alive({&layer, 0});
  const auto found = remembered().find(&layer);
  if (!alive || found == remembered().end()) return false;
  const nb::object object = nb::steal(alive);
  const std::shared_ptr<Remembered> kept = found->second.lock();
  if (!kept || !nb::hasattr(object, "_made")) return false;
  if (nb::cast<bool>(object.type().attr("_overrides_call"))) return true;
  nb::dict attributes;
  for (const auto& [name, value] : nb::cast<nb::dict>(object.attr("__dict__"))) {
    if (!may_hold_layers(object, name, value)) attributes[name] = value;
  }
  kept->type = Kept(nb::borrow(object.type()));
  kept->attributes = Kept(attributes);
  return true;
}

nb::object remembered_object(const std::shared_ptr<Layer>& layer) {
  const auto found = remembered().find(layer.get());
  const std::shared_ptr<Remembered> kept =
      found == remembered().end() ? nullptr : found->second.lock();
  if (!kept || !kept->type) return {};
  nb::object made = wrap_as(kept->type.get(), LayerRef(layer));
  made.attr("__dict__").attr("update")(kept->attributes.get());
  return made;
}

void bind_attributes(nb::module_& m) {
  m.def(
      "layer_part_added",
      [](nb::handle self, nb::handle name, nb::handle value) {
        if (!nb::inst_ready(self)) return;  // __init__ of the base class has not run
        const auto& ref = nb::cast<const LayerRef&>(self);
        if (!ref.share() || is_left_out(self, name)) return;
        std::set<PyObject*> above;
        if (const auto part = part_of(nb::cast<std::string>(name), value, above)) {
          ref.get().part_was_added(*part);
        }
      },
      "layer"_a, "name"_a, "value"_a);
}

}  // namespace openrnn::python
