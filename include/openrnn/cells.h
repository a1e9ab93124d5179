// Recurrent cells made of plain operations, and the loops that run them over a sequence. The
// CudnnCompatible ones share no code with the engines and read the same checkpoints, so they serve
// to check those.
#pragma once

#include "openrnn/cells_state.h"
#include "openrnn/graph_layer.h"

namespace openrnn {

/// One step of a recurrent network. B batch, I input depth.
class OPENRNN_API RnnCell : public Layer {
 public:
  /// Widths of the state's tensors, as the class defines them.
  virtual std::vector<std::int64_t> state_size() const = 0;
  /// Width of the output, as the class defines it.
  virtual std::int64_t output_size() const = 0;
  /// One step on inputs [B, I]; the first call makes the variables in the current variable scope.
  /// Throws: ArgumentError for a rank, depth or state that does not fit; then nothing is changed.
  CellResult operator()(const Tensor& inputs, const CellState& state,
                        const std::string& scope = "");
  /// The same.
  CellResult call(const Tensor& inputs, const CellState& state, const std::string& scope = "") {
    return (*this)(inputs, state, scope);
  }
  /// Whether state tensor `index` is a memory that dropout must leave alone (c of an lstm).
  virtual bool is_memory(std::size_t index) const { return (void)index, false; }
  /// Zeros [batch_size, size] on the cell's device. Throws: ArgumentError for a negative batch.
  CellState zero_state(std::int64_t batch_size, DType dtype) const;
  /// The same without overrides.
  CellState class_zero_state(std::int64_t batch_size, DType dtype) const;

  void set_overrides(CellOverrides overrides) { overrides_ = std::move(overrides); }
  /// Whether it overrides anything.
  bool overridden() const {
    const CellOverrides& o = overrides_;
    return o.step || o.call || o.zero_state || o.state || o.output_size;
  }
  /// Whether network() is the same as a loop of steps, which loops over time then run in its place.
  virtual bool is_network() const { return false; }
  /// Of variables that are made.
  virtual CellNetwork network() const { return {}; }
  /// State of a step and width of its output, with overrides.
  std::vector<CellStatePart> step_state() const;
  std::int64_t step_output_size() const;
  /// As operator(), but without CellOverrides::call.
  CellResult run_step(const Tensor& inputs, const CellState& state, const std::string& scope = "");
  /// The class's own computation, without overrides: a part of the running call, else a call.
  CellResult run_class(const Tensor& inputs, const CellState& state);
  /// Whether calls after the first one need a scope with reuse: an overridden call makes the
  /// variables of this cell, or of one inside.
  virtual bool needs_reuse() const { return bool(overrides_.call); }
  /// For loops over time: records a whole loop on symbolic tensors as one call of the cell.
  std::vector<Tensor> record_loop(const std::vector<Tensor>& inputs,
                                  std::vector<TensorSpec> outputs, const LayerCall& call) {
    return record_node(inputs, std::move(outputs), call);
  }

 protected:
  /// `call` is what error messages begin with.
  RnnCell(std::string call, std::string name, std::string default_name, DType dtype,
          const Device* device = nullptr)
      : Layer(std::move(name), std::move(default_name), dtype, device), call_(std::move(call)) {}
  const std::string& call_name() const noexcept { return call_; }
  void do_build(const Shape&) override {}
  /// More checks of a call, before anything is built.
  virtual void check_call(const Tensor&, const CellState&) const {}
  virtual CellResult step(const Tensor& inputs, const CellState& state) = 0;
  /// The class's zero state, of a batch of 0 or more; wrappers ask their cells.
  virtual CellState zeros_of_class(std::int64_t batch_size, DType dtype) const;
  /// A step, or a whole loop over time.
  std::vector<Tensor> compute_call(const Attributes& call, const std::vector<Tensor>& inputs,
                                   const Replay& replay) override;

