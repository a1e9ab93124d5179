// What a layer consists of: layers and variables under names.
#include "base/message.h"
#include "openrnn/graph_layer.h"

namespace openrnn {
namespace {

void check_part(const Layer& layer, const std::string& name) {
  if (name.empty()) {
    throw ArgumentError(message("[track] a part of the layer '", layer.name(),
                                "' has an empty name, expected one"));
  }
}

void add_layers(const std::vector<LayerPart>& parts, std::vector<Layer*>& found) {
  for (const LayerPart& part : parts) {
    if (part.layer && part.layer->layer) found.push_back(part.layer->layer);
    add_layers(part.parts, found);
  }
}

}  // namespace

LayerPart Layer::part_of(std::string name, const std::shared_ptr<Layer>& layer) {
  if (!layer) throw ArgumentError(message("[track] '", name, "' is null, expected a layer"));
  return {.name = std::move(name), .layer = layer->handle_, .owner = layer};
}

void Layer::track(const std::string& name, std::shared_ptr<Layer> layer) {
  add_part(part_of(name, layer));
}

void Layer::track(const std::string& name, Layer& layer) {
  add_part({.name = name, .layer = layer.handle_});
}

void Layer::track(const std::string& name, const Variable& variable) {
  if (variable.empty()) {
    throw ArgumentError(message("[track] '", name, "' is empty, expected a variable"));
  }
  add_part({.name = name, .variable = variable});
}

void Layer::track(const std::string& name, std::vector<LayerPart> parts) {
  add_part({.name = name, .parts = std::move(parts)});
}

void Layer::add_part(LayerPart part) {
  check_part(*this, part.name);
  if (part.layer == handle_) {
    throw ArgumentError(
        message("[track] the layer '", name_, "' is given as its own part, expected another one"));
  }
  std::erase_if(parts_, [&](const LayerPart& known) { return known.name == part.name; });
  parts_.push_back(part);
  part_was_added(part);
}

void Layer::track_from(std::function<std::vector<LayerPart>()> source) {
  more_parts_ = std::move(source);
}

std::vector<LayerPart> Layer::parts() const {
  std::vector<LayerPart> all = parts_;
  if (!more_parts_) return all;
  for (LayerPart& part : more_parts_()) all.push_back(std::move(part));
  return all;
}

std::vector<Layer*> Layer::sublayers() const {
  std::vector<Layer*> found;
  add_layers(parts(), found);
  return found;
}

std::vector<const Layer*> Layer::all_layers() const {
  std::vector<const Layer*> found{this};
  std::set<const Layer*> seen{this};
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const Layer* layer : found[i]->sublayers()) {
      if (seen.insert(layer).second) found.push_back(layer);
    }
  }
  return found;
}

void Layer::set_trainable(bool trainable) {
  std::set<const Layer*> reached;
  set_trainable(trainable, reached);
}

void Layer::set_trainable(bool trainable, std::set<const Layer*>& reached) {
  if (!reached.insert(this).second) return;
  *trainable_ = trainable;
  for (const LayerPart& part : parts()) set_part_trainable(part, trainable, reached);
  for (Layer* layer : sublayers()) layer->set_trainable(trainable, reached);
}

void Layer::set_part_trainable(const LayerPart& part, bool trainable,
                               std::set<const Layer*>& reached) {
  if (!part.variable.empty()) part.variable.belong_to(trainable_);
  if (part.layer && part.layer->layer) part.layer->layer->set_trainable(trainable, reached);
  for (const LayerPart& inner : part.parts) set_part_trainable(inner, trainable, reached);
}

void Layer::part_was_added(const LayerPart& part) {
  if (!trainable()) {
    std::set<const Layer*> reached{this};
    set_part_trainable(part, false, reached);
  }
  run_waiting();
}

void Layer::when_changed(std::function<bool()> then) { waiting_.push_back(std::move(then)); }

void Layer::run_waiting() {
  if (waiting_.empty()) return;
  // The function may itself wait for this layer.
  const std::vector<std::function<bool()>> now = std::exchange(waiting_, {});
  std::vector<std::function<bool()>> left;
  for (std::size_t i = 0; i < now.size(); ++i) {
    try {
      if (!now[i]()) left.push_back(now[i]);
    } catch (...) {
      waiting_.insert(waiting_.begin(), now.begin() + static_cast<std::ptrdiff_t>(i), now.end());
      waiting_.insert(waiting_.begin(), left.begin(), left.end());
      throw;
    }
  }
  waiting_.insert(waiting_.begin(), left.begin(), left.end());
}

}  // namespace openrnn
