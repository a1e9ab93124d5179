// Tensors with history, variables, scopes and collections, gradients, and the class Layer.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "openrnn/engine.h"

namespace openrnn {

class Tensor;
class Variable;

/// The cpu device, on which tensors live by default; gpu devices come with the GPU engine.
OPENRNN_API const Device& default_device();

// ---- Tensors and their history -----------------------------------------------------------------

/// The gradient of one recorded operation: from the gradients of its outputs (empty: zero) to those
/// of its inputs (empty: none).
using BackwardFunction =
    std::function<std::vector<DeviceArray>(const std::vector<DeviceArray>& output_gradients)>;

struct Node;

/// Where an input came from, without its value: history keeps only the values that gradients read.
struct Edge {
  std::shared_ptr<const Node> node;  // null for a leaf and for what no gradient flows to
  std::size_t output_index = 0;
  std::uint64_t leaf_id = 0;
};

/// One recorded operation. Ids grow with time, so inputs have smaller ids than what they feed.
struct OPENRNN_API Node {
  std::uint64_t id = 0;
  std::string op;
  std::vector<Edge> inputs;
  std::size_t num_outputs = 0;
  BackwardFunction backward;

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  /// Frees a long chain of history without deep recursion.
  ~Node();
};

/// A value, and how it was made if a GradientTape watched. Cheap to copy; the value never changes.
class OPENRNN_API Tensor {
 public:
  Tensor() = default;
  explicit Tensor(DeviceArray value) : value_(std::move(value)) {}
  /// Copies host data to the default device.
  explicit Tensor(const ConstArrayView& host);

  bool empty() const noexcept { return value_.empty(); }
  DType dtype() const noexcept { return value_.dtype(); }
  const Shape& shape() const noexcept { return value_.shape(); }
  const DeviceArray& value() const noexcept { return value_; }
  Array to_host() const { return value_.to_host(); }
  /// The only element as double. Throws: ArgumentError unless there is exactly one.
  double item() const;

  /// Null when nothing was recorded.
  const std::shared_ptr<const Node>& node() const noexcept { return node_; }
  std::size_t output_index() const noexcept { return output_index_; }
  /// Identity of a leaf that a gradient may be asked for (a variable's read, a watched tensor,
  /// which may have history as well); 0 when it is none.
  std::uint64_t leaf_id() const noexcept { return leaf_id_; }
  /// Of a variable's read: the variable's version then. Equal leaf id and version: equal value.
  std::uint64_t version() const noexcept { return version_; }
  /// Whether a gradient flows through it: recorded, watched, or read from a trainable variable.
  bool tracked() const noexcept { return node_ != nullptr || wants_gradient_; }
  /// The same value without history.
  Tensor detached() const { return Tensor(value_); }

 private:
  friend std::vector<Tensor> record(std::string op, const std::vector<Tensor>& inputs,
                                    std::vector<DeviceArray> outputs, BackwardFunction backward);
  friend class GradientTape;
  friend class Variable;
  DeviceArray value_;
  std::shared_ptr<const Node> node_;
  std::size_t output_index_ = 0;
  std::uint64_t leaf_id_ = 0;
  std::uint64_t version_ = 0;
  bool wants_gradient_ = false;
};

/// Whether an operation on these inputs must be recorded: a tape is open on this thread and an
/// input is tracked. Operations ask before they keep anything for backward.
OPENRNN_API bool recording(const std::vector<Tensor>& inputs);
/// Wraps an operation's results; keeps history only if recording(inputs). `backward` gets one
/// gradient an output, and gives one an input or fewer; it may be called any number of times.
OPENRNN_API std::vector<Tensor> record(std::string op, const std::vector<Tensor>& inputs,
                                       std::vector<DeviceArray> outputs, BackwardFunction backward);

/// While it lives, operations of this thread on watched tensors and trainable variables are
/// recorded. Gradients may be asked any number of times, also after close(). A closed tape costs
/// nothing; history lives as long as tensors that have it.
class OPENRNN_API GradientTape {
 public:
  GradientTape();
  ~GradientTape();
  GradientTape(const GradientTape&) = delete;
  GradientTape& operator=(const GradientTape&) = delete;
  /// Stops recording.
  void close() noexcept;
  /// A tensor of the same value that a gradient may be asked for.
  Tensor watch(const Tensor& tensor) const;
  /// d target / d sources, `output_gradient` (ones by default) being the gradient of the target.
  /// A source that the target does not depend on, or a variable that is not trainable, gives an
  /// empty array. Calling twice gives the same bits. Throws: ArgumentError for a source that is no
  /// leaf or an output gradient of another shape or dtype, StateError when target has no history.
  std::vector<DeviceArray> gradient(const Tensor& target, const std::vector<Tensor>& sources,
                                    const DeviceArray& output_gradient = {}) const;
  std::vector<DeviceArray> gradient(const Tensor& target, const std::vector<Variable>& sources,
                                    const DeviceArray& output_gradient = {}) const;
  /// Several targets: the gradient of their sum, each with its own output gradient (empty: ones).
  std::vector<DeviceArray> gradient(const std::vector<Tensor>& targets,
                                    const std::vector<Tensor>& sources,
                                    const std::vector<DeviceArray>& output_gradients) const;

