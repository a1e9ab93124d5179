// Tensors with history, variables, scopes and collections, gradients.
#pragma once

#include <any>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "openrnn/device.h"
#include "openrnn/graph_change.h"
#include "openrnn/params.h"

namespace openrnn {

class Tensor;
class Variable;
struct Symbol;
namespace graph {
class OpenTapes;
class WeakVariable;
class Recording;
struct Recorder;
}  // namespace graph

/// The device of variables and tensors for which none was given: that of set_default_device, else
/// of the environment variable OPENRNN_DEVICE (read at first use), else the cpu. Thread-safe.
/// Throws: as openrnn::device for the name in OPENRNN_DEVICE.
OPENRNN_API const Device& default_device();
/// For everything made from now on, on all threads.
OPENRNN_API void set_default_device(const Device& device);
/// Throws: as openrnn::device.
OPENRNN_API void set_default_device(std::string_view name);

/// The array on that device: itself if it is there, else a copy.
OPENRNN_API DeviceArray on_device(DeviceArray array, const Device& device);

// ---- Tensors and their history -----------------------------------------------------------------

/// The gradient of one recorded operation: from the gradients of its outputs (empty: zero) to those
/// of its inputs (empty: none).
using BackwardFunction =
    std::function<std::vector<DeviceArray>(const std::vector<DeviceArray>& output_gradients)>;
/// The same where work can be saved: `wanted` says for each input whether its gradient is used; of
/// the others it may be empty.
using SelectiveBackward = std::function<std::vector<DeviceArray>(
    const std::vector<DeviceArray>& output_gradients, const std::vector<bool>& wanted)>;

/// Where an input came from, without its value: history keeps only the values that gradients read.
struct Edge {
  std::uint64_t node_id = 0;  // 0 for a leaf and for what no gradient flows to
  std::size_t output_index = 0;
  std::uint64_t leaf_id = 0;
};

struct NodeHistory;
struct Node;
struct RowCall;      // graph_rows.h
struct RowGradient;  // graph_rows.h
using RowFunction = std::function<std::vector<RowGradient>(const Node& node, const RowCall& call)>;

/// One recorded operation. Ids grow with time, so inputs have smaller ids than what they feed.
struct Node {
  std::uint64_t id = 0;
  std::string op;
  std::vector<Edge> inputs;
  std::size_t num_outputs = 0;
  BackwardFunction backward;
  SelectiveBackward selective;  // if not empty: in the place of `backward`
  RowFunction rows;             // empty: the operation does not know of rows
  /// What a gradient of the gradient reads. Null unless two tapes or more recorded the operation:
  /// one alone keeps no more than its gradients need.
  std::shared_ptr<const NodeHistory> history;
};

/// Layout of a recurrent network's state: [L*D, B, .] or [B, L*D, .]. The shape does not tell which
/// where L*D == B.
enum class StateLayout : std::uint8_t { kUnknown, kTimeMajor, kBatchMajor };

/// A value, and how it was computed if a GradientTape recorded it. Cheap to copy; the value never
/// changes. Or a symbolic tensor (see graph_symbolic.h): dtype and shape, in which -1 is not known
/// yet, and how its value will be computed.
class OPENRNN_API Tensor {
 public:
  Tensor() = default;
  /// A value without history.
  explicit Tensor(DeviceArray value) : value_(std::move(value)) {}
  /// A copy of host data, unplaced: it, and what is computed from such data alone, moves to the
  /// device of the other operands of an operation or a layer. Until then it is on the default
  /// device; integers, which operations only use as indices, on the cpu.
  explicit Tensor(const ConstArrayView& host);
  /// A copy of host data on that device.
  Tensor(const ConstArrayView& host, const Device& device)
      : value_(DeviceArray::from_host(device, host)) {}
  /// The same for host data in `memory`, an array on the cpu: floating values go to `device`,
  /// without a copy if that is the cpu.
  static Tensor of_host(DeviceArray memory, const Device& device = default_device());

  /// The only output, or one of several, of a call on symbolic tensors.
  explicit Tensor(std::shared_ptr<const Symbol> symbol) : symbol_(std::move(symbol)) {}

