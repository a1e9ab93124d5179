// What a Graph holds.
#pragma once

#include <map>
#include <utility>

#include "openrnn/graph.h"

namespace openrnn {

struct Graph::State {
  std::uint64_t id = 0;
  std::vector<Variable> variables;
  std::map<std::string, std::size_t> variable_places;
  std::vector<std::shared_ptr<SaveableObject>> saveables;
  std::vector<std::function<std::vector<Tensor>()>> regularization_losses;
  std::vector<std::shared_ptr<const std::function<void()>>> updates;
  /// Those that the library does not fill.
  std::map<std::string, std::vector<std::any>> collections;
  /// How often a scope of that full name was opened since the scope around it was.
  std::map<std::string, std::int64_t> scope_counts;
  std::optional<std::int64_t> seed;
  std::int64_t op_counter = 0;
};

namespace graph {

/// Whether the graph of that id still exists. Thread-safe.
bool is_alive(std::uint64_t graph_id);

/// Unless kept, removes what was registered in a graph since: a failed build leaves nothing.
class Rollback {
 public:
  explicit Rollback(Graph& graph);
  ~Rollback();
  Rollback(const Rollback&) = delete;
  Rollback& operator=(const Rollback&) = delete;
  void keep() noexcept { kept_ = true; }

 private:
  Graph::State* state_;
  std::size_t variables_, saveables_, losses_;
  std::map<std::string, std::size_t> collections_;
  std::map<std::string, std::int64_t> scope_counts_;
  std::int64_t op_counter_;
  bool kept_ = false;
};

}  // namespace graph

}  // namespace openrnn
