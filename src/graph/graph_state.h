// What a Graph holds.
#pragma once

#include <map>

#include "openrnn/graph.h"

namespace openrnn {

struct Graph::State {
  std::vector<Variable> variables;
  std::map<std::string, std::size_t> variable_places;
  std::vector<std::shared_ptr<SaveableObject>> saveables;
  std::vector<std::function<Tensor()>> regularization_losses;
  /// How often a scope of that full name was opened since the scope around it was.
  std::map<std::string, std::int64_t> scope_counts;
  std::optional<std::int64_t> seed;
  std::int64_t op_counter = 0;
};

}  // namespace openrnn