 private:
  std::vector<Tensor> compute_loop(const Attributes& call, const std::vector<Tensor>& inputs);
  CellResult class_step(const Tensor& inputs, const CellState& state);
  CellResult run(const Tensor& inputs, const CellState& state, const std::string& scope,
                 bool overridden);
  std::string call_;
  CellOverrides overrides_;
};

/// Constructor arguments of the cells that have variables.
struct CompatibleCellOptions {
  std::int64_t num_units = 0;
  DType dtype = DType::kFloat32;
  /// Of every kernel; empty: glorot_uniform.
  Initializer kernel_initializer = {};
  std::optional<std::int64_t> seed = {};
  /// Empty: the class name in snake case.
  std::string name = {};
  /// LSTM only: width of a projection of the output, `projection/kernel` [U, P]; 0: none.
  std::int64_t num_proj = 0;
  /// Device of the variables and the computation; null: the default one.
  const Device* device = nullptr;
  /// Uses the existing variables of that name, which is then not made unique, as in a VariableScope
  /// with reuse. The first call throws ArgumentError if one is missing.
  bool reuse = false;
};

/// A cell with variables of its own.
class OPENRNN_API VariableCell : public RnnCell {
 public:
  std::int64_t num_units() const noexcept { return options_.num_units; }
  /// Every constructor argument, with the current name; the constructor is the inverse.
  CompatibleCellOptions get_config() const;

 protected:
  /// Throws: ArgumentError unless num_units > 0 and 0 <= num_proj <= num_units.
  VariableCell(std::string call, std::string default_name, CompatibleCellOptions options);
  void do_build(const Shape& input_shape) final;
  void check_call(const Tensor& inputs, const CellState& state) const override;
  virtual void make_variables(std::int64_t input_size) = 0;
  void copy_cell(const VariableCell& other);
  Variable add_kernel(const std::string& name, const Shape& shape);
  Variable add_bias(const std::string& name, std::int64_t size, double value = 0.0);
  Variable add_bias(const std::string& name, std::int64_t size, Initializer initializer);
  const CompatibleCellOptions& options() const noexcept { return options_; }

 private:
  CompatibleCellOptions options_;
  std::int64_t input_size_ = 0;
};

/// kernel [I + U, 4U] and bias [4U], column blocks i c f o; no forget bias, no peepholes.
class OPENRNN_API CudnnCompatibleLSTMCell : public VariableCell {
 public:
  /// Throws: ArgumentError unless num_units > 0 and 0 <= num_proj <= num_units.
  explicit CudnnCompatibleLSTMCell(CompatibleCellOptions options);
  /// The cell of a get_config(). Throws: as the constructor; so do the others.
  static std::shared_ptr<CudnnCompatibleLSTMCell> from_config(CompatibleCellOptions config);
  std::vector<std::int64_t> state_size() const override;
  std::int64_t output_size() const override;
  std::shared_ptr<Layer> copy() const override;
  bool is_memory(std::size_t index) const override { return index == 0; }

 protected:
  void make_variables(std::int64_t input_size) override;
  CellResult step(const Tensor& inputs, const CellState& state) override;

 private:
  bool projecting() const { return options().num_proj > 0 && options().num_proj < num_units(); }
  Variable kernel_, bias_, projection_;
};

/// gates/{kernel [I + U, 2U], bias [2U]}, column blocks reset and update, bias 1 at first;
/// candidate/{input_projection, hidden_projection}/{kernel, bias}: the reset gate acts after the
/// recurrent product.
class OPENRNN_API CudnnCompatibleGRUCell : public VariableCell {
 public:
  /// Throws: ArgumentError unless num_units > 0.
  explicit CudnnCompatibleGRUCell(CompatibleCellOptions options);
  static std::shared_ptr<CudnnCompatibleGRUCell> from_config(CompatibleCellOptions config);
  std::vector<std::int64_t> state_size() const override { return {num_units()}; }
  std::int64_t output_size() const override { return num_units(); }
  std::shared_ptr<Layer> copy() const override;

 protected:
  void make_variables(std::int64_t input_size) override;
  CellResult step(const Tensor& inputs, const CellState& state) override;

 private:
  Variable gates_kernel_, gates_bias_, input_kernel_, input_bias_, hidden_kernel_, hidden_bias_;
};

/// An activation of a cell, applied to each element; empty: tanh.
using CellFunction = std::function<Tensor(const Tensor&)>;

/// activation([x, h] kernel + bias): kernel [I + U, U], bias [U].
class OPENRNN_API BasicRNNCell : public VariableCell {
 public:
  explicit BasicRNNCell(CompatibleCellOptions options, CellFunction activation = {});
  static std::shared_ptr<BasicRNNCell> from_config(CompatibleCellOptions config,
                                                   CellFunction activation = {});
  /// The other constructor argument.
  const CellFunction& activation() const noexcept { return activation_; }
  std::vector<std::int64_t> state_size() const override { return {num_units()}; }
  std::int64_t output_size() const override { return num_units(); }
  std::shared_ptr<Layer> copy() const override;