  bool empty() const noexcept { return value_.empty() && !symbol_; }
  bool is_symbolic() const noexcept { return symbol_ != nullptr; }
  /// Null unless symbolic.
  const std::shared_ptr<const Symbol>& symbol() const noexcept { return symbol_; }
  DType dtype() const noexcept { return symbol_ ? symbol_dtype() : value_.dtype(); }
  const Shape& shape() const noexcept { return symbol_ ? symbol_shape() : value_.shape(); }
  /// Throws: StateError when symbolic.
  const DeviceArray& value() const {
    if (symbol_) throw_symbolic();
    return value_;
  }
  Array to_host() const { return value().to_host(); }
  /// Throws: StateError when symbolic, ArgumentError when empty.
  const Device& device() const;
  /// Whether its device was chosen, for it or for what it was computed from; else operations may
  /// move it.
  bool placed() const noexcept { return placed_; }
  /// The value on that device, a copy unless it is there. Gradients flow back. Symbolic: recorded.
  Tensor to(const Device& device) const;
  /// The only element as double. Throws: ArgumentError unless there is exactly one.
  double item() const;

  /// Null when nothing was recorded, or the tapes that did are gone.
  std::shared_ptr<const Node> node() const noexcept { return node_.lock(); }
  std::size_t output_index() const noexcept { return output_index_; }
  /// Identity of a leaf that a gradient may be asked for (a variable's read, a watched tensor,
  /// which may have history as well); 0 when it is none.
  std::uint64_t leaf_id() const noexcept { return leaf_id_; }
  /// Of a variable's read: the variable's version then. Equal leaf id and version: equal value.
  std::uint64_t version() const noexcept { return version_; }
  /// Whether a gradient flows through it: recorded, watched, or read from a trainable variable.
  bool tracked() const noexcept { return wants_gradient_ || !node_.expired(); }
  /// The same value without history.
  Tensor detached() const;
  /// Of a state that a recurrent call returned, the layout of that call; what is computed from it
  /// has none.
  StateLayout state_layout() const noexcept { return state_layout_; }
  Tensor with_state_layout(StateLayout layout) && {
    state_layout_ = layout;
    return std::move(*this);
  }

