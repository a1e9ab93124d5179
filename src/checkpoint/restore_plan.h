// A restore by the names of tensors.
#pragma once

#include <set>

#include "checkpoint/assignments.h"

namespace openrnn::checkpoint {

/// Whether dtype, shape and every bit agree.
bool same_bits(const Array& a, const Array& b);

/// What a file would give to which variable.
class RestorePlan {
 public:
  explicit RestorePlan(const TensorBundleReader& reader) : reader_(reader) {}

  /// Takes a plain variable's tensor, which has that name in the file.
  void add_variable(const std::string& name, const Variable& variable);
  /// Takes the canonical tensors; where `raw` is not null, the raw one of that name if they say the
  /// same or are absent, and then it must be there. Throws: ArgumentError where the file has
  /// tensors of another network in their place.
  void add_saveable(const SaveableObject& saveable, const std::string* raw);
  /// Throws: ArgumentError listing what the variables lack in the file; if `refuse_unexpected`,
  /// also for tensors that nothing took.
  void check_names(bool refuse_unexpected) const;
  /// Gives every variable its value.
  void assign() { assignments_.assign(); }

 private:
  Array read_checked(const std::string& name, const Variable& variable) const;
  void refuse_foreign(const SaveableObject& saveable) const;
  std::vector<std::string> unexpected() const;
  std::optional<Array> raw_if_equal(const SaveableObject& saveable, const std::string& name,
                                    const std::vector<Array>& stored) const;

  const TensorBundleReader& reader_;
  Assignments assignments_;
  std::vector<std::string> missing_;
  bool raw_missing_ = false;
  std::set<std::string> taken_;
};

}  // namespace openrnn::checkpoint
