// The class Layer with the members of tf.layers.Layer, and Model.
#pragma once

#include <atomic>
#include <set>

#include "openrnn/graph_symbolic.h"

namespace openrnn {

/// Requirements of a layer on its input.
struct InputSpec {
  /// Number of dimensions; unset: any.
  std::optional<std::size_t> ndim = {};
  /// Size by axis; a negative axis counts from the end.
  std::map<std::int64_t, std::int64_t> axes = {};
};

/// A loss computed from a value; may be empty.
using Regularizer = std::function<Tensor(const Tensor&)>;
using UpdateFunction = std::function<void()>;

/// A part of a layer: a layer, a variable, or a group of parts. `name` is its name in checkpoints:
/// that of the member, '0', '1', ... in a list, the key in a map.
struct LayerPart {
  std::string name;
  /// Its layer is null once the layer is destroyed.
  std::shared_ptr<const LayerHandle> layer = {};
  Variable variable = {};
  std::vector<LayerPart> parts = {};
  /// Keeps the layer alive; null: its creator does.
  std::shared_ptr<const void> owner = {};
};

/// The state that a copy of a layer takes over, besides constructor arguments and parts.
struct LayerState {
  std::string name = {};
  bool named = false;
  bool trainable = true, stateful = false, built = false;
  /// Full names; '' without a scope yet.
  std::string scope = {}, saveable_scope = {};
  /// Of the build.
  Shape input_shape = {};
  /// Those that add_weight made, and their names inside the scope.
  std::vector<Variable> weights = {};
  std::vector<std::string> weight_names = {};
  /// Of weights, by their index.
  std::vector<std::pair<std::size_t, Regularizer>> regularizers = {};
};

/// A recorded call of a layer, without its inputs.
struct LayerCall {
  /// What the class computes; their meaning is the class's own.
  Attributes attributes = {};
  /// Computes the outputs in place of the class; empty: the class does.
  ReplayFunction function = {};
  /// Whether a copy of the layer can make the call again.
  bool copies = true;
  /// Where a replay does not say it; unset: as the class's attributes or the function do.
  std::optional<bool> training = {};
};

/// Base class of layers: objects with their own variables in their own scope. Calls of one layer
/// must not overlap. A layer made by std::make_shared is kept alive by the symbolic tensors that it
/// returned; any other must outlive them (else StateError).
class OPENRNN_API Layer : public std::enable_shared_from_this<Layer> {
 public:
  /// `name` empty: `default_name`, made unique in the current scope at first use. `device` null:
  /// the default one.
  Layer(std::string name, std::string default_name, DType dtype, const Device* device = nullptr);
  virtual ~Layer();
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  /// As given, else the default name, made unique at first use.
  const std::string& name() const noexcept { return name_; }
  DType dtype() const noexcept { return dtype_; }
  /// Device of its variables and calls. A layer without variables runs on the device of its inputs.
  virtual const Device& device() const { return *device_; }
  /// An unplaced floating tensor, copied to the layer's device; any other tensor unchanged.
  Tensor placed(const Tensor& tensor) const;
  bool built() const noexcept { return built_; }
  /// Whether its weights are trained; true at first.
  bool trainable() const noexcept { return *trainable_; }
  /// Applies to every sublayer too, as in Keras. Variables of a layer that is not trainable are not
  /// trainable either, for graphs, models and tapes alike.
  void set_trainable(bool trainable);
  /// Whether it keeps its updates while it is not trainable.
  bool stateful = false;
  /// Requirements on its input; none before build.
  const std::optional<InputSpec>& input_spec() const noexcept { return input_spec_; }
  /// Full scope name, fixed at first use. Throws: ArgumentError before it.
  const std::string& scope_name() const;
  /// The graph that it was built in. Throws: ArgumentError before its scope is open.
  Graph& graph() const;

