// The variable scopes that are open on a thread.
#pragma once

#include <string>
#include <vector>

namespace openrnn {
class Graph;
class Variable;
}  // namespace openrnn

namespace openrnn::graph {

struct OpenScope {
  Graph* graph;
  std::string name;  // full
  bool reuse;
  /// Around a layer's call: its weights, which get_variable takes where they exist and adds to.
  std::vector<Variable>* weights = nullptr;
};

std::vector<OpenScope>& scope_stack();

/// The innermost scope of the current graph; null at the top.
const OpenScope* innermost_scope();

/// "outer/name", or what is not empty.
std::string join_scope(const std::string& outer, const std::string& name);

/// "name" of "outer/name".
inline std::string last_part(const std::string& scope) {
  return scope.substr(scope.rfind('/') + 1);
}

/// Throws: ArgumentError for a name that file formats and prefixes cannot carry.
void check_name(const char* call, const std::string& name);

/// Reopens a scope by its full name while it exists: takes no name, releases no names.
class ReopenedScope {
 public:
  ReopenedScope(std::string full_name, bool reuse, std::vector<Variable>* weights = nullptr);
  ~ReopenedScope();
  ReopenedScope(const ReopenedScope&) = delete;
  ReopenedScope& operator=(const ReopenedScope&) = delete;
};

}  // namespace openrnn::graph
