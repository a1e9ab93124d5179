// A saveable of a test: one variable under its own name.
#pragma once

#include "openrnn/graph.h"

namespace openrnn::testing {

struct OneVariable : SaveableObject {
  explicit OneVariable(Variable variable) : of(std::move(variable)) {}
  const std::string& name() const override { return of.name(); }
  const Variable& variable() const override { return of; }
  std::vector<std::string> spec_names() const override { return {}; }
  std::vector<Array> to_tensors(const ConstArrayView&) const override { return {}; }
  Array from_tensors(const std::vector<Array>&) const override { return {}; }
  Variable of;
};

}  // namespace openrnn::testing