  /// Makes the variables for inputs of that shape; -1 is an unknown dimension. No-op when built.
  void build(const Shape& input_shape);
  /// For subclasses in another language: runs in place of build(), inside the layer's scope. A call
  /// of build() from it runs the class's own. Empty: no override.
  void override_build(std::function<void(const Shape&)> build);
  /// Whether the function of override_build() is running.
  bool building() const noexcept { return building_; }
  /// For them too: runs `call` on those inputs as one call of the layer, in place of the class's
  /// own computation, which `call` may use. Builds at first use; `scope` as of ensure_built. On
  /// symbolic inputs it is one node. Throws: ArgumentError when `call` returns no tensor.
  std::vector<Tensor> call_as(const std::vector<Tensor>& inputs, const ReplayFunction& call,
                              const std::string& scope = "");

  // ---- Parts: the layers and variables that a layer is made of

  /// From now on the layer has the part's weights, losses and updates, and checkpoints store it
  /// under `name`. A part of that name is replaced. Throws: ArgumentError for an empty name, no
  /// layer, or the layer itself.
  void track(const std::string& name, std::shared_ptr<Layer> layer);
  /// A member, which lives as long as this layer.
  void track(const std::string& name, Layer& layer);
  void track(const std::string& name, const Variable& variable);
  /// A group under one name. Its parts need no owner.
  void track(const std::string& name, std::vector<LayerPart> parts);
  /// Layers under the names '0', '1', ... within `name`.
  template <class L>
  void track(const std::string& name, const std::vector<std::shared_ptr<L>>& layers) {
    std::vector<LayerPart> parts;
    for (const auto& layer : layers) parts.push_back(part_of(std::to_string(parts.size()), layer));
    track(name, std::move(parts));
  }
  /// A part of that layer, for groups. Throws: ArgumentError for no layer.
  static LayerPart part_of(std::string name, const std::shared_ptr<Layer>& layer);
  /// A source of more parts, called each time that they are needed.
  void track_from(std::function<std::vector<LayerPart>()> source);
  /// The parts given to track(), then those of the source.
  std::vector<LayerPart> parts() const;
  /// Its direct sublayers.
  virtual std::vector<Layer*> sublayers() const;
  /// Freezes the new part if the layer is not trainable, and calls the functions of when_changed().
  void part_was_added(const LayerPart& part);
  /// Calls `then` after the layer was built and after parts were added, until it returns true. What
  /// it throws fails the build.
  void when_changed(std::function<bool()> then);
  std::shared_ptr<const LayerHandle> handle() const noexcept { return handle_; }

  // ---- Weights

  /// The trainable ones, then the others; the layer's own before those of its parts.
  std::vector<Variable> weights() const;
  std::vector<Variable> trainable_weights() const;
  std::vector<Variable> non_trainable_weights() const;
  std::vector<Variable> variables() const { return weights(); }
  std::vector<Variable> trainable_variables() const { return trainable_weights(); }
  std::vector<Variable> non_trainable_variables() const { return non_trainable_weights(); }
  /// The variables that add_weight made.
  const std::vector<Variable>& own_weights() const noexcept { return weights_; }
  /// A variable of the layer's scope, as get_variable makes it, or the layer's own of that name,
  /// shape and dtype. Opens the scope if it is not open yet.
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
  /// All of them, and those of its parts: computed now, of the latest call, or symbolic.
  virtual std::vector<Tensor> losses() const;
  /// Whether some of them are of the latest call, and so of its batch: those of activity
  /// regularizers, and those that were added inside the call or for its inputs.
  virtual bool has_call_losses() const;
  /// Those that depend on one of `inputs`; for no inputs, those that depend on none.
  std::vector<Tensor> get_losses_for(const std::vector<Tensor>& inputs) const;
  /// A function to run after a training step; calls add it to the graph's updates. One that is
  /// added during a call on values is forgotten at the next call.
  void add_update(UpdateFunction update, const std::vector<Tensor>& inputs = {});
  /// None when the layer is neither trainable nor stateful.
  virtual std::vector<UpdateFunction> updates() const;
  std::vector<UpdateFunction> get_updates_for(const std::vector<Tensor>& inputs) const;

