// The objects of a checkpoint in the program, walked once.
#pragma once

#include "openrnn/checkpoint.h"

namespace openrnn::checkpoint {

/// One object. A value is a plain variable, or a piece of a group.
struct TreeNode {
  /// Names from the root, escaped and joined by slashes: what a key begins with.
  std::string path;
  std::vector<std::pair<std::string, std::size_t>> children;
  Variable variable = {};
  bool is_piece = false;
  std::vector<TrackedSlot> slots = {};
  std::function<void(const std::vector<Variable>&)> make_slots = {};
  /// An object of the program, not a group or a part of a name.
  bool is_object = false;
  std::function<void(std::function<bool()>)> when_changed = {};
  std::shared_ptr<const void> token = {};
  bool unbuilt = false;
};

/// An opaque variable, whose pieces are nodes.
struct PieceGroup {
  std::shared_ptr<const ObjectSaveable> saveable;
  std::vector<std::size_t> nodes;  // one a tensor of the saveable
};

struct ObjectTree {
  std::vector<TreeNode> nodes;  // breadth first, the root at 0
  std::vector<PieceGroup> groups;

  /// The node of a plain variable, or nothing.
  std::optional<std::size_t> node_of(const Variable& variable) const;
  /// The group of an opaque variable, or null.
  const PieceGroup* group_of(const Variable& variable) const;
};

/// Throws: ArgumentError for an empty child name, or one that leads to two objects; StateError for
/// an object that is gone, unless these are left out.
ObjectTree walk(const NamedTrackables& roots, bool leave_out_gone = false);

/// A name escaped for a key.
std::string escape_name(const std::string& name);
/// 'model/kernel/.ATTRIBUTES/VARIABLE_VALUE'.
std::string value_key(const std::string& path);
/// 'model/kernel/.OPTIMIZER_SLOT/optimizer/m'.
std::string slot_path(const std::string& variable, const std::string& optimizer,
                      const std::string& slot);

/// The child of the root that counts saves, and the slot that holds the recurrent bias' part where
/// it differs from that of the input bias.
inline constexpr std::string_view kSaveCounter = "save_counter";
std::string recurrent_slot(const std::string& slot);

}  // namespace openrnn::checkpoint
