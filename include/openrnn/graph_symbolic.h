// Symbolic tensors: what a network will compute, recorded before there are values.
#pragma once

#include <variant>

#include "openrnn/graph.h"

namespace openrnn {

class Layer;

/// Dtype and shape of a tensor; -1 is a dimension that is not known yet.
struct TensorSpec {
  DType dtype = DType::kFloat32;
  Shape shape = {};
};

/// Whether two sizes agree, as far as both are known.
inline bool dims_fit(std::int64_t a, std::int64_t b) { return a < 0 || b < 0 || a == b; }
/// Whether two shapes do: equal ranks, and sizes that fit.
OPENRNN_API bool shapes_fit(const Shape& a, const Shape& b);

/// Options of a replay of recorded calls.
struct Replay {
  /// Unset: as each call was recorded.
  std::optional<bool> training = {};
};
using ReplayFunction =
    std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs, const Replay& replay)>;

/// Mutable state that the calls of one operation share, such as their dropout state.
struct CallState {
  virtual ~CallState() = default;
};
/// An argument of a recorded call that is not a tensor.
using Attribute = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                               std::shared_ptr<CallState>>;
using Attributes = std::vector<Attribute>;

/// Refers to a layer that may have been destroyed.
struct LayerHandle {
  Layer* layer = nullptr;
};

/// One operation or layer call on symbolic tensors; of a layer, it is what TensorFlow calls a node.
struct SymbolicCall {
  std::string op;  // 'Input', 'ReadVariable', or the name of the operation or layer
  std::vector<Tensor> inputs = {};
  std::vector<TensorSpec> outputs = {};
  /// Computes the outputs from values of the inputs; empty for an Input.
  ReplayFunction run = {};
  /// The arguments that are not tensors: with op, layer, inputs and outputs they are enough to
  /// repeat the call. Unset where only `run` can.
  std::optional<Attributes> attributes = {};
  /// Of a layer's call: computed in place of the class's own computation; empty: nothing is.
  ReplayFunction function = {};
  /// Of a layer's call: LayerCall::training.
  std::optional<bool> training = {};
  /// Null for an operation.
  std::shared_ptr<const LayerHandle> layer = {};
  /// As `layer`, or the layer whose call this is a part of; such a part is no node.
  std::shared_ptr<const LayerHandle> computed_by = {};
  /// Of a ReadVariable.
  Variable variable = {};
  /// The graph that it was recorded in. Dereference it only where the graph is kept alive; else
  /// compare the id.
  Graph* graph = nullptr;
  std::uint64_t graph_id = 0;
};

/// One output of a call. Equal call and index: the same tensor.
struct Symbol {
  std::shared_ptr<const SymbolicCall> call;
  std::size_t index = 0;
  /// Keeps alive the layers that compute the value, if std::make_shared made them. The inputs held
  /// by a call own no layer: a layer holds its calls and would keep itself alive.
  std::shared_ptr<const void> owner = {};
};

/// A tensor whose value a Model is given when it is called. Throws: ArgumentError for a dimension
/// below -1.
OPENRNN_API Tensor Input(Shape shape, DType dtype = DType::kFloat32, const std::string& name = "");

/// Whether one of the tensors is symbolic, so that an operation on them must be.
template <class... Tensors>
bool any_symbolic(const Tensors&... tensors) {
  return (tensors.is_symbolic() || ...);
}
OPENRNN_API bool any_symbolic(const std::vector<Tensor>& tensors);

/// Whether both are the same symbolic tensor, or share one value.
OPENRNN_API bool same_tensor(const Tensor& a, const Tensor& b);
/// Whether `tensor` is one of `sources` or is computed from one; symbolic history only.
OPENRNN_API bool depends_on(const Tensor& tensor, const std::vector<Tensor>& sources);

/// Records an operation: its outputs as symbolic tensors. A variable's read among the inputs is
/// read anew at each replay. `attributes`: as of SymbolicCall.
OPENRNN_API std::vector<Tensor> defer(std::string op, const std::vector<Tensor>& inputs,
                                      std::vector<TensorSpec> outputs, ReplayFunction run,
                                      std::optional<Attributes> attributes = {});
/// Symbolic: the variable's value at each replay.
OPENRNN_API Tensor defer_read(const Variable& variable);

/// Values of symbolic tensors, each recorded call run once.
class OPENRNN_API SymbolicValues {
 public:
  explicit SymbolicValues(Replay replay = {}) : replay_(replay) {}
  /// Gives a symbolic tensor its value. Throws: ArgumentError for a dtype or shape that its spec
  /// does not allow.
  void set(const Tensor& symbolic, const Tensor& value);
  /// Throws: ArgumentError naming an Input that has no value.
  Tensor get(const Tensor& tensor);

 private:
  void run(const SymbolicCall& call);
  const Tensor* known(const Symbol& symbol) const;
  bool complete(const SymbolicCall& call) const;
  Replay replay_;
  std::vector<Tensor> sources_;  // those that were set
  std::map<const SymbolicCall*, std::vector<Tensor>> values_;
};

/// The calls that lead to `targets`, inputs before what they feed; stops at `sources` and at calls
/// that are `known`.
OPENRNN_API std::vector<std::shared_ptr<const SymbolicCall>> calls_between(
    const std::vector<Tensor>& sources, const std::vector<Tensor>& targets,
    const std::function<bool(const SymbolicCall&)>& known = {});

}  // namespace openrnn