 private:
  DType symbol_dtype() const noexcept;
  const Shape& symbol_shape() const noexcept;
  [[noreturn]] static void throw_symbolic();
  friend class GradientTape;
  friend struct graph::Recorder;
  friend class Variable;
  DeviceArray value_;
  std::weak_ptr<const Node> node_;
  std::size_t output_index_ = 0;
  std::uint64_t leaf_id_ = 0;
  std::uint64_t version_ = 0;
  bool wants_gradient_ = false;
  bool placed_ = true;
  StateLayout state_layout_ = StateLayout::kUnknown;
  std::shared_ptr<const Symbol> symbol_;
};

/// One call of a recorded operation, for its gradient as tensors.
struct GradientCall {
  const std::vector<Tensor>& inputs;  // of the operation, with their own history
  const std::vector<Tensor>& outputs;
  const std::vector<Tensor>& output_gradients;  // empty: zero
  const std::vector<bool>& wanted;              // whether an input's gradient is used
};
/// The gradient of one operation by operations that are recorded themselves: one tensor an input or
/// fewer, empty: none. It has the bits of the BackwardFunction.
using GradientFunction = std::function<std::vector<Tensor>(const GradientCall& call)>;

/// The tensors of a recorded operation. An empty `gradient`: it has no second derivative.
struct NodeHistory {
  std::vector<Tensor> inputs, outputs;
  GradientFunction gradient;
};

/// Whether an operation on these inputs must be recorded: a tape is open on this thread and an
/// input is tracked. Operations ask before they keep anything for backward.
OPENRNN_API bool recording(const std::vector<Tensor>& inputs);
/// Wraps an operation's results; keeps history only if recording(inputs). `backward` gets one
/// gradient an output, and gives one an input or fewer; it may be called any number of times.
/// Without `gradient`, a gradient of the gradient is an error; without `rows`, those of samples.
OPENRNN_API std::vector<Tensor> record(std::string op, const std::vector<Tensor>& inputs,
                                       std::vector<DeviceArray> outputs, BackwardFunction backward,
                                       GradientFunction gradient = {}, RowFunction rows = {});
OPENRNN_API std::vector<Tensor> record_selective(std::string op, const std::vector<Tensor>& inputs,
                                                 std::vector<DeviceArray> outputs,
                                                 SelectiveBackward backward,
                                                 GradientFunction gradient = {},
                                                 RowFunction rows = {});

/// Until it is closed, operations of this thread on watched tensors and trainable variables are
/// recorded. Gradients may be asked any number of times, also after close(), and flow through what
/// this tape recorded, not through what was computed before it: a state carried over from an
/// earlier step counts as a constant. A closed tape costs no time; what it recorded is freed with
/// it. Tapes may be nested: see gradients(). While more than one is open, each operation keeps all
/// its inputs and outputs, so close one before the next where no gradient of a gradient is wanted.
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
  /// leaf or an output gradient of another shape or dtype, StateError for a target without history.
  std::vector<DeviceArray> gradient(const Tensor& target, const std::vector<Tensor>& sources,
                                    const DeviceArray& output_gradient = {}) const;
  std::vector<DeviceArray> gradient(const Tensor& target, const std::vector<Variable>& sources,
                                    const DeviceArray& output_gradient = {}) const;
  /// Several targets: the gradient of their sum, each with its own output gradient (empty: ones).
  std::vector<DeviceArray> gradient(const std::vector<Tensor>& targets,
                                    const std::vector<Tensor>& sources,
                                    const std::vector<DeviceArray>& output_gradients) const;
  /// The gradients as tensors, empty ones where no gradient flows; `output_gradients` are empty, or
  /// one a target, empty: ones. Tapes of this thread that are open, other than this one, record how
  /// they are computed, so that gradients of gradients may be asked of those; of operations that
  /// were computed before the outer tape was opened, or have no second derivative, that is an
  /// UnsupportedError naming them. With no other tape open they are those of gradient(). The bits
  /// are the same. Throws: as gradient().
  std::vector<Tensor> gradients(const std::vector<Tensor>& targets,
                                const std::vector<Tensor>& sources,
                                const std::vector<Tensor>& output_gradients = {}) const;
  std::vector<Tensor> gradients(const std::vector<Tensor>& targets,
                                const std::vector<Variable>& sources,
                                const std::vector<Tensor>& output_gradients = {}) const;
  /// The 2-norm of the gradient of each row's loss, and those gradients: see graph_rows.h.
  std::vector<double> per_sample_norms(const Tensor& target, const std::vector<Tensor>& sources,
                                       std::int64_t axis = 0) const;
  std::vector<double> per_sample_norms(const Tensor& target, const std::vector<Variable>& sources,
                                       std::int64_t axis = 0) const;
  std::vector<DeviceArray> per_sample_gradients(const Tensor& target,
                                                const std::vector<Tensor>& sources,
                                                std::int64_t axis = 0) const;
  std::vector<DeviceArray> per_sample_gradients(const Tensor& target,
                                                const std::vector<Variable>& sources,
                                                std::int64_t axis = 0) const;
  /// Whether a gradient of that target can be asked for.
  bool holds(const Tensor& target) const;

 private:
  void check_targets(const std::vector<Tensor>& targets, std::size_t given) const;
  std::vector<Tensor> tensors_of_leaves(const std::vector<Tensor>& targets,
                                        const std::vector<std::uint64_t>& leaves,
                                        const std::vector<Tensor>& output_gradients) const;
  std::vector<DeviceArray> of_leaves(const std::vector<Tensor>& targets,
                                     const std::vector<std::uint64_t>& leaves,
                                     const std::vector<DeviceArray>& output_gradients) const;
  std::shared_ptr<graph::OpenTapes> open_;  // of the thread that made it; null when closed
  std::shared_ptr<graph::Recording> recording_;
};

// ---- Variables, scopes, collections ------------------------------------------------------------

/// A named value that training changes. Copies name the same variable. Thread-safe: a reader sees
/// the value before or after a change.
class OPENRNN_API Variable {
 public:
  Variable() = default;
  /// Registers itself in the current Graph under the current scope's prefix; its memory is on
  /// `device`, null: the default one. Throws: ArgumentError when that name exists.
  Variable(const std::string& name, Array initial_value, bool trainable = true,
           const Device* device = nullptr);

