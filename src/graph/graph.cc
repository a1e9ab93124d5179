#include "base/message.h"
#include "graph/graph_state.h"
#include "graph/scope_stack.h"

namespace openrnn {
namespace {

thread_local Graph* current_graph = nullptr;

// TensorFlow's seed for operations that have one in a graph without.
constexpr std::int64_t kDefaultGraphSeed = 87654321;
constexpr std::int64_t kLargestSeed = 2147483647;

std::int64_t truncate(std::int64_t seed) {
  const std::int64_t rest = seed % kLargestSeed;
  return rest < 0 ? rest + kLargestSeed : rest;
}

}  // namespace

Graph::Graph() : state_(std::make_unique<State>()) {}
Graph::~Graph() = default;

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
  state_->regularization_losses.push_back(std::move(loss));
}

std::vector<Tensor> Graph::regularization_losses() const {
  std::vector<Tensor> losses;
  for (const auto& loss : state_->regularization_losses) losses.push_back(loss());
  return losses;
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

}  // namespace openrnn
