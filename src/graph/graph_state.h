// What a Graph holds.
#pragma once

#include <map>
#include <utility>

#include "graph/tape/leaf_id.h"
#include "openrnn/graph.h"

namespace openrnn {

namespace graph {

/// A variable that others hold.
class WeakVariable {
 public:
  WeakVariable() = default;
  explicit WeakVariable(const Variable& variable)
      : state_(variable.state_), leaf_id_(variable.leaf_id()) {}
  /// Empty when nobody holds it any more.
  Variable lock() const;
  bool gone() const noexcept { return state_.expired(); }
  std::uint64_t leaf_id() const noexcept { return leaf_id_; }

 private:
  std::weak_ptr<Variable::State> state_;
  std::uint64_t leaf_id_ = 0;
};

/// An entry of a collection: kept by it, or there while another holds it.
template <class T>
struct Held {
  std::weak_ptr<T> weak;
  std::shared_ptr<T> kept;
  std::uint64_t serial = next_id();
  Held(const std::shared_ptr<T>& one, bool keep) : weak(one), kept(keep ? one : nullptr) {}
};

/// What is there of a collection, whose other entries are dropped.
template <class T>
std::vector<std::shared_ptr<T>> alive(std::vector<Held<T>>& entries) {
  std::erase_if(entries, [](const Held<T>& entry) { return entry.weak.expired(); });
  std::vector<std::shared_ptr<T>> found;
  for (const Held<T>& entry : entries) {
    if (auto one = entry.weak.lock()) found.push_back(std::move(one));
  }
  return found;
}

}  // namespace graph

struct Graph::State {
  using Losses = std::function<std::vector<Tensor>()>;

  std::uint64_t id = 0;
  /// Those that somebody holds, in order of creation; others until tidy() drops them.
  std::vector<graph::WeakVariable> variables;
  std::map<std::string, graph::WeakVariable> variables_by_name;
  std::size_t variables_tidied = 0;
  std::vector<Variable> kept_variables;
  /// What is made meanwhile is added to each.
  std::vector<std::vector<Variable>*> keepers;
  std::vector<graph::Held<SaveableObject>> saveables;
  std::vector<graph::Held<const Losses>> regularization_losses;
  std::vector<graph::Held<const std::function<void()>>> updates;
  /// Those that the library does not fill.
  std::map<std::string, std::vector<std::any>> collections;
  /// How often a scope of that full name was opened since the scope around it was.
  std::map<std::string, std::int64_t> scope_counts;
  std::optional<std::int64_t> seed;
  std::int64_t op_counter = 0;

  /// Empty when there is none of that name.
  Variable find(const std::string& name) const;
  void add(const Variable& variable);
  void tidy();
};

namespace graph {

/// Whether the graph of that id still exists. Thread-safe.
bool is_alive(std::uint64_t graph_id);

/// Holds every variable that is made in a graph while it exists.
class Keeper {
 public:
  explicit Keeper(Graph& graph);
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  const std::vector<Variable>& variables() const noexcept { return variables_; }

 private:
  Graph::State* state_;
  std::vector<Variable> variables_;
};

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
  std::uint64_t first_new_leaf_;  // ids grow: what was added since has a larger one
  std::map<std::string, std::size_t> collections_;
  std::map<std::string, std::int64_t> scope_counts_;
  std::int64_t op_counter_;
  bool kept_ = false;
};

}  // namespace graph

}  // namespace openrnn