  bool empty() const noexcept { return state_ == nullptr; }
  const std::string& name() const;  // 'enc/cudnn_lstm/opaque_kernel'
  DType dtype() const;
  const Shape& shape() const;
  /// As it was made, and false while the layer that it belongs to is not trainable.
  bool trainable() const;
  /// As it was made.
  bool made_trainable() const;
  /// Changes the full name. Throws: ArgumentError when the current graph has a variable of that
  /// name, or does not have this one.
  void rename(const std::string& full_name) const;
  /// Never changes.
  const Device& device() const;
  /// Grows with every change.
  std::uint64_t version() const;
  /// The value now; a leaf that a gradient may be asked for (one leaf id for all reads).
  Tensor read() const;
  std::uint64_t leaf_id() const;
  /// The value now, on the host. Throws: what went wrong in the open change, if there is one.
  Array to_host() const;
  /// Throws: ArgumentError naming both shapes or dtypes when they differ.
  void assign(const ConstArrayView& value) const;
  /// A value of another device is copied to the variable's.
  void assign(DeviceArray value) const;
  /// Adds to the value, or subtracts from it: no other change comes between reading and writing.
  /// Integers wrap. Throws: ArgumentError naming both shapes or dtypes when they differ, or for a
  /// dtype without arithmetic.
  void assign_add(const ConstArrayView& value) const;
  void assign_add(DeviceArray value) const;
  void assign_sub(const ConstArrayView& value) const;
  void assign_sub(DeviceArray value) const;
  /// Gives a writer the elements, memory of the variable's device, alone: earlier reads keep their
  /// value. Raises the version.
  void update(const std::function<void(void* elements)>& writer) const;
  /// Until it is settled, `change` may still change the value; it replaces an earlier one.
  void await(std::shared_ptr<OpenChange> change, SettledBy by) const;
  /// Drops the open change if it is this one.
  void forget(const OpenChange& change) const;
  /// Applied after each update of an optimizer; empty: nothing.
  const std::function<Tensor(const Tensor&)>& constraint() const;
  void set_constraint(std::function<Tensor(const Tensor&)> constraint) const;
  bool same_as(const Variable& other) const noexcept { return state_ == other.state_; }

  struct State;

 private:
  friend class Graph;
  friend class Layer;
  friend class graph::WeakVariable;
  /// Of a variable that belongs to no layer yet.
  void belong_to(const std::shared_ptr<const std::atomic<bool>>& layer_trainable) const;
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

  /// One named tensor.
  struct Spec {
    std::string name;
    Array tensor;
  };
  /// The named tensors of the variable's value now.
  std::vector<Spec> specs() const;
  /// Assigns from_tensors(tensors) to the variable.
  void restore(const std::vector<Array>& tensors) const;
};

/// Names of the collections that the library itself fills.
struct GraphKeys {
  static constexpr const char* kGlobalVariables = "variables";
  static constexpr const char* kTrainableVariables = "trainable_variables";
  static constexpr const char* kSaveableObjects = "saveable_objects";
  static constexpr const char* kRegularizationLosses = "regularization_losses";
  static constexpr const char* kUpdateOps = "update_ops";
};

/// The registry of variables, scopes and collections; one is current on each thread (at first the
/// default graph of the process). It does not own variables: one is in it while somebody holds it,
/// such as the layer that made it, and its name is free afterwards. One thread at a time.
class OPENRNN_API Graph {
 public:
  Graph();
  ~Graph();
  /// The one that is current on this thread.
  static Graph& current();

  /// Makes a graph current on this thread while it exists.
  class OPENRNN_API AsDefault {
   public:
    explicit AsDefault(Graph& graph);
    ~AsDefault();
    AsDefault(const AsDefault&) = delete;
    AsDefault& operator=(const AsDefault&) = delete;

   private:
    Graph* previous_;
  };

