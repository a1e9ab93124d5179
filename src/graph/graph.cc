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

const std::vector<Variable>& Graph::variables() const { return state_->variables; }

std::vector<Variable> Graph::trainable_variables() const {
  std::vector<Variable> result;
  for (const Variable& variable : state_->variables) {
    if (variable.trainable()) result.push_back(variable);
  }
  return result;
}

Variable Graph::variable(const std::string& name) const {
  const auto found = state_->variable_places.find(name);
  if (found == state_->variable_places.end()) {
    throw ArgumentError(message("[variable] name is '", name, "', expected one of the graph's ",
                                state_->variables.size(), " variables"));
  }
  return state_->variables[found->second];
}

bool Graph::has_variable(const std::string& name) const {
  return state_->variable_places.contains(name);
}

const std::vector<std::shared_ptr<SaveableObject>>& Graph::saveables() const {
  return state_->saveables;
}

void Graph::add_saveable(std::shared_ptr<SaveableObject> saveable) {
  if (!saveable) throw ArgumentError("[add_saveable] saveable is null, expected an object");
  state_->saveables.push_back(std::move(saveable));
}

void Graph::add_regularization_loss(std::function<Tensor()> loss) {
  if (!loss) throw ArgumentError("[add_regularization_loss] loss is empty, expected a function");
  add_regularization_losses([loss = std::move(loss)] { return std::vector<Tensor>{loss()}; });
}

void Graph::add_regularization_losses(std::function<std::vector<Tensor>()> losses) {
  state_->regularization_losses.push_back(std::move(losses));
}

std::vector<Tensor> Graph::regularization_losses() const {
  std::vector<Tensor> losses;
  for (const auto& source : state_->regularization_losses) {
    for (Tensor& loss : source()) losses.push_back(std::move(loss));
  }
  return losses;
}

const std::vector<std::shared_ptr<const std::function<void()>>>& Graph::updates() const {
  return state_->updates;
}

void Graph::add_update(std::shared_ptr<const std::function<void()>> update) {
  auto& updates = state_->updates;
  if (std::find(updates.begin(), updates.end(), update) == updates.end()) {
    updates.push_back(std::move(update));
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

Rollback::Rollback(Graph& graph)
    : state_(&graph.state()),
      variables_(state_->variables.size()),
      saveables_(state_->saveables.size()),
      losses_(state_->regularization_losses.size()),
      scope_counts_(state_->scope_counts),
      op_counter_(state_->op_counter) {
  for (const auto& [key, values] : state_->collections) collections_[key] = values.size();
}

Rollback::~Rollback() {
  if (kept_) return;
  while (state_->variables.size() > variables_) {
    state_->variable_places.erase(state_->variables.back().name());
    state_->variables.pop_back();
  }
  state_->saveables.erase(state_->saveables.begin() + static_cast<std::ptrdiff_t>(saveables_),
                          state_->saveables.end());
  state_->regularization_losses.erase(
      state_->regularization_losses.begin() + static_cast<std::ptrdiff_t>(losses_),
      state_->regularization_losses.end());
  for (auto& [key, values] : state_->collections) values.resize(collections_[key]);
  state_->scope_counts.swap(scope_counts_);
  state_->op_counter = op_counter_;
}

}  // namespace graph

}  // namespace openrnn
