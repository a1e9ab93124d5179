// The class Layer with the members of tf.layers.Layer, and Model.
#pragma once

#include "openrnn/graph_symbolic.h"

namespace openrnn {

/// What a layer demands of its input.
struct InputSpec {
  /// Number of dimensions; unset: any.
  std::optional<std::size_t> ndim = {};
  /// Size by axis; a negative axis counts from the end.
  std::map<std::int64_t, std::int64_t> axes = {};
};

/// A loss computed from a value; may be empty.
using Regularizer = std::function<Tensor(const Tensor&)>;
using UpdateFunction = std::function<void()>;

/// Base of everything with variables of its own under a scope of its own. Calls of one layer must
/// not overlap. A layer that std::make_shared made is kept alive by the symbolic tensors that came
/// out of it; another one must outlive them (StateError where it did not).
class OPENRNN_API Layer : public std::enable_shared_from_this<Layer> {
 public:
  /// `name` empty: `default_name`, made unique in the current scope at first use. `device` null:
  /// the default one.
  Layer(std::string name, std::string default_name, DType dtype, const Device* device = nullptr);
  virtual ~Layer();
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  /// As given, else the default name, from first use on with what made it unique.
  const std::string& name() const noexcept { return name_; }
  DType dtype() const noexcept { return dtype_; }
  /// Where its variables lie and its calls run. A layer without variables runs where its inputs
  /// lie.
  virtual const Device& device() const { return *device_; }
  /// A floating tensor that nobody has placed, on the layer's device; any other one as it is.
  Tensor placed(const Tensor& tensor) const;
  bool built() const noexcept { return built_; }
  bool trainable = true;
  /// Keeps its updates when it is not trainable.
  bool stateful = false;
  /// What the layer demands of its input; nothing before build.
  const std::optional<InputSpec>& input_spec() const noexcept { return input_spec_; }
  /// Full scope name, fixed at first use. Throws: ArgumentError before it.
  const std::string& scope_name() const;
  /// The graph that it was built in. Throws: ArgumentError before its scope is open.
  Graph& graph() const;

  /// Makes the variables for inputs of that shape; -1 is an unknown dimension. No-op when built.
  void build(const Shape& input_shape);

  // ---- Weights

  /// Those that are trainable, then the others.
  std::vector<Variable> weights() const;
  std::vector<Variable> trainable_weights() const;
  std::vector<Variable> non_trainable_weights() const;
  std::vector<Variable> variables() const { return weights(); }
  std::vector<Variable> trainable_variables() const { return trainable_weights(); }
  std::vector<Variable> non_trainable_variables() const { return non_trainable_weights(); }
  /// A variable of the layer's scope, as get_variable. Opens the scope if need be.
  Variable add_weight(const std::string& name, const Shape& shape, const VariableOptions& options);
  Variable add_variable(const std::string& name, const Shape& shape,
                        const VariableOptions& options) {
    return add_weight(name, shape, options);
  }
  /// Throws: ArgumentError before build.
  std::int64_t count_params() const;
  /// Copies of the values, in the order of weights().
  std::vector<Array> get_weights() const;
  /// Throws: ArgumentError for a wrong count or shape; then nothing is changed.
  void set_weights(const std::vector<Array>& values);

  // ---- Losses and updates

  /// Applied to each output of each call; the loss depends on the call's inputs.
  const Regularizer& activity_regularizer() const noexcept { return activity_regularizer_; }
  /// Empty: none.
  void set_activity_regularizer(Regularizer regularizer);
  /// A loss that depends on no input, computed when asked for. It goes to the graph's
  /// regularization losses as well, like those below.
  void add_loss(std::function<Tensor()> loss);
  /// A loss of those inputs (none: of no input). One that is not symbolic belongs to the latest
  /// call and is forgotten at the next one, if it has inputs or is added during a call.
  void add_loss(const Tensor& loss, const std::vector<Tensor>& inputs = {});
  /// All of them: computed now, of the latest call, or symbolic.
  virtual std::vector<Tensor> losses() const;
  /// Those that depend on one of `inputs`; for no inputs, those that depend on none.
  std::vector<Tensor> get_losses_for(const std::vector<Tensor>& inputs) const;
  /// Something to run after a training step; calls put it into the graph's updates. One that is
  /// added during a call on values is forgotten at the next call.
  void add_update(UpdateFunction update, const std::vector<Tensor>& inputs = {});
  /// None when the layer is neither trainable nor stateful.
  virtual std::vector<UpdateFunction> updates() const;
  std::vector<UpdateFunction> get_updates_for(const std::vector<Tensor>& inputs) const;

  // ---- Nodes: the calls on symbolic tensors

  using NodeList = std::vector<std::shared_ptr<const SymbolicCall>>;
  const NodeList& inbound_nodes() const noexcept { return inbound_nodes_; }
  /// Calls of layers that were given outputs of this one.
  NodeList outbound_nodes() const;
  /// Of node 0. Throws: NotConnectedError without a node.
  std::vector<Tensor> input() const;
  std::vector<Tensor> output() const;
  /// Of all nodes alike. Throws: NotConnectedError without a node, or when they differ.
  std::vector<Shape> input_shape() const;
  std::vector<Shape> output_shape() const;
  /// Empty tensors: no layer here makes a mask. Throws: as input().
  Tensor input_mask() const;
  Tensor output_mask() const;
  /// Throws: StateError without a node, ArgumentError for an index that no node has.
  std::vector<Tensor> get_input_at(std::int64_t node_index) const;
  std::vector<Tensor> get_output_at(std::int64_t node_index) const;
  std::vector<Shape> get_input_shape_at(std::int64_t node_index) const;
  std::vector<Shape> get_output_shape_at(std::int64_t node_index) const;
  Tensor get_input_mask_at(std::int64_t node_index) const;
  Tensor get_output_mask_at(std::int64_t node_index) const;
  /// Empty. Throws: TypeError for a mask, which no layer here supports.
  Tensor compute_mask(const Tensor& inputs, const Tensor& mask = {}) const;
  /// Throws: UnsupportedError where a layer does not say.
  virtual Shape compute_output_shape(const Shape& input_shape) const;
  /// A copy that shares the variables, the graph and the tensors, and nothing else.
  /// Throws: UnsupportedError where a class has none.
  virtual std::shared_ptr<Layer> copy() const;