  /// Those that somebody holds, in order of creation.
  std::vector<Variable> variables() const;
  std::vector<Variable> trainable_variables() const;
  /// Throws: ArgumentError when there is none of that full name.
  Variable variable(const std::string& name) const;
  /// Of that full name.
  bool has_variable(const std::string& name) const;
  /// Holds that variable as long as the graph exists.
  void keep(const Variable& variable);
  /// The collection SAVEABLE_OBJECTS.
  std::vector<std::shared_ptr<SaveableObject>> saveables() const;
  /// `keep` false: it is there while another holds it.
  void add_saveable(std::shared_ptr<SaveableObject> saveable, bool keep = true);
  /// The collection REGULARIZATION_LOSSES, as functions that compute them.
  void add_regularization_loss(std::function<Tensor()> loss);
  /// From a source whose number of losses may change.
  void add_regularization_losses(std::function<std::vector<Tensor>()> losses);
  /// While another holds it.
  void add_regularization_losses(
      const std::shared_ptr<const std::function<std::vector<Tensor>()>>& losses);
  /// While the variable exists.
  void add_regularizer(const Variable& variable, std::function<Tensor(const Tensor&)> regularizer);
  std::vector<Tensor> regularization_losses() const;
  /// The collection UPDATE_OPS: functions that calls of layers registered to run after a training
  /// step, each once.
  std::vector<std::shared_ptr<const std::function<void()>>> updates() const;
  /// `keep` false: it is there while another holds it.
  void add_update(std::shared_ptr<const std::function<void()>> update, bool keep = true);

  /// Adds a value of any type to the collection of that name, in order. Those of GraphKeys take a
  /// std::shared_ptr<SaveableObject>, a std::function<Tensor()> or Tensor, and a
  /// std::function<void()>. Throws: ArgumentError for those of variables, which enter when they are
  /// made; TypeError for another type.
  void add_to_collection(const std::string& key, std::any value);
  /// What is in that collection now; empty when there is none of that name.
  std::vector<std::any> get_collection(const std::string& key) const;
  /// The same as T. Throws: TypeError when one is of another type.
  template <class T>
  std::vector<T> get_collection(const std::string& key) const {
    std::vector<T> values;
    for (std::any& value : get_collection(key)) {
      T* const typed = std::any_cast<T>(&value);
      if (!typed) throw_other_type(key, values.size());
      values.push_back(std::move(*typed));
    }
    return values;
  }

  /// `base`, or `base_1`, `base_2`, ... when taken under `scope`; takes it. What was taken inside a
  /// VariableScope is free again when that closes, as in TensorFlow: opened again with reuse, it
  /// leads to the same variables.
  std::string unique_name(const std::string& scope, const std::string& base);
  /// Graph seed g of the seed helper (semantics of tf.set_random_seed); empty when unset.
  std::optional<std::int64_t> seed() const;
  /// Empty: unset.
  void set_seed(std::optional<std::int64_t> seed);
  /// The pair (seed, seed2) for an operation, as TensorFlow derives it.
  std::pair<std::int64_t, std::int64_t> op_seeds(std::optional<std::int64_t> op_seed);

  /// Unique: no other graph has it, now or later.
  std::uint64_t id() const noexcept;

  struct State;
  State& state() noexcept { return *state_; }

 private:
  [[noreturn]] static void throw_other_type(const std::string& key, std::size_t index);
  std::unique_ptr<State> state_;
};

/// While it exists, variable names of this thread get the prefix `name/`. `reuse` makes
/// get_variable return what exists.
class OPENRNN_API VariableScope {
 public:
  /// `name` is relative to the scope around it.
  explicit VariableScope(const std::string& name, bool reuse = false);
  ~VariableScope();
  VariableScope(const VariableScope&) = delete;
  VariableScope& operator=(const VariableScope&) = delete;
  /// Full name of the innermost scope of this thread, '' at the top.
  static const std::string& current_name();
  /// Whether this thread's innermost scope reuses what exists.
  static bool current_reuse();
};

/// Options of get_variable.
struct VariableOptions {
  DType dtype = DType::kFloat32;
  Initializer initializer = {};  // empty: glorot_uniform, 0 for integers
  /// Unset: the graph's seed, 0 when that is unset too. Each name has a random stream of its own.
  std::optional<std::uint64_t> seed = {};
  bool trainable = true;
  /// Of a new variable: its loss goes to the graph's (and the layer's) regularization losses.
  std::function<Tensor(const Tensor&)> regularizer = {};
  /// Of a new variable: projects the value after each update of an optimizer.
  std::function<Tensor(const Tensor&)> constraint = {};
  /// Null: the default device; of a layer's weight, the layer's.
  const Device* device = nullptr;
};
/// A variable of the current scope: made by the initializer, or the one that exists when the
/// scope's reuse flag is set. Throws: ArgumentError when it exists without reuse, is missing with
/// reuse, or has another shape, dtype or device than was asked for.
OPENRNN_API Variable get_variable(const std::string& name, const Shape& shape,
                                  const VariableOptions& options = {});

}  // namespace openrnn