 protected:
  void make_variables(std::int64_t input_size) override;
  CellResult step(const Tensor& inputs, const CellState& state) override;

 private:
  CellFunction activation_;
  Variable kernel_, bias_;
};

// ---- TensorFlow 1's cells, with its variables, defaults and steps ------------------------------

/// Constructor arguments of LSTMCell.
struct LSTMCellOptions {
  std::int64_t num_units = 0;
  /// i and f also see the cell before the step, o the one after it: w_i_diag, w_f_diag, w_o_diag.
  bool use_peepholes = false;
  /// The cell stays within [-cell_clip, cell_clip]. Empty: no clip.
  std::optional<double> cell_clip = {};
  /// P, the width of a projection of the output; 0: none.
  std::int64_t num_proj = 0;
  /// The same of the projected output.
  std::optional<double> proj_clip = {};
  /// Joins the bias of f; in no variable.
  double forget_bias = 1.0;
  /// Of the new memory and of the cell on its way out.
  CellFunction activation = {};
  DType dtype = DType::kFloat32;
  /// Of kernels and diagonals; empty: glorot_uniform.
  Initializer kernel_initializer = {};
  std::optional<std::int64_t> seed = {};
  /// The others are those of CompatibleCellOptions.
  std::string name = {};
  const Device* device = nullptr;
  bool reuse = false;
};

/// kernel [I + O, 4U] and bias [4U], column blocks i j f o; w_f_diag, w_i_diag, w_o_diag [U] with
/// peepholes; projection/kernel [U, P]. O = P when projecting, else U.
class OPENRNN_API LSTMCell : public VariableCell {
 public:
  /// Throws: ArgumentError for a size or clip out of range.
  explicit LSTMCell(LSTMCellOptions options);
  static std::shared_ptr<LSTMCell> from_config(LSTMCellOptions config);
  LSTMCellOptions get_config() const;
  std::vector<std::int64_t> state_size() const override { return {num_units(), output_size()}; }
  std::int64_t output_size() const override;
  std::shared_ptr<Layer> copy() const override;
  bool is_memory(std::size_t index) const override { return index == 0; }
  /// Of exactly this class and BasicLSTMCell, with tanh, a projection below num_units or none, and
  /// clips above 0.
  bool is_network() const override;
  CellNetwork network() const override;

 protected:
  struct Names {
    const char* of_class;
    const char* of_cell;
  };
  LSTMCell(Names names, LSTMCellOptions options);
  void make_variables(std::int64_t input_size) override;
  CellResult step(const Tensor& inputs, const CellState& state) override;
  void copy_lstm(const LSTMCell& other);

 private:
  LSTMCellOptions options_;
  Variable kernel_, bias_, forget_diagonal_, input_diagonal_, output_diagonal_, projection_;
};

/// Constructor arguments of BasicLSTMCell, as those of LSTMCell.
struct BasicLSTMCellOptions {
  std::int64_t num_units = 0;
  double forget_bias = 1.0;
  CellFunction activation = {};
  DType dtype = DType::kFloat32;
  Initializer kernel_initializer = {};
  std::optional<std::int64_t> seed = {};
  std::string name = {};
  const Device* device = nullptr;
  bool reuse = false;
};

/// An LSTMCell without the other options.
class OPENRNN_API BasicLSTMCell : public LSTMCell {
 public:
  /// Throws: ArgumentError unless num_units > 0.
  explicit BasicLSTMCell(BasicLSTMCellOptions options);
  static std::shared_ptr<BasicLSTMCell> from_config(BasicLSTMCellOptions config);
  BasicLSTMCellOptions get_config() const;
  std::shared_ptr<Layer> copy() const override;
};

/// Constructor arguments of GRUCell.
struct GRUCellOptions {
  std::int64_t num_units = 0;
  /// Of the candidate.
  CellFunction activation = {};
  DType dtype = DType::kFloat32;
  Initializer kernel_initializer = {};
  /// Of both biases; empty: 1 for those of the gates, 0 for the candidate's.
  Initializer bias_initializer = {};
  std::optional<std::int64_t> seed = {};
  std::string name = {};
  const Device* device = nullptr;
  bool reuse = false;
};

/// gates/{kernel [I + U, 2U], bias [2U]}, column blocks reset and update; candidate/{kernel
/// [I + U, U], bias [U]}: the reset gate acts before the product, unlike CudnnCompatibleGRUCell's.
class OPENRNN_API GRUCell : public VariableCell {
 public:
  /// Throws: ArgumentError unless num_units > 0.
  explicit GRUCell(GRUCellOptions options);
  static std::shared_ptr<GRUCell> from_config(GRUCellOptions config);
  GRUCellOptions get_config() const;
  std::vector<std::int64_t> state_size() const override { return {num_units()}; }
  std::int64_t output_size() const override { return num_units(); }
  std::shared_ptr<Layer> copy() const override;
  /// Of exactly this class, with tanh.
  bool is_network() const override;
  CellNetwork network() const override;

