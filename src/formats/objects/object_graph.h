// The object graph of an object-based checkpoint: which object has which children by name, and the
// keys of the values of each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace openrnn::formats {

struct ObjectChild {
  std::size_t node = 0;
  std::string name;
};

struct ObjectAttribute {
  std::string name;       // 'VARIABLE_VALUE'
  std::string full_name;  // of the variable in its graph
  std::string key;        // of the tensor in the bundle
};

/// Of an optimizer: the variable `node` belongs to the variable `original`.
struct ObjectSlot {
  std::size_t original = 0;
  std::string name;
  std::size_t node = 0;
};

struct ObjectNode {
  std::vector<ObjectChild> children;
  std::vector<ObjectAttribute> attributes;
  std::vector<ObjectSlot> slots;
  /// Whether it, or anything under it, has a value.
  bool has_values = false;

  /// Null when there is none.
  const ObjectChild* child(std::string_view name) const;
  /// The key of VARIABLE_VALUE, or null.
  const std::string* value_key() const;
};

inline constexpr std::string_view kObjectGraphKey = "_CHECKPOINTABLE_OBJECT_GRAPH";
inline constexpr std::string_view kValueAttribute = "VARIABLE_VALUE";

/// nodes[0] is the root. The graph may have cycles.
struct ObjectGraph {
  std::vector<ObjectNode> nodes;
};

/// Every index is that of a node, and the children of a node have different names.
/// Throws: FormatError naming `path` and the offset in `bytes`.
ObjectGraph decode_object_graph(const std::string& path, std::string_view bytes);
/// As TensorFlow writes it.
std::string encode_object_graph(const ObjectGraph& graph);

}  // namespace openrnn::formats