  // ---- Nodes: the calls on symbolic tensors

  using NodeList = std::vector<std::shared_ptr<const SymbolicCall>>;
  const NodeList& inbound_nodes() const noexcept { return inbound_nodes_; }
  /// Calls of layers that took outputs of this one.
  NodeList outbound_nodes() const;
  /// Of node 0. Throws: NotConnectedError without a node.
  std::vector<Tensor> input() const;
  std::vector<Tensor> output() const;
  /// The same for all nodes. Throws: NotConnectedError without a node, or when they differ.
  std::vector<Shape> input_shape() const;
  std::vector<Shape> output_shape() const;
  /// Records a call like `call`, with the same inputs, which is one of the layer that this is a
  /// copy of.
  std::vector<Tensor> record_again(const SymbolicCall& call);
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
  LayerState state() const;
  /// Gives this layer, fresh from its constructor, the state of another one; state.weights, copies
  /// of its weights in the current graph, become this layer's. The scope is that of the state if it
  /// is free, else a new one with `_1`, `_2`, ...; the weights are renamed into it. Throws:
  /// ArgumentError for weights of other shapes.
  void take_over(const LayerState& state);

 protected:
  /// Whether do_build runs when the layer takes over the state of another one.
  virtual bool builds_again() const { return true; }
  /// Makes variables; runs inside the layer's scope. When it throws, the layer is not built.
  virtual void do_build(const Shape& input_shape) = 0;
  /// Builds on first use, from a call; `scope` not empty: the scope to use, as it is.
  void ensure_built(const Shape& input_shape, const std::string& scope = "");
  /// Throws: StateError where an overriding build() has not done what the class does.
  void require_class_build() const;
  /// A walk over a layer and what it consists of, each layer once.
  struct Walk {
    bool trainable_only = false;
    std::vector<Variable> found = {};
    std::set<const Layer*> layers = {};
    std::set<std::uint64_t> variables = {};
    void add(const Variable& variable);
  };
  /// The variables of the layer and of what it consists of.
  virtual void gather(Walk& walk) const;
  /// Of an other layer, unless the walk was there.
  static void gather_of(const Layer& layer, Walk& walk);
  /// Prefix of a saveable made in do_build: the scope around an explicit build, the layer's own for
  /// a build from a call.
  const std::string& saveable_scope() const noexcept { return saveable_scope_; }
  /// Before the first use: use the existing variables under the layer's name, which is not made
  /// unique then, or under the scope that a call names.
  void set_reuse(bool reuse) noexcept { reuse_ = reuse; }
  void set_input_spec(InputSpec spec) { input_spec_ = std::move(spec); }

  /// Begins a call: forgets the losses of the last call, publishes updates. Throws: ArgumentError
  /// for symbolic inputs of another graph than the layer's.
  void begin_call(const std::vector<Tensor>& inputs);
  /// Ends a call: losses of the activity regularizer.
  void end_call(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs);
  /// When losses and updates were added: outside of calls; by a call that computed at once; by one
  /// on symbolic tensors; by the last replay of one in a model, in place of what was recorded.
  enum class Added : std::uint8_t { kOutside, kCall, kRecorded, kReplayed };
  /// While it exists, losses and updates are added by such a call, or by the call around it.
  class OPENRNN_API DuringCall {
   public:
    DuringCall(Layer& layer, Added added) : layer_(layer), before_(layer.adds_) {
      if (before_ == Added::kOutside) layer_.adds_ = added;
    }
    ~DuringCall() { layer_.adds_ = before_; }
    DuringCall(const DuringCall&) = delete;
    DuringCall& operator=(const DuringCall&) = delete;

