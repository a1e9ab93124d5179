#include "checkpoint/objects/restore.h"

#include <algorithm>
#include <deque>

#include "base/message.h"

namespace openrnn::checkpoint {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

ObjectPlan::ObjectPlan(const ObjectFile& file, const ObjectTree& tree, Given given)
    : file_(file), tree_(tree), given_(std::move(given)) {
  match();
  plan_variables();
  for (const PieceGroup& group : tree_.groups) plan_group(group);
  for (std::size_t i = 0; i < tree_.nodes.size(); ++i) {
    for (const TrackedSlot& slot : tree_.nodes[i].slots) plan_slot(i, slot);
  }
  miss_objects();
}

void ObjectPlan::match() {
  matches_.resize(tree_.nodes.size());
  matches_[0] = 0;
  std::deque<std::size_t> open{0};
  while (!open.empty()) {
    const std::size_t here = open.front();
    open.pop_front();
    for (const auto& [name, child] : tree_.nodes[here].children) {
      const formats::ObjectChild* there = file_.graph.nodes[*matches_[here]].child(name);
      if (!there) continue;
      if (!matches_[child]) {
        matches_[child] = there->node;
        open.push_back(child);
      } else if (*matches_[child] != there->node) {
        const std::string& above = tree_.nodes[here].path;
        throw ArgumentError(message("[Checkpoint::read] ", file_.reader.prefix(), ": ",
                                    tree_.nodes[child].path, " and ", above,
                                    above.empty() ? "" : "/", escape_name(name),
                                    " are two objects there, expected one as they are here"));
      }
    }
  }
}

const std::string* ObjectPlan::key_of(std::size_t node) const {
  return matches_[node] ? file_.value_of(*matches_[node]) : nullptr;
}

const std::string* ObjectPlan::slot_key(std::size_t optimizer, std::size_t node,
                                        const std::string& name) const {
  if (!matches_[optimizer] || !matches_[node]) return nullptr;
  const auto slot = file_.slot_of(*matches_[optimizer], *matches_[node], name);
  return slot ? file_.value_of(*slot) : nullptr;
}

Array ObjectPlan::take(const std::string& key) {
  Array value = file_.reader.read(key);
  given_.keys.insert(key);
  return value;
}

void ObjectPlan::keep(const Variable& variable, const Array& value) {
  given_.variables.insert(variable.leaf_id());
  assignments_.add(variable, value);
}

void ObjectPlan::assign_checked(const Variable& variable, const std::string& key,
                                const std::string& path) {
  const Array value = read_fitting("Checkpoint::read", file_.reader, key, path, variable);
  given_.keys.insert(key);
  keep(variable, value);
}

bool ObjectPlan::is_given(const Variable& variable) const {
  return given_.variables.contains(variable.leaf_id());
}

void ObjectPlan::plan_variables() {
  for (std::size_t i = 0; i < tree_.nodes.size(); ++i) {
    const TreeNode& node = tree_.nodes[i];
    if (node.variable.empty() || is_given(node.variable)) continue;
    if (const std::string* key = key_of(i)) {
      assign_checked(node.variable, *key, node.path);
    } else {
      missing_.push_back(node.path);
    }
  }
}

// Objects that the file does not have, where no variable of theirs says so.
void ObjectPlan::miss_objects() {
  std::vector<bool> valued(tree_.nodes.size());
  for (std::size_t i = 0; i < tree_.nodes.size(); ++i) {
    const TreeNode& node = tree_.nodes[i];
    valued[i] = !node.variable.empty() || node.is_piece || !node.slots.empty();
  }
  for (bool changed = true; changed;) {  // objects may lead back to what they came from
    changed = false;
    for (std::size_t i = 0; i < tree_.nodes.size(); ++i) {
      if (valued[i]) continue;
      for (const auto& child : tree_.nodes[i].children)
        valued[i] = valued[i] || valued[child.second];
      changed = changed || valued[i];
    }
  }
  for (std::size_t i = 0; i < tree_.nodes.size(); ++i) {
    if (tree_.nodes[i].is_object && !valued[i] && !matches_[i]) {
      missing_.push_back(tree_.nodes[i].path);
      ++missing_objects_;
    }
  }
}

bool ObjectPlan::has_values_left(std::size_t file_node, std::set<std::size_t>& seen) const {
  if (!seen.insert(file_node).second) return false;
  const formats::ObjectNode& node = file_.graph.nodes[file_node];
  const std::string* key = node.value_key();
  if (key && !given_.keys.contains(*key)) return true;
  for (const formats::ObjectChild& child : node.children) {
    if (has_values_left(child.node, seen)) return true;
  }
  return false;
}

std::vector<std::size_t> ObjectPlan::waiting() const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < tree_.nodes.size(); ++i) {
    const TreeNode& node = tree_.nodes[i];
    if (!node.when_changed || !matches_[i]) continue;
    std::set<std::size_t> seen;
    for (const formats::ObjectChild& child : file_.graph.nodes[*matches_[i]].children) {
      const bool here = std::any_of(node.children.begin(), node.children.end(),
                                    [&](const auto& mine) { return mine.first == child.name; });
      if (here || !has_values_left(child.node, seen)) continue;
      found.push_back(i);
      break;
    }
  }
  return found;
}

