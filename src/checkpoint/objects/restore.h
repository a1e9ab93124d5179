// A restore by object graph.
#pragma once

#include <set>

#include "checkpoint/assignments.h"
#include "checkpoint/objects/object_file.h"
#include "checkpoint/objects/tree.h"

namespace openrnn::checkpoint {

/// What a restore has given to variables so far.
struct Given {
  std::set<std::uint64_t> variables;  // leaf ids
  std::set<std::string> keys;
};

/// Which values of a file go to which variables of a tree.
class ObjectPlan {
 public:
  /// Variables that have been given theirs keep what they have now. Throws: as Checkpoint::read.
  ObjectPlan(const ObjectFile& file, const ObjectTree& tree, Given given);

  /// The variables with slots in the file that their optimizer has not made yet, by optimizer.
  std::map<std::size_t, std::vector<Variable>> slots_to_make() const;
  /// Gives every variable its value.
  void assign() { assignments_.assign(); }
  /// After assign(): what was given before, and now.
  const Given& given() const noexcept { return given_; }
  /// The objects of which the file has more than they hold now.
  std::vector<std::size_t> waiting() const;
  CheckpointStatus status() const;

 private:
  void match();
  void plan_variables();
  void miss_objects();
  bool is_given(const Variable& variable) const;
  bool has_values_left(std::size_t file_node, std::set<std::size_t>& seen) const;
  void plan_group(const PieceGroup& group);
  void plan_slot(std::size_t optimizer, const TrackedSlot& slot);
  void plan_plain_slot(std::size_t optimizer, std::size_t original, const TrackedSlot& slot);
  void plan_piece_slot(std::size_t optimizer, const PieceGroup& group, const TrackedSlot& slot);
  /// Reads a value whose key was found, and remembers that it was taken.
  Array take(const std::string& key);
  void assign_checked(const Variable& variable, const std::string& key, const std::string& path);
  void keep(const Variable& variable, const Array& value);
  const std::string* key_of(std::size_t node) const;
  const std::string* slot_key(std::size_t optimizer, std::size_t node,
                              const std::string& name) const;
  bool has_slots(std::size_t optimizer, std::size_t node) const;

  const ObjectFile& file_;
  const ObjectTree& tree_;
  std::vector<std::optional<std::size_t>> matches_;  // of the tree's nodes, in the file
  Assignments assignments_;
  std::vector<std::string> missing_;
  std::size_t missing_objects_ = 0;
  Given given_;
};

}  // namespace openrnn::checkpoint
