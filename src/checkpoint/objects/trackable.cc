// What each kind of object holds.
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

TrackedObject layer_now(const Layer& layer) {
  TrackedObject object{.identity = &layer};
  if (!layer.built()) return object;
  for (const Variable& variable : layer.weights()) {
    if (auto saveable = saveable_of(layer, variable)) {
      object.saveables.push_back(std::move(saveable));
    } else {
      object.children.emplace_back(inner_name(layer, variable), variable);
    }
  }
  return object;
}

// What consists of layers has them as children, under TensorFlow's and Keras' names. Keras also
// counts its input layers, as `layer-0`; there are none here.
TrackedObject compound_now(const Layer& layer) {
  TrackedObject object{.identity = &layer};
  if (const auto* model = dynamic_cast<const Model*>(&layer)) {
    for (const Layer* inner : model->layers()) {
      if (inner->weights().empty()) continue;
      object.children.emplace_back(message("layer_with_weights-", object.children.size()), *inner);
    }
    return object;
  }
  if (const auto* stack = dynamic_cast<const MultiRNNCell*>(&layer)) {
    for (std::size_t i = 0; i < stack->cells().size(); ++i) {
      const Layer& cell = *stack->cells()[i];
      object.children.emplace_back(message("cell-", i), cell);
    }
    return object;
  }
  if (const auto* wrapper = dynamic_cast<const DropoutWrapper*>(&layer)) {
    const Layer& cell = *wrapper->cell();
    object.children.emplace_back("cell", cell);
    return object;
  }
  return layer_now(layer);
}

}  // namespace

Trackable::Trackable(Variable variable)
    : describe_([variable = std::move(variable)] { return TrackedObject{.variable = variable}; }) {}

Trackable::Trackable(const Layer& layer) : describe_([&layer] { return compound_now(layer); }) {}

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