void ObjectPlan::plan_group(const PieceGroup& group) {
  if (is_given(group.saveable->variable())) return;
  std::vector<std::string> absent;
  std::vector<Array> tensors;
  for (const std::size_t node : group.nodes) {
    if (const std::string* key = key_of(node)) {
      tensors.push_back(take(*key));
    } else {
      absent.push_back(tree_.nodes[node].path);
    }
  }
  if (tensors.empty()) {
    missing_.insert(missing_.end(), absent.begin(), absent.end());
    return;
  }
  if (!absent.empty()) {
    throw ArgumentError(message("[Checkpoint::read] ", file_.reader.prefix(), " holds ",
                                tensors.size(), " of the ", group.nodes.size(), " pieces of ",
                                group.saveable->variable().name(), " and lacks ", joined(absent),
                                ", expected all of them"));
  }
  keep(group.saveable->variable(), group.saveable->from_tensors(tensors));
}

void ObjectPlan::plan_slot(std::size_t optimizer, const TrackedSlot& slot) {
  if (is_given(slot.slot)) return;
  if (const std::optional<std::size_t> plain = tree_.node_of(slot.variable)) {
    plan_plain_slot(optimizer, *plain, slot);
  } else if (const PieceGroup* group = tree_.group_of(slot.variable)) {
    plan_piece_slot(optimizer, *group, slot);
  }
}

void ObjectPlan::plan_plain_slot(std::size_t optimizer, std::size_t original,
                                 const TrackedSlot& slot) {
  const std::string path =
      slot_path(tree_.nodes[original].path, tree_.nodes[optimizer].path, slot.name);
  const std::string* key = slot_key(optimizer, original, slot.name);
  if (!key) {
    missing_.push_back(path);
    return;
  }
  if (slot_key(optimizer, original, recurrent_slot(slot.name))) {
    throw ArgumentError(message("[Checkpoint::read] ", file_.reader.prefix(), ": ", path,
                                " differs between the input and the recurrent bias, expected one "
                                "value for the single bias here"));
  }
  assign_checked(slot.slot, *key, path);
}

void ObjectPlan::plan_piece_slot(std::size_t optimizer, const PieceGroup& group,
                                 const TrackedSlot& slot) {
  const std::vector<bool> sums = group.saveable->bias_sums();
  std::vector<std::string> absent;
  std::vector<Array> tensors, recurrent;
  for (std::size_t i = 0; i < group.nodes.size(); ++i) {
    const std::size_t node = group.nodes[i];
    const std::string* key = slot_key(optimizer, node, slot.name);
    if (!key) {
      absent.push_back(slot_path(tree_.nodes[node].path, tree_.nodes[optimizer].path, slot.name));
      continue;
    }
    tensors.push_back(take(*key));
    if (!sums[i]) continue;
    const std::string* second = slot_key(optimizer, node, recurrent_slot(slot.name));
    recurrent.push_back(second ? take(*second) : tensors.back());
  }
  if (tensors.empty()) {
    missing_.insert(missing_.end(), absent.begin(), absent.end());
    return;
  }
  if (!absent.empty()) {
    throw ArgumentError(message("[Checkpoint::read] ", file_.reader.prefix(),
                                " holds a part of the slots of ", slot.variable.name(),
                                " and lacks ", joined(absent), ", expected all of them"));
  }
  for (Array& part : recurrent) tensors.push_back(std::move(part));
  const Array value = group.saveable->slot_from_tensors(tensors);
  if (value.dtype() != slot.slot.dtype()) {
    throw ArgumentError(message("[Checkpoint::read] ", file_.reader.prefix(), ": the slot '",
                                slot.name, "' of ", slot.variable.name(), " is ",
                                dtype_name(value.dtype()), ", expected ",
                                dtype_name(slot.slot.dtype())));
  }
  keep(slot.slot, value);
}

bool ObjectPlan::has_slots(std::size_t optimizer, std::size_t node) const {
  if (!matches_[optimizer] || !matches_[node]) return false;
  for (const formats::ObjectSlot& slot : file_.graph.nodes[*matches_[optimizer]].slots) {
    if (slot.original == *matches_[node]) return true;
  }
  return false;
}

std::map<std::size_t, std::vector<Variable>> ObjectPlan::slots_to_make() const {
  std::map<std::size_t, std::vector<Variable>> wanted;
  for (std::size_t i = 0; i < tree_.nodes.size(); ++i) {
    const TreeNode& optimizer = tree_.nodes[i];
    if (!optimizer.make_slots) continue;
    const auto want = [&](const Variable& variable, std::size_t node) {
      for (const TrackedSlot& slot : optimizer.slots) {
        if (slot.variable.same_as(variable)) return;
      }
      if (has_slots(i, node)) wanted[i].push_back(variable);
    };
    for (std::size_t node = 0; node < tree_.nodes.size(); ++node) {
      if (!tree_.nodes[node].variable.empty()) want(tree_.nodes[node].variable, node);
    }
    for (const PieceGroup& group : tree_.groups) {
      want(group.saveable->variable(), group.nodes.front());
    }
  }
  return wanted;
}

CheckpointStatus ObjectPlan::status() const {
  CheckpointStatus status;
  status.prefix = file_.reader.prefix();
  status.restored.assign(given_.keys.begin(), given_.keys.end());
  status.missing = missing_;
  status.missing_objects = missing_objects_;
  const formats::ObjectChild* counter = file_.graph.nodes[0].child(kSaveCounter);
  std::set<std::string> unused;
  for (std::size_t i = 0; i < file_.graph.nodes.size(); ++i) {
    if (counter && counter->node == i) continue;
    const std::string* key = file_.graph.nodes[i].value_key();
    if (key && !given_.keys.contains(*key)) unused.insert(*key);
  }
  status.unused.assign(unused.begin(), unused.end());
  return status;
}

}  // namespace openrnn::checkpoint
