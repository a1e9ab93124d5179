// What an object-based checkpoint holds of an optimizer.
#include "openrnn/train_optimizer.h"

namespace openrnn::train {

std::vector<std::string> Optimizer::slot_names() const {
  std::vector<std::string> names;
  for (const SlotRule& rule : slot_rules_) names.emplace_back(rule.name);
  return names;
}

Trackable Optimizer::trackable() {
  return Trackable::from([this, alive = std::weak_ptr<const bool>(alive_)] {
    return alive.expired() ? TrackedObject{.gone = true} : tracked();
  });
}

TrackedObject Optimizer::tracked() {
  TrackedObject object{.identity = this, .children = scalars()};
  if (!loss_scale_.empty()) {
    object.children.emplace_back("loss_scale", loss_scale_);
    object.children.emplace_back("loss_scale_good_steps", good_steps_);
  }
  std::map<std::string, const Kept*> by_name;
  for (const auto& [id, kept] : kept_) by_name[kept.variable.name()] = &kept;
  for (const auto& [name, at] : by_name) {
    const Kept& kept = *at;
    for (std::size_t i = 0; i < kept.slots.size(); ++i) {
      object.slots.push_back({std::string(slot_rules_[i].name), kept.variable, kept.slots[i]});
    }
    if (!kept.master.empty()) object.slots.push_back({"master", kept.variable, kept.master});
  }
  object.make_slots = [this](const std::vector<Variable>& variables) { prepare(variables); };
  return object;
}

}  // namespace openrnn::train
