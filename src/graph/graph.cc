#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "base/message.h"
#include "graph/graph_state.h"
#include "graph/scope_stack.h"
#include "graph/tape/leaf_id.h"

namespace openrnn {
namespace {

thread_local Graph* current_graph = nullptr;

// TensorFlow's seed for operations that have one in a graph without.
constexpr std::int64_t kDefaultGraphSeed = 87654321;
constexpr std::int64_t kLargestSeed = 2147483647;

// Never destroyed: graphs are freed until the very end of the process.
struct LiveGraphs {
  std::mutex mutex;
  std::unordered_set<std::uint64_t> ids;
};
LiveGraphs& live_graphs() {
  static auto* const live = new LiveGraphs;
  return *live;
}

std::int64_t truncate(std::int64_t seed) {
  const std::int64_t rest = seed % kLargestSeed;
  return rest < 0 ? rest + kLargestSeed : rest;
}

}  // namespace

Graph::Graph() : state_(std::make_unique<State>()) {
  state_->id = graph::next_id();
  LiveGraphs& live = live_graphs();
  const std::lock_guard lock(live.mutex);
  live.ids.insert(state_->id);
}
std::uint64_t Graph::id() const noexcept { return state_->id; }
Graph::~Graph() {
  LiveGraphs& live = live_graphs();
  const std::lock_guard lock(live.mutex);
  live.ids.erase(state_->id);
}

Graph& Graph::current() {
  static auto* const process_wide = new Graph;
  return current_graph ? *current_graph : *process_wide;
}

Graph::AsDefault::AsDefault(Graph& graph) : previous_(current_graph) { current_graph = &graph; }
Graph::AsDefault::~AsDefault() { current_graph = previous_; }

std::vector<Variable> Graph::variables() const {
  std::vector<Variable> result;
  for (const graph::WeakVariable& each : state_->variables) {
    if (Variable variable = each.lock(); !variable.empty()) result.push_back(std::move(variable));
  }
  return result;
}

std::vector<Variable> Graph::trainable_variables() const {
  std::vector<Variable> result = variables();
  std::erase_if(result, [](const Variable& variable) { return !variable.trainable(); });
  return result;
}

Variable Graph::variable(const std::string& name) const {
  Variable found = state_->find(name);
  if (found.empty()) {
    throw ArgumentError(message("[variable] name is '", name, "', expected one of the graph's ",
                                variables().size(), " variables"));
  }
  return found;
}

bool Graph::has_variable(const std::string& name) const { return !state_->find(name).empty(); }

void Graph::keep(const Variable& variable) { state_->kept_variables.push_back(variable); }

std::vector<std::shared_ptr<SaveableObject>> Graph::saveables() const {
  return graph::alive(state_->saveables);
}

void Graph::add_saveable(std::shared_ptr<SaveableObject> saveable, bool keep) {
  if (!saveable) throw ArgumentError("[add_saveable] saveable is null, expected an object");
  state_->saveables.emplace_back(saveable, keep);
}

void Graph::add_regularization_loss(std::function<Tensor()> loss) {
  if (!loss) throw ArgumentError("[add_regularization_loss] loss is empty, expected a function");
  add_regularization_losses([loss = std::move(loss)] { return std::vector<Tensor>{loss()}; });
}

void Graph::add_regularization_losses(std::function<std::vector<Tensor>()> losses) {
  state_->regularization_losses.emplace_back(
      std::make_shared<const State::Losses>(std::move(losses)), true);
}

void Graph::add_regularization_losses(
    const std::shared_ptr<const std::function<std::vector<Tensor>()>>& losses) {
  state_->regularization_losses.emplace_back(losses, false);
}

std::vector<Tensor> Graph::regularization_losses() const {
  std::vector<Tensor> losses;
  for (const auto& source : graph::alive(state_->regularization_losses)) {
    for (Tensor& loss : (*source)()) losses.push_back(std::move(loss));
  }
  return losses;
}

std::vector<std::shared_ptr<const std::function<void()>>> Graph::updates() const {
  return graph::alive(state_->updates);
}

void Graph::add_update(std::shared_ptr<const std::function<void()>> update, bool keep) {
  const auto known = updates();
  if (std::find(known.begin(), known.end(), update) == known.end()) {
    state_->updates.emplace_back(update, keep);
  }
}

std::string Graph::unique_name(const std::string& scope, const std::string& base) {
  std::string name = base;
  for (std::int64_t n = 1; state_->scope_counts[graph::join_scope(scope, name)] > 0; ++n) {
    name = message(base, "_", n);
  }
  ++state_->scope_counts[graph::join_scope(scope, name)];
  return name;
}

std::optional<std::int64_t> Graph::seed() const { return state_->seed; }
void Graph::set_seed(std::optional<std::int64_t> seed) { state_->seed = seed; }

std::pair<std::int64_t, std::int64_t> Graph::op_seeds(std::optional<std::int64_t> op_seed) {
  const std::int64_t counter = state_->op_counter++;
  if (!state_->seed && !op_seed) return {0, 0};
  const std::pair seeds{truncate(state_->seed.value_or(kDefaultGraphSeed)),
                        truncate(op_seed.value_or(counter))};
  // (0, 0) stands for no seed at all.
  return seeds == std::pair<std::int64_t, std::int64_t>{0, 0}
             ? std::pair{std::int64_t{0}, kLargestSeed}
             : seeds;
}

namespace graph {

bool is_alive(std::uint64_t graph_id) {
  LiveGraphs& live = live_graphs();
  const std::lock_guard lock(live.mutex);
  return live.ids.contains(graph_id);
}

Keeper::Keeper(Graph& graph) : state_(&graph.state()) { state_->keepers.push_back(&variables_); }
Keeper::~Keeper() { std::erase(state_->keepers, &variables_); }

Rollback::Rollback(Graph& graph)
    : state_(&graph.state()),
      first_new_leaf_(next_id()),
      scope_counts_(state_->scope_counts),
      op_counter_(state_->op_counter) {
  for (const auto& [key, values] : state_->collections) collections_[key] = values.size();
}

Rollback::~Rollback() {
  if (kept_) return;
  const auto is_new = [&](const WeakVariable& one) { return one.leaf_id() > first_new_leaf_; };
  std::erase_if(state_->variables, is_new);
  std::erase_if(state_->variables_by_name, [&](const auto& pair) { return is_new(pair.second); });
  const auto shrink = [](auto& entries, std::uint64_t serial) {
    std::erase_if(entries, [&](const auto& entry) { return entry.serial > serial; });
  };
  shrink(state_->saveables, first_new_leaf_);
  shrink(state_->regularization_losses, first_new_leaf_);
  for (auto& [key, values] : state_->collections) values.resize(collections_[key]);
  state_->scope_counts.swap(scope_counts_);
  state_->op_counter = op_counter_;
}

}  // namespace graph

}  // namespace openrnn
