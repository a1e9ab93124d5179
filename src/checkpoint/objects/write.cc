#include "checkpoint/objects/write.h"

#include "base/message.h"
#include "checkpoint/restore_plan.h"
#include "formats/objects/object_graph.h"

namespace openrnn::checkpoint {
namespace {

// Builds the graph beside the bundle. Nodes of the tree keep their numbers; slots follow.
class TreeWriter {
 public:
  TreeWriter(const ObjectTree& tree, const std::string& prefix) : tree_(tree), writer_(prefix) {
    graph_.nodes.resize(tree.nodes.size());
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      for (const auto& [name, child] : tree.nodes[i].children) {
        graph_.nodes[i].children.push_back({child, name});
      }
    }
  }

  void write(std::optional<std::int64_t> save_counter) {
    add_values();
    for (std::size_t i = 0; i < tree_.nodes.size(); ++i) add_slots(i);
    if (save_counter) add_counter(*save_counter);
    mark_values();
    writer_.add_string(std::string(formats::kObjectGraphKey), encode_object_graph(graph_));
    writer_.finish();
  }

 private:
  void add_value(std::size_t node, const std::string& path, const std::string& full_name,
                 const Array& value) {
    const std::string key = value_key(path);
    writer_.add(key, value);
    graph_.nodes[node].attributes.push_back(
        {std::string(formats::kValueAttribute), full_name, key});
  }

  void add_values() {
    for (std::size_t i = 0; i < tree_.nodes.size(); ++i) {
      const TreeNode& node = tree_.nodes[i];
      if (node.variable.empty()) continue;
      add_value(i, node.path, node.variable.name(), node.variable.to_host());
    }
    for (const PieceGroup& group : tree_.groups) {
      const std::vector<SaveableObject::Spec> specs = group.saveable->specs();
      for (std::size_t i = 0; i < specs.size(); ++i) {
        const std::size_t node = group.nodes[i];
        add_value(node, tree_.nodes[node].path, specs[i].name, specs[i].tensor);
      }
    }
  }

  void add_slots(std::size_t optimizer) {
    for (const TrackedSlot& slot : tree_.nodes[optimizer].slots) {
      const std::optional<std::size_t> plain = tree_.node_of(slot.variable);
      if (plain) {
        add_slot(optimizer, *plain, slot.name, slot.slot.name(), slot.slot.to_host());
      } else if (const PieceGroup* group = tree_.group_of(slot.variable)) {
        add_piece_slots(optimizer, *group, slot);
      }
    }
  }

  void add_piece_slots(std::size_t optimizer, const PieceGroup& group, const TrackedSlot& slot) {
    const Array value = slot.slot.to_host();
    const std::vector<Array> parts = group.saveable->slot_to_tensors(value.view());
    const std::vector<bool> sums = group.saveable->bias_sums();
    const std::vector<std::string> names = group.saveable->spec_names();
    // What the optimizer calls the slot, after the variable's name: '/Adam_1'.
    const std::string& raw = slot.variable.name();
    const std::string tail =
        slot.slot.name().starts_with(raw) ? slot.slot.name().substr(raw.size()) : "/" + slot.name;
    std::size_t next = sums.size();
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const std::string full_name = names[i] + tail;
      add_slot(optimizer, group.nodes[i], slot.name, full_name, parts[i]);
      if (!sums[i]) continue;
      const Array& recurrent = parts[next++];
      if (!same_bits(parts[i], recurrent)) {
        add_slot(optimizer, group.nodes[i], recurrent_slot(slot.name), full_name, recurrent);
      }
    }
  }

  void add_slot(std::size_t optimizer, std::size_t original, const std::string& name,
                const std::string& full_name, const Array& value) {
    const std::size_t node = graph_.nodes.size();
    graph_.nodes.emplace_back();
    graph_.nodes[optimizer].slots.push_back({original, name, node});
    add_value(node, slot_path(tree_.nodes[original].path, tree_.nodes[optimizer].path, name),
              full_name, value);
  }

  void add_counter(std::int64_t count) {
    const std::string name(kSaveCounter);
    graph_.nodes[0].children.push_back({graph_.nodes.size(), name});
    graph_.nodes.emplace_back();
    add_value(graph_.nodes.size() - 1, name, name,
              Array::of<std::int64_t>({}, std::span<const std::int64_t>(&count, 1)));
  }

  // Whether a node or a descendant has a value; the graph may have cycles.
  void mark_values() {
    for (formats::ObjectNode& node : graph_.nodes) node.has_values = !node.attributes.empty();
    for (bool changed = true; changed;) {
      changed = false;
      for (formats::ObjectNode& node : graph_.nodes) {
        if (node.has_values) continue;
        node.has_values = !node.slots.empty();
        for (const formats::ObjectChild& child : node.children) {
          node.has_values |= graph_.nodes[child.node].has_values;
        }
        changed |= node.has_values;
      }
    }
  }

  const ObjectTree& tree_;
  TensorBundleWriter writer_;
  formats::ObjectGraph graph_;
};

}  // namespace

void write_tree(const ObjectTree& tree, std::optional<std::int64_t> save_counter,
                const std::string& prefix) {
  TreeWriter(tree, prefix).write(save_counter);
}

}  // namespace openrnn::checkpoint