 private:
  std::shared_ptr<std::atomic<int>> open_tapes_;  // of the thread that made it; null when closed
};

// ---- Variables, scopes, collections ------------------------------------------------------------

/// A named value that training changes. Copies name the same variable. Thread-safe: a reader sees
/// the value before or after a change.
class OPENRNN_API Variable {
 public:
  Variable() = default;
  /// Registers itself in the current Graph under the current scope's prefix.
  /// Throws: ArgumentError when that name exists.
  Variable(const std::string& name, Array initial_value, bool trainable = true);

  bool empty() const noexcept { return state_ == nullptr; }
  const std::string& name() const;  // 'enc/cudnn_lstm/opaque_kernel'
  DType dtype() const;
  const Shape& shape() const;
  bool trainable() const;
  /// Grows with every change.
  std::uint64_t version() const;
  /// The value now; a leaf that a gradient may be asked for (one leaf id for all reads).
  Tensor read() const;
  std::uint64_t leaf_id() const;
  Array to_host() const { return read().to_host(); }
  /// Throws: ArgumentError naming both shapes or dtypes when they differ.
  void assign(const ConstArrayView& value) const;
  void assign(DeviceArray value) const;
  /// Gives a writer the elements, alone: earlier reads keep their value. Raises the version.
  void update(const std::function<void(void* elements)>& writer) const;
  bool same_as(const Variable& other) const noexcept { return state_ == other.state_; }

  struct State;

 private:
  friend class Graph;
  std::shared_ptr<State> state_;
};

/// Something that a Saver can store as several named tensors, such as a CudnnLSTMSaveable.
class OPENRNN_API SaveableObject {
 public:
  virtual ~SaveableObject() = default;
  virtual const std::string& name() const = 0;
  /// The variable that it stands for.
  virtual const Variable& variable() const = 0;
  /// The names of the tensors, in their order.
  virtual std::vector<std::string> spec_names() const = 0;
  /// `value`, an array as the variable's, as tensors to store. Pure: reads nothing else.
  /// Throws: ArgumentError for an array of another shape or dtype.
  virtual std::vector<Array> to_tensors(const ConstArrayView& value) const = 0;
  /// The inverse, from tensors in that order.
  /// Throws: ArgumentError naming the tensor, given and expected shape or dtype.
  virtual Array from_tensors(const std::vector<Array>& tensors) const = 0;

  struct Spec {
    std::string name;
    Array tensor;
  };
  /// The named tensors of the variable's value now.
  std::vector<Spec> specs() const;
  /// Assigns from_tensors(tensors) to the variable.
  void restore(const std::vector<Array>& tensors) const;
};

/// The registry that variables, scopes and collections live in; one is current on each thread (a
/// process-wide default one at first). One thread at a time.
class OPENRNN_API Graph {
 public:
  Graph();
  ~Graph();
  static Graph& current();

  /// Makes a graph current while it lives, on this thread.
  class OPENRNN_API AsDefault {
   public:
    explicit AsDefault(Graph& graph);
    ~AsDefault();
    AsDefault(const AsDefault&) = delete;
    AsDefault& operator=(const AsDefault&) = delete;

   private:
    Graph* previous_;
  };

  /// In order of creation.
  const std::vector<Variable>& variables() const;
  std::vector<Variable> trainable_variables() const;
  /// Throws: ArgumentError when there is none of that full name.
  Variable variable(const std::string& name) const;
  bool has_variable(const std::string& name) const;
  /// The collection SAVEABLE_OBJECTS.
  const std::vector<std::shared_ptr<SaveableObject>>& saveables() const;
  void add_saveable(std::shared_ptr<SaveableObject> saveable);
  /// The collection REGULARIZATION_LOSSES, as functions that compute them.
  void add_regularization_loss(std::function<Tensor()> loss);
  std::vector<Tensor> regularization_losses() const;