 protected:
  void make_variables(std::int64_t input_size) override;
  CellResult step(const Tensor& inputs, const CellState& state) override;

 private:
  GRUCellOptions options_;
  Variable gates_kernel_, gates_bias_, candidate_kernel_, candidate_bias_;
};

/// The cell that reads checkpoints of a mode. Throws: ArgumentError as its constructor.
OPENRNN_API std::shared_ptr<RnnCell> make_compatible_cell(RnnMode mode,
                                                          CompatibleCellOptions options);

/// Each cell's output is the next one's input; variables under multi_rnn_cell/cell_{i}/.
class OPENRNN_API MultiRNNCell : public RnnCell {
 public:
  /// Throws: ArgumentError without cells, or with an empty one.
  explicit MultiRNNCell(std::vector<std::shared_ptr<RnnCell>> cells);
  /// Every constructor argument: the cells themselves; the constructor is its inverse.
  const std::vector<std::shared_ptr<RnnCell>>& get_config() const noexcept { return cells_; }
  static std::shared_ptr<MultiRNNCell> from_config(std::vector<std::shared_ptr<RnnCell>> config);
  std::vector<std::int64_t> state_size() const override;
  std::int64_t output_size() const override { return cells_.back()->step_output_size(); }
  /// The device of the first cell.
  const Device& device() const override { return cells_.front()->device(); }
  std::shared_ptr<Layer> copy() const override;
  bool is_memory(std::size_t index) const override;
  const std::vector<std::shared_ptr<RnnCell>>& cells() const noexcept { return cells_; }
  std::vector<Layer*> sublayers() const override;
  /// One state a cell. Throws: ArgumentError for a wrong number of tensors.
  std::vector<CellState> split_state(const CellState& state) const;
  bool needs_reuse() const override;

 protected:
  void check_call(const Tensor& inputs, const CellState& state) const override;
  CellResult step(const Tensor& inputs, const CellState& state) override;
  CellState zeros_of_class(std::int64_t batch_size, DType dtype) const override;

 private:
  std::vector<std::shared_ptr<RnnCell>> cells_;
};

/// Constructor arguments of DropoutWrapper after the cell.
struct DropoutWrapperOptions {
  double input_keep_prob = 1.0;
  double output_keep_prob = 1.0;
  /// Of the state's tensors, except memories.
  double state_keep_prob = 1.0;
  std::optional<std::int64_t> seed = {};
};

/// Dropout around a cell, at every call; adds no scope.
class OPENRNN_API DropoutWrapper : public RnnCell {
 public:
  /// Throws: ArgumentError unless every probability lies in (0, 1] and the cell is not null.
  DropoutWrapper(std::shared_ptr<RnnCell> cell, DropoutWrapperOptions options);
  /// The constructor arguments after cell().
  const DropoutWrapperOptions& get_config() const noexcept { return options_; }
  static std::shared_ptr<DropoutWrapper> from_config(std::shared_ptr<RnnCell> cell,
                                                     DropoutWrapperOptions config);
  std::vector<std::int64_t> state_size() const override;
  std::int64_t output_size() const override { return cell_->step_output_size(); }
  /// The device of the wrapped cell.
  const Device& device() const override { return cell_->device(); }
  std::shared_ptr<Layer> copy() const override;
  bool is_memory(std::size_t index) const override { return cell_->step_state()[index].memory; }
  const std::shared_ptr<RnnCell>& cell() const noexcept { return cell_; }
  bool needs_reuse() const override { return RnnCell::needs_reuse() || cell_->needs_reuse(); }
  std::vector<Layer*> sublayers() const override;
  /// Counter of the calls, for checkpoints.
  ops::DropoutState& dropout_state() noexcept { return dropout_; }

 protected:
  CellResult step(const Tensor& inputs, const CellState& state) override;
  CellState zeros_of_class(std::int64_t batch_size, DType dtype) const override;