 protected:
  /// Makes variables; runs inside the layer's scope. When it throws, the layer is not built.
  virtual void do_build(const Shape& input_shape) = 0;
  /// Builds on first use, from a call; `scope` not empty: the scope to use, as it is.
  void ensure_built(const Shape& input_shape, const std::string& scope = "");
  /// The variables of the layer and of what it consists of.
  virtual std::vector<Variable> all_weights() const { return weights_; }
  /// Prefix that a saveable made in do_build gets: the scope around an explicit build, the layer's
  /// own for a build from a call.
  const std::string& saveable_scope() const noexcept { return saveable_scope_; }
  void set_input_spec(InputSpec spec) { input_spec_ = std::move(spec); }

  /// Begins a call: forgets the losses of the last one, publishes updates. Throws: ArgumentError
  /// for symbolic inputs of another graph than the layer's.
  void begin_call(const std::vector<Tensor>& inputs);
  /// Ends a call: losses of the activity regularizer.
  void end_call(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs);
  /// While it lives, what is added belongs to the call.
  class OPENRNN_API DuringCall {
   public:
    explicit DuringCall(Layer& layer) : layer_(layer) { layer_.in_call_ = true; }
    ~DuringCall() { layer_.in_call_ = false; }
    DuringCall(const DuringCall&) = delete;
    DuringCall& operator=(const DuringCall&) = delete;

   private:
    Layer& layer_;
  };
  /// Records a call on symbolic tensors as a node. `run` may name the layer: it is not run when the
  /// layer is gone.
  std::vector<Tensor> record_node(const std::vector<Tensor>& inputs,
                                  std::vector<TensorSpec> outputs, ReplayFunction run);
  /// begin_call, record_node or `run` at once, end_call.
  std::vector<Tensor> run_call(const std::vector<Tensor>& inputs,
                               const std::vector<TensorSpec>& outputs, const ReplayFunction& run);
  /// Everything but the graph and the variables themselves is copied.
  void copy_layer(const Layer& other);

 private:
  friend class Model;
  struct Loss {
    std::function<Tensor()> compute = {};  // empty: `value`
    Tensor value = {};
    std::vector<Tensor> inputs = {};
    bool of_call = false;
    Tensor now() const { return compute ? compute() : value; }
  };
  struct Update {
    std::shared_ptr<const UpdateFunction> function;
    std::vector<Tensor> inputs = {};
    bool of_call = false;
  };
  void open_scope(const std::string& scope);
  void build_in(const Shape& input_shape, const std::string& saveable_scope);
  void build_or_undo(const Shape& input_shape, const std::string& scope, bool explicit_build);
  const SymbolicCall& node_at(const char* call, std::int64_t index) const;
  void require_node(const char* what) const;
  std::vector<Tensor> call_losses() const;

  std::string name_, scope_name_, saveable_scope_;
  bool named_;
  DType dtype_;
  const Device* device_;
  bool built_ = false;
  bool losses_published_ = false;
  bool in_call_ = false;
  Graph* graph_ = nullptr;  // null until the scope is open
  std::uint64_t graph_id_ = 0;
  std::optional<InputSpec> input_spec_;
  std::vector<Variable> weights_;
  Regularizer activity_regularizer_;
  std::vector<Loss> losses_;
  std::vector<Update> updates_;
  std::shared_ptr<LayerHandle> handle_;
  NodeList inbound_nodes_;
  std::vector<std::weak_ptr<const SymbolicCall>> outbound_nodes_;
};

/// What was recorded between symbolic inputs and outputs, as one layer: runs on values, and trains
/// under a GradientTape.
class OPENRNN_API Model : public Layer {
 public:
  /// Throws: ArgumentError for a tensor that is not symbolic, or an output that depends on an Input
  /// that is not among `inputs` (naming it).
  Model(std::vector<Tensor> inputs, std::vector<Tensor> outputs, std::string name = "");
  const std::vector<Tensor>& inputs() const noexcept { return inputs_; }
  const std::vector<Tensor>& outputs() const noexcept { return outputs_; }
  /// In the order of their first call.
  std::vector<Layer*> layers() const;
  /// Values for the inputs to values of the outputs; symbolic ones are recorded once more.
  /// `training` unset: as each call was recorded. Throws: ArgumentError for a wrong number, dtype
  /// or shape.
  std::vector<Tensor> operator()(const std::vector<Tensor>& values,
                                 std::optional<bool> training = {});
  /// Those of its layers: of no input, computed now, and those of the latest call (before the first
  /// one: symbolic).
  std::vector<Tensor> losses() const override;
  std::vector<UpdateFunction> updates() const override;
  /// Of the same layers.
  std::shared_ptr<Layer> copy() const override;

 protected:
  void do_build(const Shape&) override {}
  std::vector<Variable> all_weights() const override;

 private:
  std::vector<Tensor> symbolic_losses() const;
  std::vector<Tensor> inputs_, outputs_;
  NodeList calls_;
  std::vector<Tensor> call_losses_;
  bool called_ = false;
};

}  // namespace openrnn
