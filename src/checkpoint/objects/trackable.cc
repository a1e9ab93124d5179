// What each kind of object holds.
#include <algorithm>

#include "base/message.h"
#include "openrnn/cells.h"
#include "openrnn/checkpoint.h"
#include "openrnn/graph_layer.h"

namespace openrnn {
namespace {

std::shared_ptr<const ObjectSaveable> saveable_of(const Layer& layer, const Variable& variable) {
  for (const auto& saveable : layer.graph().saveables()) {
    if (!saveable->variable().same_as(variable)) continue;
    if (auto found = std::dynamic_pointer_cast<const ObjectSaveable>(saveable)) return found;
  }
  return nullptr;
}

// A variable's name inside the layer's scope.
std::string inner_name(const Layer& layer, const Variable& variable) {
  const std::string scope = layer.scope_name() + "/";
  return variable.name().starts_with(scope) ? variable.name().substr(scope.size())
                                            : variable.name();
}

bool is_part(const std::vector<LayerPart>& parts, const Variable& variable) {
  return std::any_of(parts.begin(), parts.end(), [&](const LayerPart& part) {
    return !part.variable.empty() && part.variable.same_as(variable);
  });
}

// Under their own names, but for those whose name a part has taken and which are parts themselves.
void add_weights(const Layer& layer, const std::vector<LayerPart>& parts, TrackedObject& object) {
  for (const Variable& variable : layer.own_weights()) {
    if (auto saveable = saveable_of(layer, variable)) {
      object.saveables.push_back(std::move(saveable));
      continue;
    }
    const std::string name = inner_name(layer, variable);
    const bool taken = std::any_of(parts.begin(), parts.end(), [&](const LayerPart& part) {
      return part.name == name && !(is_part({part}, variable));
    });
    if (!taken || !is_part(parts, variable)) object.children.emplace_back(name, variable);
  }
}

using LayerToken = std::shared_ptr<const LayerHandle>;

void list_parts(const std::vector<LayerPart>& parts, std::vector<std::uint64_t>& listed) {
  for (const LayerPart& part : parts) {
    if (part.layer) listed.push_back(reinterpret_cast<std::uintptr_t>(part.layer.get()));
    if (!part.variable.empty()) listed.push_back(part.variable.leaf_id());
    list_parts(part.parts, listed);
  }
  listed.push_back(0);
}

// What a layer consists of, in a form that is quickly compared: a call asks for it.
std::vector<std::uint64_t> listed_parts(const Layer& layer) {
  std::vector<std::uint64_t> listed;
  listed.push_back(layer.built() ? 1 : 0);
  list_parts(layer.parts(), listed);
  return listed;
}

std::function<void(std::function<bool()>)> changes_of(const LayerToken& token) {
  return [token](std::function<bool()> then) {
    if (!token->layer) return;
    token->layer->when_changed(
        [token, then = std::move(then), last = listed_parts(*token->layer)]() mutable {
          std::vector<std::uint64_t> now = listed_parts(*token->layer);
          if (now == last) return false;
          const bool done = then();  // when it throws, the next call tries again
          last = std::move(now);
          return done;
        });
  };
}

// A group gets more children when the layer that it belongs to does.
Trackable trackable_of(const LayerPart& part, const LayerToken& layer) {
  if (!part.variable.empty()) return part.variable;
  if (part.layer) return part.layer->layer ? Trackable(*part.layer->layer) : NamedTrackables{};
  return Trackable::from([parts = part.parts, layer] {
    TrackedObject object{.when_changed = changes_of(layer), .token = layer};
    object.unbuilt = layer->layer && !layer->layer->built();
    for (const LayerPart& inner : parts) {
      object.children.emplace_back(inner.name, trackable_of(inner, layer));
    }
    return object;
  });
}

// Layers inside get TensorFlow's and Keras' names. Keras also counts its input layers, as
// `layer-0`; there are none here.
void add_layers(const Layer& layer, TrackedObject& object) {
  if (const auto* model = dynamic_cast<const Model*>(&layer)) {
    for (const Layer* inner : model->layers()) {
      if (inner->weights().empty()) continue;
      object.children.emplace_back(message("layer_with_weights-", object.children.size()), *inner);
    }
  } else if (const auto* stack = dynamic_cast<const MultiRNNCell*>(&layer)) {
    for (std::size_t i = 0; i < stack->cells().size(); ++i) {
      const Layer& cell = *stack->cells()[i];
      object.children.emplace_back(message("cell-", i), cell);
    }
  } else if (const auto* wrapper = dynamic_cast<const DropoutWrapper*>(&layer)) {
    const Layer& cell = *wrapper->cell();
    object.children.emplace_back("cell", cell);
  }
}

TrackedObject layer_now(const LayerToken& token) {
  if (!token->layer) return {.gone = true};
  const Layer& layer = *token->layer;
  TrackedObject object{.identity = &layer,
                       .when_changed = changes_of(token),
                       .token = token,
                       .unbuilt = !layer.built()};
  const std::vector<LayerPart> parts = layer.parts();
  add_layers(layer, object);
  add_weights(layer, parts, object);
  for (const LayerPart& part : parts) {
    object.children.emplace_back(part.name, trackable_of(part, token));
  }
  return object;
}

}  // namespace

Trackable::Trackable(Variable variable)
    : describe_([variable = std::move(variable)] { return TrackedObject{.variable = variable}; }) {}

Trackable::Trackable(const Layer& layer)
    : describe_([token = layer.handle()] { return layer_now(token); }) {}

Trackable::Trackable(std::shared_ptr<const ObjectSaveable> saveable) {
  if (!saveable) throw ArgumentError("[Trackable] saveable is null, expected an object");
  describe_ = [saveable = std::move(saveable)] {
    return TrackedObject{.identity = saveable.get(), .saveables = {saveable}};
  };
}

Trackable::Trackable(NamedTrackables children)
    : describe_([children = std::move(children)] { return TrackedObject{.children = children}; }) {}

Trackable Trackable::list(std::vector<Trackable> items) {
  NamedTrackables children;
  for (std::size_t i = 0; i < items.size(); ++i) {
    children.emplace_back(std::to_string(i), std::move(items[i]));
  }
  return children;
}

Trackable Trackable::from(std::function<TrackedObject()> describe) {
  if (!describe) throw ArgumentError("[Trackable] describe is empty, expected a function");
  Trackable trackable;
  trackable.describe_ = std::move(describe);
  return trackable;
}

TrackedObject Trackable::now() const { return describe_(); }

}  // namespace openrnn