  /// `base`, or `base_1`, `base_2`, ... when taken under `scope`; takes it. What was taken inside a
  /// VariableScope is free again when that closes, as in TensorFlow: opened again with reuse, it
  /// leads to the same variables.
  std::string unique_name(const std::string& scope, const std::string& base);
  /// Graph seed g of the seed helper (semantics of tf.set_random_seed); empty when unset.
  std::optional<std::int64_t> seed() const;
  void set_seed(std::optional<std::int64_t> seed);
  /// The pair (seed, seed2) for an operation, as TensorFlow derives it.
  std::pair<std::int64_t, std::int64_t> op_seeds(std::optional<std::int64_t> op_seed);

  struct State;
  State& state() noexcept { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

/// While it lives, variable names of this thread get the prefix `name/`. `reuse` makes get_variable
/// return what exists.
class OPENRNN_API VariableScope {
 public:
  explicit VariableScope(const std::string& name, bool reuse = false);
  ~VariableScope();
  VariableScope(const VariableScope&) = delete;
  VariableScope& operator=(const VariableScope&) = delete;
  /// Full name of the innermost scope of this thread, '' at the top.
  static const std::string& current_name();
  static bool current_reuse();
};

struct VariableOptions {
  DType dtype = DType::kFloat32;
  Initializer initializer = {};  // empty: glorot_uniform
  /// Unset: the graph's seed, 0 when that is unset too. Each name has a random stream of its own.
  std::optional<std::uint64_t> seed = {};
  bool trainable = true;
  /// Of a new variable: its loss goes to the graph's (and the layer's) regularization losses.
  std::function<Tensor(const Tensor&)> regularizer = {};
};
/// A variable of the current scope: made by the initializer, or the one that exists when the
/// scope's reuse flag is set. Throws: ArgumentError when it exists without reuse, is missing with
/// reuse, or has another shape or dtype.
OPENRNN_API Variable get_variable(const std::string& name, const Shape& shape,
                                  const VariableOptions& options = {});

// ---- Layers ------------------------------------------------------------------------------------

/// Base of everything with variables of its own under a scope of its own.
class OPENRNN_API Layer {
 public:
  /// `name` empty: `default_name`, made unique in the current scope at first use.
  Layer(std::string name, std::string default_name, DType dtype);
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  /// As given, else the default name, from first use on with what made it unique.
  const std::string& name() const noexcept { return name_; }
  DType dtype() const noexcept { return dtype_; }
  bool built() const noexcept { return built_; }
  bool trainable = true;
  /// Full scope name, fixed at first use. Throws: ArgumentError before it.
  const std::string& scope_name() const;

  /// Makes the variables for inputs of that shape; -1 is an unknown dimension. No-op when built.
  void build(const Shape& input_shape);

  std::vector<Variable> weights() const;
  std::vector<Variable> trainable_weights() const;
  std::vector<Variable> non_trainable_weights() const;
  std::vector<Variable> variables() const { return weights(); }
  std::vector<Variable> trainable_variables() const { return trainable_weights(); }
  std::vector<Variable> non_trainable_variables() const { return non_trainable_weights(); }
  /// The graph that it was built in. Throws: ArgumentError before its scope is open.
  Graph& graph() const;
  /// Throws: ArgumentError before build.
  std::int64_t count_params() const;
  std::vector<Array> get_weights() const;
  /// Throws: ArgumentError for a wrong count or shape; then nothing is changed.
  void set_weights(const std::vector<Array>& values);

  /// A loss that depends on no input; it goes to the current graph's regularization losses as well.
  void add_loss(std::function<Tensor()> loss);
  /// The losses, computed now: those added and those of regularizers.
  std::vector<Tensor> losses() const;
  /// Something to run after a training step.
  void add_update(std::function<void()> update);
  /// None when the layer is not trainable.
  std::vector<std::function<void()>> updates() const;

 protected:
  /// Makes variables; runs inside the layer's scope. When it throws, the layer is not built.
  virtual void do_build(const Shape& input_shape) = 0;
  Variable add_weight(const std::string& name, const Shape& shape, const VariableOptions& options);
  /// Builds on first use, from a call.
  void ensure_built(const Shape& input_shape);
  /// Prefix that a saveable made in do_build gets: the scope around an explicit build, the layer's
  /// own for a build from a call.
  const std::string& saveable_scope() const noexcept { return saveable_scope_; }

 private:
  void open_scope();
  void build_in(const Shape& input_shape, const std::string& saveable_scope);
  std::string name_, scope_name_, saveable_scope_;
  bool named_;
  DType dtype_;
  bool built_ = false;
  Graph* graph_ = nullptr;  // null until the scope is open
  std::vector<Variable> weights_;
  std::vector<std::function<Tensor()>> losses_;
  std::vector<std::function<void()>> updates_;
};

}  // namespace openrnn
