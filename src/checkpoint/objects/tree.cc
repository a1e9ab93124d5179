#include "checkpoint/objects/tree.h"

#include <algorithm>
#include <deque>

#include "base/message.h"
#include "formats/objects/object_graph.h"

namespace openrnn::checkpoint {
namespace {

class Walker {
 public:
  explicit Walker(bool leave_out_gone) : leave_out_gone_(leave_out_gone) {}
  ObjectTree walk(const NamedTrackables& roots) {
    tree_.nodes.emplace_back();
    add_children(0, roots);
    while (!open_.empty()) {
      const auto [node, object] = std::move(open_.front());
      open_.pop_front();
      add_children(node, object.children);
      for (const auto& saveable : object.saveables) add_pieces(node, *group_for(saveable));
    }
    return std::move(tree_);
  }

 private:
  std::size_t new_node(std::size_t parent, const std::string& name) {
    const std::string& above = tree_.nodes[parent].path;
    std::string path = message(above, above.empty() ? "" : "/", escape_name(name));
    tree_.nodes.emplace_back().path = std::move(path);
    return tree_.nodes.size() - 1;
  }

  // What leads to `node` under that name from now on; makes sure that nothing else does.
  void connect(std::size_t parent, const std::string& name, std::size_t node) {
    TreeNode& above = tree_.nodes[parent];
    if (name.empty()) {
      throw ArgumentError(message("[Checkpoint] an object under '", above.path,
                                  "' has an empty name, expected one"));
    }
    for (const auto& [other, there] : above.children) {
      if (other != name) continue;
      if (there == node) return;
      throw ArgumentError(message("[Checkpoint] two objects under '", above.path, "' are named '",
                                  name, "', expected different names"));
    }
    above.children.emplace_back(name, node);
  }

  void add_children(std::size_t parent, const NamedTrackables& children) {
    for (const auto& [name, trackable] : children) {
      TrackedObject object = trackable.now();
      if (object.gone) {
        if (leave_out_gone_) continue;
        throw StateError(message("[Checkpoint] the object '", name,
                                 "' is gone, expected it to outlive the checkpoint"));
      }
      connect(parent, name, node_for(parent, name, std::move(object)));
    }
  }

  std::size_t node_for(std::size_t parent, const std::string& name, TrackedObject object) {
    if (!object.variable.empty()) {
      const auto [at, fresh] = variables_.try_emplace(object.variable.leaf_id());
      if (fresh) {
        at->second = new_node(parent, name);
        tree_.nodes[at->second].variable = object.variable;
      }
      return at->second;
    }
    if (object.identity) {
      const auto found = objects_.find(object.identity);
      if (found != objects_.end()) return found->second;
    }
    const std::size_t node = new_node(parent, name);
    if (object.identity) objects_[object.identity] = node;
    tree_.nodes[node].slots = std::move(object.slots);
    tree_.nodes[node].make_slots = std::move(object.make_slots);
    tree_.nodes[node].is_object = object.identity != nullptr;
    tree_.nodes[node].when_changed = std::move(object.when_changed);
    tree_.nodes[node].token = std::move(object.token);
    tree_.nodes[node].unbuilt = object.unbuilt;
    open_.emplace_back(node, std::move(object));
    return node;
  }

  PieceGroup* group_for(const std::shared_ptr<const ObjectSaveable>& saveable) {
    for (PieceGroup& group : tree_.groups) {
      if (group.saveable->variable().same_as(saveable->variable())) return &group;
    }
    tree_.groups.push_back({saveable, {}});
    return &tree_.groups.back();
  }

  void add_pieces(std::size_t parent, PieceGroup& group) {
    const std::vector<std::vector<ObjectPath>> all = group.saveable->object_paths();
    const bool fresh = group.nodes.empty();
    for (std::size_t piece = 0; piece < all.size(); ++piece) {
      std::vector<ObjectPath> paths = all[piece];
      // The shortest names the key, as in a walk in breadth.
      std::stable_sort(paths.begin(), paths.end(), [](const ObjectPath& a, const ObjectPath& b) {
        return a.size() < b.size();
      });
      for (const ObjectPath& path : paths) {
        const std::size_t above = descend(parent, path);
        if (fresh && group.nodes.size() == piece) {
          group.nodes.push_back(new_node(above, path.back()));
          tree_.nodes[group.nodes.back()].is_piece = true;
        }
        connect(above, path.back(), group.nodes[piece]);
      }
    }
  }

  // The parent of the last name of a path, made if missing.
  std::size_t descend(std::size_t node, const ObjectPath& path) {
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      std::optional<std::size_t> next;
      for (const auto& [name, child] : tree_.nodes[node].children) {
        if (name == path[i]) next = child;
      }
      if (!next) {
        next = new_node(node, path[i]);
        connect(node, path[i], *next);
      }
      node = *next;
    }
    return node;
  }

  const bool leave_out_gone_;
  ObjectTree tree_;
  std::deque<std::pair<std::size_t, TrackedObject>> open_;
  std::map<const void*, std::size_t> objects_;
  std::map<std::uint64_t, std::size_t> variables_;
};

}  // namespace

std::optional<std::size_t> ObjectTree::node_of(const Variable& variable) const {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].variable.empty() && nodes[i].variable.same_as(variable)) return i;
  }
  return {};
}

const PieceGroup* ObjectTree::group_of(const Variable& variable) const {
  for (const PieceGroup& group : groups) {
    if (group.saveable->variable().same_as(variable)) return &group;
  }
  return nullptr;
}

ObjectTree walk(const NamedTrackables& roots, bool leave_out_gone) {
  return Walker(leave_out_gone).walk(roots);
}

std::string escape_name(const std::string& name) {
  std::string escaped;
  for (const char c : name) {
    if (c == '.') {
      escaped += "..";
    } else if (c == '/') {
      escaped += ".S";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string value_key(const std::string& path) {
  return message(path, "/.ATTRIBUTES/", formats::kValueAttribute);
}

std::string slot_path(const std::string& variable, const std::string& optimizer,
                      const std::string& slot) {
  return message(variable, "/.OPTIMIZER_SLOT/", optimizer, "/", escape_name(slot));
}

std::string recurrent_slot(const std::string& slot) { return slot + "_recurrent"; }

}  // namespace openrnn::checkpoint