   private:
    Layer& layer_;
    Added before_;
  };
  /// While it exists, calls of the layer are parts of the running call: they begin none, end none
  /// and are no nodes.
  class OPENRNN_API PartOfCall {
   public:
    explicit PartOfCall(Layer& layer) : layer_(layer) { ++layer_.part_of_call_; }
    ~PartOfCall() { --layer_.part_of_call_; }
    PartOfCall(const PartOfCall&) = delete;
    PartOfCall& operator=(const PartOfCall&) = delete;

   private:
    Layer& layer_;
  };
  bool part_of_call() const noexcept { return part_of_call_ > 0; }
  /// Runs `call`; the variables that it makes become the layer's.
  void run_and_adopt(const std::function<void()>& call);
  /// The same inside the layer's scope, with reuse from the second time on.
  void run_in_scope(const std::function<void()>& call);
  /// The class's computation for those attributes: at once, or when a node is replayed.
  virtual std::vector<Tensor> compute_call(const Attributes& call,
                                           const std::vector<Tensor>& inputs, const Replay& replay);
  /// Records a call on symbolic tensors as a node. The computation may use the layer: it is not run
  /// once the layer is destroyed.
  std::vector<Tensor> record_node(const std::vector<Tensor>& inputs,
                                  std::vector<TensorSpec> outputs, const LayerCall& call);
  /// begin_call, record_node or compute_call, end_call.
  std::vector<Tensor> run_call(const std::vector<Tensor>& inputs,
                               const std::vector<TensorSpec>& outputs, const Attributes& call = {});
  /// Everything but the graph and the variables themselves is copied.
  void copy_layer(const Layer& other);

 private:
  friend class Model;
  struct Loss {
    std::function<Tensor()> compute = {};  // empty: the next one, or `value`
    Regularizer regularizer = {};          // of `variable`
    Variable variable = {};
    Tensor value = {};
    std::vector<Tensor> inputs = {};
    Added added = Added::kOutside;
    /// What the graph's collection refers to.
    std::shared_ptr<const std::function<std::vector<Tensor>()>> published = {};
    Tensor now() const {
      if (regularizer) return regularizer(variable.read());
      return compute ? compute() : value;
    }
  };
  struct Update {
    std::shared_ptr<const UpdateFunction> function;
    std::vector<Tensor> inputs = {};
    Added added = Added::kOutside;
  };
  void open_scope(const std::string& scope);
  void build_in(const Shape& input_shape, const std::string& saveable_scope);
  void build_or_undo(const Shape& input_shape, const std::string& scope, bool explicit_build);
  std::vector<Tensor> replay_call(const LayerCall& call, const std::vector<Tensor>& inputs,
                                  const Replay& replay);
  const SymbolicCall& node_at(const char* call, std::int64_t index) const;
  void require_node(const char* what) const;
  std::vector<Tensor> call_losses() const;
  std::vector<Variable> all_weights() const;
  void set_trainable(bool trainable, std::set<const Layer*>& reached);
  void set_part_trainable(const LayerPart& part, bool trainable, std::set<const Layer*>& reached);
  void add_part(LayerPart part);
  void run_waiting();
  Variable make_weight(const std::string& name, const Shape& shape, VariableOptions options);
  std::string free_scope(const LayerState& state) const;
  void follow_scope(const std::string& from, const std::string& to);
  void move_scope(const std::string& to);
  /// The layer, and every layer under it, once.
  std::vector<const Layer*> all_layers() const;
  /// Whether what was added then counts; `replayed` or what was recorded.
  static bool counts(Added added, bool replayed) {
    return added != (replayed ? Added::kRecorded : Added::kReplayed);
  }
  std::vector<Tensor> own_losses(bool symbolic, bool replayed) const;
  void publish_call_losses();
  void forget(Added added);