 private:
  Tensor drop(const Tensor& x, double keep_prob);
  std::shared_ptr<RnnCell> cell_;
  DropoutWrapperOptions options_;
  ops::DropoutState dropout_;
};

// ---- Loops over time ---------------------------------------------------------------------------

/// Options of dynamic_rnn.
struct DynamicRnnOptions {
  /// [B], each in 0..T; past a row's length the output is 0 and the state is carried. Empty: all T.
  std::optional<std::vector<std::int32_t>> sequence_lengths = {};
  /// The same as an int32 tensor [B], which may be symbolic; not both.
  Tensor lengths = {};
  /// Empty: zeros, which needs dtype.
  std::optional<CellState> initial_state = {};
  std::optional<DType> dtype = {};
  /// True: inputs and outputs are [T, B, .]; false: [B, T, .].
  bool time_major = false;
  /// Empty: 'rnn'.
  std::string scope = {};
};

/// Result of dynamic_rnn: outputs [T, B, O] or [B, T, O], and the state after each row's last step.
struct DynamicRnnResult {
  Tensor outputs;
  CellState state;
};

/// Runs a cell over a sequence. Padded inputs are never read. Throws: ArgumentError for inputs that
/// are not 3-D, lengths outside 0..T, or neither initial_state nor dtype.
OPENRNN_API DynamicRnnResult dynamic_rnn(RnnCell& cell, const Tensor& inputs,
                                         const DynamicRnnOptions& options);

/// Options of stack_bidirectional_dynamic_rnn.
struct StackBidirectionalOptions {
  /// One state a layer; empty: zeros, which needs dtype.
  std::optional<std::vector<CellState>> initial_states_fw = {};
  std::optional<std::vector<CellState>> initial_states_bw = {};
  std::optional<DType> dtype = {};
  std::optional<std::vector<std::int32_t>> sequence_lengths = {};
  /// The same as an int32 tensor [B], which may be symbolic; not both.
  Tensor lengths = {};
  bool time_major = false;
  /// Empty: 'stack_bidirectional_rnn'.
  std::string scope = {};
};

/// Result of stack_bidirectional_dynamic_rnn: outputs [T, B, 2U] or [B, T, 2U], and final states.
struct StackBidirectionalResult {
  Tensor outputs;
  std::vector<CellState> states_fw, states_bw;  // one a layer
};

/// Per layer a forward and a length-aware backward pass over the same input, their outputs joined,
/// forward first; that feeds the next layer. Throws: ArgumentError for cell lists that are empty or
/// of unequal length, a wrong number of initial states, and as dynamic_rnn.
OPENRNN_API StackBidirectionalResult
stack_bidirectional_dynamic_rnn(const std::vector<std::shared_ptr<RnnCell>>& cells_fw,
                                const std::vector<std::shared_ptr<RnnCell>>& cells_bw,
                                const Tensor& inputs, const StackBidirectionalOptions& options);

/// Options of bidirectional_dynamic_rnn, as those of dynamic_rnn.
struct BidirectionalOptions {
  std::optional<std::vector<std::int32_t>> sequence_lengths = {};
  Tensor lengths = {};
  std::optional<CellState> initial_state_fw = {};
  std::optional<CellState> initial_state_bw = {};
  std::optional<DType> dtype = {};
  bool time_major = false;
  /// Empty: 'bidirectional_rnn'; the cells are in its scopes `fw` and `bw`.
  std::string scope = {};
};

/// Result of bidirectional_dynamic_rnn: the outputs of each direction, at the time steps of their
/// inputs, and its final state.
struct BidirectionalResult {
  DynamicRnnResult fw, bw;
};

/// A forward and a length-aware backward pass over the same input. Throws: as dynamic_rnn.
OPENRNN_API BidirectionalResult bidirectional_dynamic_rnn(RnnCell& cell_fw, RnnCell& cell_bw,
                                                          const Tensor& inputs,
                                                          const BidirectionalOptions& options);

/// Result of static_rnn: one output [B, O] a time step, and the state after the last.
struct StaticRnnResult {
  std::vector<Tensor> outputs;
  CellState state;
};

/// dynamic_rnn over a list of inputs, one [B, I] a time step; time_major has no meaning. Throws:
/// ArgumentError for an empty list, and as dynamic_rnn.
OPENRNN_API StaticRnnResult static_rnn(RnnCell& cell, const std::vector<Tensor>& inputs,
                                       const DynamicRnnOptions& options);

}  // namespace openrnn
