#include <algorithm>

#include "base/message.h"
#include "graph/graph_state.h"
#include "graph/scope_stack.h"

namespace openrnn {

namespace graph {

std::vector<OpenScope>& scope_stack() {
  thread_local std::vector<OpenScope> stack;
  return stack;
}

const OpenScope* innermost_scope() {
  const std::vector<OpenScope>& stack = scope_stack();
  return stack.empty() || stack.back().graph != &Graph::current() ? nullptr : &stack.back();
}

std::string join_scope(const std::string& outer, const std::string& name) {
  if (outer.empty()) return name;
  return name.empty() ? outer : outer + "/" + name;
}

ReopenedScope::ReopenedScope(std::string full_name, bool reuse, std::vector<Variable>* weights) {
  scope_stack().push_back({&Graph::current(), std::move(full_name), reuse, weights});
}

ReopenedScope::~ReopenedScope() { scope_stack().pop_back(); }

}  // namespace graph

namespace graph {

void check_name(const char* call, const std::string& name) {
  if (name.empty() || name.front() == '/' || name.back() == '/' ||
      name.find('\0') != std::string::npos || name.find("//") != std::string::npos) {
    throw ArgumentError(
        message("[", call, "] name is '", name, "', expected words that single slashes separate"));
  }
}

}  // namespace graph

namespace {

// One stream a name, so that variables under one seed differ (FNV-1a, 64 bits).
std::uint64_t stream_of(const std::string& name) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

void check_same(const std::string& name, const Variable& found, const Shape& shape,
                const VariableOptions& options) {
  if (found.shape() != shape || found.dtype() != options.dtype) {
    throw ArgumentError(message("[get_variable] '", name, "' is asked for as ",
                                dtype_name(options.dtype), " of shape ", to_string(shape),
                                ", expected ", dtype_name(found.dtype()), " of shape ",
                                to_string(found.shape()), " as it exists"));
  }
  if (options.device && options.device != &found.device()) {
    throw ArgumentError(message("[get_variable] '", name, "' is asked for on ",
                                options.device->name(), ", expected ", found.device().name(),
                                ", where it exists"));
  }
}

}  // namespace

VariableScope::VariableScope(const std::string& name, bool reuse) {
  graph::check_name("VariableScope", name);
  std::string full = graph::join_scope(current_name(), name);
  ++Graph::current().state().scope_counts[full];
  const graph::OpenScope* const around = graph::innermost_scope();
  graph::scope_stack().push_back({&Graph::current(), std::move(full), reuse || current_reuse(),
                                  around ? around->weights : nullptr});
}

VariableScope::~VariableScope() {
  const graph::OpenScope& closing = graph::scope_stack().back();
  // As in TensorFlow: opened again, the scope counts the names inside it from the start.
  auto& counts = closing.graph->state().scope_counts;
  const std::string prefix = closing.name + "/";
  for (auto at = counts.lower_bound(prefix);
       at != counts.end() && at->first.compare(0, prefix.size(), prefix) == 0;) {
    at = counts.erase(at);
  }
  graph::scope_stack().pop_back();
}

const std::string& VariableScope::current_name() {
  static const std::string top;
  const graph::OpenScope* scope = graph::innermost_scope();
  return scope ? scope->name : top;
}

bool VariableScope::current_reuse() {
  const graph::OpenScope* scope = graph::innermost_scope();
  return scope && scope->reuse;
}

namespace {

bool holds(const std::vector<Variable>& variables, const Variable& one) {
  return std::any_of(variables.begin(), variables.end(),
                     [&](const Variable& other) { return other.same_as(one); });
}

// The existing variable, or an error. In a layer's call that layer's own variable is used at every
// call.
Variable existing_variable(const std::string& full, const Shape& shape,
                           const VariableOptions& options, std::vector<Variable>* weights) {
  const Variable found = Graph::current().variable(full);
  const bool known = weights && holds(*weights, found);
  if (!known && !VariableScope::current_reuse()) {
    throw ArgumentError(message("[get_variable] '", full,
                                "' exists already, expected a new name or a scope with reuse"));
  }
  check_same(full, found, shape, options);
  if (weights && !known) weights->push_back(found);
  return found;
}

}  // namespace

Variable get_variable(const std::string& name, const Shape& shape, const VariableOptions& options) {
  graph::check_name("get_variable", name);
  Graph& graph = Graph::current();
  const std::string full = graph::join_scope(VariableScope::current_name(), name);
  const graph::OpenScope* const scope = graph::innermost_scope();
  std::vector<Variable>* const weights = scope ? scope->weights : nullptr;
  if (graph.has_variable(full)) return existing_variable(full, shape, options, weights);
  if (VariableScope::current_reuse()) {
    throw ArgumentError(message("[get_variable] '", full,
                                "' does not exist, expected one as the scope's reuse is set"));
  }
  Array initial(options.dtype, shape);
  // Integers start at 0.
  if (options.initializer || is_floating(options.dtype)) {
    RandomStream random(options.seed.value_or(static_cast<std::uint64_t>(graph.seed().value_or(0))),
                        stream_of(full));
    (options.initializer ? options.initializer : glorot_uniform_initializer())(initial.view(),
                                                                               random);
  }
  const Variable made(name, std::move(initial), options.trainable, options.device);
  made.set_constraint(options.constraint);
  if (options.regularizer) graph.add_regularizer(made, options.regularizer);
  if (weights) weights->push_back(made);
  return made;
}

}  // namespace openrnn