  std::string name_, scope_name_, saveable_scope_;
  bool named_;
  DType dtype_;
  const Device* device_;
  std::shared_ptr<std::atomic<bool>> trainable_ = std::make_shared<std::atomic<bool>>(true);
  bool built_ = false;
  std::function<void(const Shape&)> own_build_;
  bool building_ = false;
  bool class_built_ = false;
  int part_of_call_ = 0;
  bool ran_in_scope_ = false;
  bool reuse_ = false;
  std::shared_ptr<const std::function<std::vector<Tensor>()>> published_losses_;  // of its calls
  Added adds_ = Added::kOutside;
  bool replayed_ = false;   // since a call on symbolic tensors
  Graph* graph_ = nullptr;  // null until the scope is open
  std::uint64_t graph_id_ = 0;
  std::optional<InputSpec> input_spec_;
  std::vector<Variable> weights_;
  std::vector<LayerPart> parts_;
  std::function<std::vector<LayerPart>()> more_parts_;
  std::vector<std::function<bool()>> waiting_;
  Shape built_for_;
  std::vector<Variable> taken_weights_;  // what add_weight gives while a state is taken over
  std::string taken_scope_;              // that of the state
  Regularizer activity_regularizer_;
  std::vector<Loss> losses_;
  std::vector<Update> updates_;
  std::shared_ptr<LayerHandle> handle_;
  NodeList inbound_nodes_;
  std::vector<std::weak_ptr<const SymbolicCall>> outbound_nodes_;
};

/// The recorded calls between symbolic inputs and outputs as one layer, which runs on values and
/// trains under a GradientTape.
class OPENRNN_API Model : public Layer {
 public:
  /// Throws: ArgumentError for a tensor that is not symbolic, or an output that depends on an Input
  /// that is not among `inputs` (naming it).
  Model(std::vector<Tensor> inputs, std::vector<Tensor> outputs, std::string name = "");
  const std::vector<Tensor>& inputs() const noexcept { return inputs_; }
  const std::vector<Tensor>& outputs() const noexcept { return outputs_; }
  /// In the order of their first call.
  std::vector<Layer*> layers() const;
  /// Computes the outputs from values of the inputs; symbolic inputs are recorded again. `training`
  /// unset: as each call was recorded. Throws: ArgumentError for a wrong number, dtype or shape.
  std::vector<Tensor> operator()(const std::vector<Tensor>& values,
                                 std::optional<bool> training = {});
  /// The same.
  std::vector<Tensor> call(const std::vector<Tensor>& values, std::optional<bool> training = {}) {
    return (*this)(values, training);
  }
  /// The outputs on the host, with training off. Throws: as a call, StateError for symbolic values.
  std::vector<Array> predict(const std::vector<Tensor>& values);
  /// Losses of its layers: those of no input, computed now, and those of the latest call (before
  /// the first one: symbolic).
  std::vector<Tensor> losses() const override;
  bool has_call_losses() const override;
  /// A model of the same layers.
  std::shared_ptr<Layer> copy() const override;
  /// layers(), then the layers of its parts.
  std::vector<Layer*> sublayers() const override;

  /// What a copy is recorded from: every call that leads to the outputs and to the symbolic losses
  /// of its layers, from the Inputs on.
  NodeList recorded_calls() const;
  struct SymbolicLoss {
    std::shared_ptr<Layer> layer;
    Tensor value;
    std::vector<Tensor> inputs;
    bool by_call = false;  // added by the layer's call, which adds it again when it is replayed
  };
  std::vector<SymbolicLoss> recorded_losses() const;
  /// Adds the losses that the layers lack.
  static void add_losses(const std::vector<SymbolicLoss>& losses);

 protected:
  void do_build(const Shape&) override {}
  void gather(Walk& walk) const override;

 private:
  /// With or without those that a replay of its call adds again.
  std::vector<Tensor> symbolic_losses(bool by_calls) const;
  std::vector<Tensor> inputs_, outputs_;
  NodeList calls_;
  std::vector<Tensor> call_losses_;
  bool called_ = false;
};

}  // namespace openrnn
