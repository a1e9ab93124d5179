// The layers: CudnnLSTM and its sisters, LSTM, GRU, RNN, Dense, Embedding, Dropout.
#pragma once

#include "openrnn/graph_layer.h"
#include "openrnn/ops.h"

namespace openrnn::layers {

/// Constructor arguments of the recurrent layers, with TensorFlow's names and defaults.
struct CudnnRnnOptions {
  /// The class sets its mode, the first input its input_size.
  RnnSpec network = {};
  /// Called once for each canonical matrix; empty: glorot_uniform.
  Initializer kernel_initializer = {};
  /// Called once for each canonical bias, two to a gate; empty: zeros.
  Initializer bias_initializer = {};
  /// Empty: the class name in snake case.
  std::string name = {};
  bool trainable = true;
  /// Of each output of each call; see Layer::add_loss.
  Regularizer activity_regularizer = {};
};

/// Options of one call of a recurrent layer.
struct RnnCallOptions {
  /// [B], each in 0..T; empty: all are T.
  std::optional<std::vector<std::int32_t>> sequence_lengths = {};
  /// The same as an int32 tensor [B], which may be symbolic; not both.
  Tensor lengths = {};
  /// Masked steps and resets; not for symbolic tensors.
  ops::StepFlags flags = {};
  /// False: inputs and output are [B, T, .], states [B, L*D, .]. A state that a call of the other
  /// layout returned is transposed. Any other tensor is read as this says: where B == L*D its shape
  /// cannot tell [L*D, B, .] from [B, L*D, .].
  bool time_major = true;
  /// Dropout is on, and gradients may be asked for.
  bool training = true;
  /// Keep what gradients need although `training` is false.
  bool save = false;
  /// As ForwardArgs::recompute, of a call that keeps what gradients need: instead of that, x and
  /// some states, from which backward computes the rest again.
  std::int64_t recompute = 0;
  /// Return the outputs of every layer, and cells of every time step, too. Not for symbolic
  /// tensors.
  bool every = false;
  /// Not empty, at the first call: the scope of the variables, as it is.
  std::string scope = {};
};

/// Result of a call of a recurrent layer; batch-major as RnnCallOptions::time_major says.
struct RnnResult {
  /// [T, B, D*O].
  Tensor output;
  /// lstm (h [L*D, B, O], c [L*D, B, U]); the others (h).
  std::vector<Tensor> state;
  /// As ops::RnnOutputs, with RnnCallOptions::every.
  std::vector<Tensor> layer_outputs = {};
  std::vector<Tensor> layer_cells = {};
};

/// A stack of recurrent layers over one opaque parameter buffer, `NAME/opaque_kernel`.
/// T time, B batch, I input size, L layers, D directions, U units, O = P when projecting else U.
class OPENRNN_API CudnnRnn : public Layer {
 public:
  /// As given, with the mode of the class; input_size is 0 before build.
  const RnnSpec& network() const noexcept { return options_.network; }
  /// As openrnn::math_kind; before build too. Throws: EngineError when this machine lacks the math.
  std::string_view math_kind() const;
  /// Throws: ArgumentError before build.
  std::int64_t input_size() const;
  /// The network that was built. Throws: ArgumentError before build.
  const RnnSpec& spec() const;
  /// The opaque variable. Throws: ArgumentError before build.
  const Variable& kernel() const;
  /// Null before build, and when the variable was built under a reusing scope.
  const std::shared_ptr<SaveableObject>& saveable() const noexcept { return saveable_; }

  /// lstm {[L*D, B, O], [L*D, B, U]}; the others {[L*D, B, U]}.
  std::vector<Shape> state_shape(std::int64_t batch_size) const;
  /// Of each canonical matrix, by layer, direction and slot; [U, 0] where skip_input has none.
  /// Throws: StateError before build.
  std::vector<Shape> canonical_weight_shapes() const;
  /// [U], 2*G*D*L of them; before build too.
  std::vector<Shape> canonical_bias_shapes() const;

  /// Of one layer. Throws: StateError before build, ArgumentError for a layer that is not there.
  std::vector<Shape> canonical_weight_shape(std::int64_t layer) const;
  /// The opaque buffer of canonical tensors. Throws: StateError before build, and as
  /// canonical_to_params.
  Array canonical_to_opaque(std::span<const ConstArrayView> weights,
                            std::span<const ConstArrayView> biases) const;
  /// For a layer that has none yet. Throws: StateError when there is one, or before build.
  void create_saveable();
  /// [T, B, I] to [T, B, D*O]; unknown dimensions stay so. Throws: ArgumentError for another rank.
  Shape compute_output_shape(const Shape& input_shape) const override;

  /// Every constructor argument, with the current name; the constructor is the inverse.
  CudnnRnnOptions get_config() const;
  /// A copy that shares the variables, the graph and the tensors, and nothing else.
  std::shared_ptr<CudnnRnn> clone() const;
  std::shared_ptr<Layer> copy() const override { return clone(); }
  /// clone() with another arithmetic: one layer trains while the other runs on the same variables,
  /// packed again when they change. Throws: StateError before build, ArgumentError as
  /// RnnSpec::validate.
  std::shared_ptr<CudnnRnn> with_arithmetic(Math math, WeightsDType weights_dtype) const;

  /// Runs the network; builds it first if need be. `inputs` [T, B, I]; `initial_state` as
  /// RnnResult::state, empty for zeros. Throws: ArgumentError for a rank, depth, dtype, length,
  /// state shape or number of states that does not fit; EngineError for a math that this machine
  /// lacks; UnsupportedError for gradients with a weights_dtype; then nothing is changed.
  RnnResult operator()(const Tensor& inputs, const std::vector<Tensor>& initial_state = {},
                       const RnnCallOptions& call = {});
  /// The same.
  RnnResult apply(const Tensor& inputs, const std::vector<Tensor>& initial_state = {},
                  const RnnCallOptions& call = {}) {
    return (*this)(inputs, initial_state, call);
  }
  RnnResult call(const Tensor& inputs, const std::vector<Tensor>& initial_state = {},
                 const RnnCallOptions& call = {}) {
    return (*this)(inputs, initial_state, call);
  }

  /// Training calls with dropout so far. With the seed it determines the next call's masks, so a
  /// resumed run has those of an uninterrupted one.
  std::uint64_t dropout_calls() const noexcept { return dropout_.calls(); }
  void set_dropout_calls(std::uint64_t calls) noexcept { dropout_.set_calls(calls); }
  /// Its seed as well, for copies.
  ops::DropoutState& dropout_state() noexcept { return dropout_; }

 protected:
  /// The class in messages, and the default name of its layers.
  struct Names {
    const char* of_class;
    const char* of_layer;
  };
  CudnnRnn(RnnMode mode, Names names, CudnnRnnOptions options);
  /// A new layer of the same class.
  virtual std::shared_ptr<CudnnRnn> another(CudnnRnnOptions options) const;
  void do_build(const Shape& input_shape) override;
  std::vector<Tensor> compute_call(const Attributes& call, const std::vector<Tensor>& inputs,
                                   const Replay& replay) override;

 private:
  void require_built(const char* property) const;
  void check_inputs(const Tensor& inputs) const;
  void check_state(const std::vector<Tensor>& state, std::int64_t batch, bool time_major) const;
  void check_lengths(const Shape& inputs, const RnnCallOptions& call) const;
  ops::RnnOutputs compute(const std::vector<Tensor>& given, const RnnCallOptions& call,
                          const Tensor& lengths);
  RnnResult record(const std::vector<Tensor>& given, const RnnCallOptions& call);

  const char* class_name_;
  CudnnRnnOptions options_;
  std::optional<ValidSpec> spec_;
  Variable kernel_;
  std::shared_ptr<SaveableObject> saveable_;
  ops::PackedCache cache_;
  ops::DropoutState dropout_;
};

/// Long short-term memory; state (h, c). Throws: ArgumentError for options out of range.
class OPENRNN_API CudnnLSTM : public CudnnRnn {
 public:
  /// Throws: ArgumentError for a size below 1, a rate outside [0, 1], a dtype that is not floating,
  /// or num_proj where it cannot be.
  explicit CudnnLSTM(CudnnRnnOptions options);
  /// The network alone. Throws: the same.
  explicit CudnnLSTM(const RnnSpec& network) : CudnnLSTM(CudnnRnnOptions{.network = network}) {}
  /// The layer of a get_config(). Throws: as the constructor.
  static std::shared_ptr<CudnnLSTM> from_config(CudnnRnnOptions config);

 protected:
  CudnnLSTM(Names names, CudnnRnnOptions options);
};
/// Gated recurrent unit, the reset gate after the recurrent product; state (h).
class OPENRNN_API CudnnGRU : public CudnnRnn {
 public:
  /// Throws: ArgumentError for a size below 1, a rate outside [0, 1], a dtype that is not floating,
  /// or num_proj where it cannot be.
  explicit CudnnGRU(CudnnRnnOptions options);
  /// The network alone. Throws: the same.
  explicit CudnnGRU(const RnnSpec& network) : CudnnGRU(CudnnRnnOptions{.network = network}) {}
  /// The layer of a get_config(). Throws: as the constructor.
  static std::shared_ptr<CudnnGRU> from_config(CudnnRnnOptions config);

 protected:
  CudnnGRU(Names names, CudnnRnnOptions options);
};
/// h = tanh(W x + R h' + bW + bR); state (h).
class OPENRNN_API CudnnRNNTanh : public CudnnRnn {
 public:
  /// Throws: ArgumentError for a size below 1, a rate outside [0, 1], a dtype that is not floating,
  /// or num_proj where it cannot be.
  explicit CudnnRNNTanh(CudnnRnnOptions options);
  /// The network alone. Throws: the same.
  explicit CudnnRNNTanh(const RnnSpec& network)
      : CudnnRNNTanh(CudnnRnnOptions{.network = network}) {}
  /// The layer of a get_config(). Throws: as the constructor.
  static std::shared_ptr<CudnnRNNTanh> from_config(CudnnRnnOptions config);
};
/// h = max(0, W x + R h' + bW + bR); state (h).
class OPENRNN_API CudnnRNNRelu : public CudnnRnn {
 public:
  /// Throws: ArgumentError for a size below 1, a rate outside [0, 1], a dtype that is not floating,
  /// or num_proj where it cannot be.
  explicit CudnnRNNRelu(CudnnRnnOptions options);
  /// The network alone. Throws: the same.
  explicit CudnnRNNRelu(const RnnSpec& network)
      : CudnnRNNRelu(CudnnRnnOptions{.network = network}) {}
  /// The layer of a get_config(). Throws: as the constructor.
  static std::shared_ptr<CudnnRNNRelu> from_config(CudnnRnnOptions config);
};
/// CudnnLSTM under the name 'lstm'; what its options make of it: docs/cells_reference.md.
class OPENRNN_API LSTM : public CudnnLSTM {
 public:
  /// Throws: as CudnnLSTM.
  explicit LSTM(CudnnRnnOptions options);
  explicit LSTM(const RnnSpec& network) : LSTM(CudnnRnnOptions{.network = network}) {}
  explicit LSTM(std::int64_t num_units, std::int64_t num_layers = 1)
      : LSTM(RnnSpec{.num_layers = num_layers, .num_units = num_units}) {}
  /// The layer of a get_config(). Throws: as the constructor.
  static std::shared_ptr<LSTM> from_config(CudnnRnnOptions config);

 protected:
  std::shared_ptr<CudnnRnn> another(CudnnRnnOptions options) const override;
};
/// CudnnGRU under the name 'gru', in the same way.
class OPENRNN_API GRU : public CudnnGRU {
 public:
  /// Throws: as CudnnGRU.
  explicit GRU(CudnnRnnOptions options);
  explicit GRU(const RnnSpec& network) : GRU(CudnnRnnOptions{.network = network}) {}
  explicit GRU(std::int64_t num_units, std::int64_t num_layers = 1)
      : GRU(RnnSpec{.num_layers = num_layers, .num_units = num_units}) {}
  /// The layer of a get_config(). Throws: as the constructor.
  static std::shared_ptr<GRU> from_config(CudnnRnnOptions config);

 protected:
  std::shared_ptr<CudnnRnn> another(CudnnRnnOptions options) const override;
};
/// A plain network, named 'rnn', of any activation: h = activation(W x + R h' + bW + bR); state
/// (h). Those of tanh and relu are CudnnRNNTanh's and CudnnRNNRelu's networks.
class OPENRNN_API RNN : public CudnnRnn {
 public:
  /// Without activation: relu for the mode kRnnRelu, else tanh. Throws: as CudnnRNNTanh.
  explicit RNN(CudnnRnnOptions options);
  explicit RNN(const RnnSpec& network) : RNN(CudnnRnnOptions{.network = network}) {}
  explicit RNN(std::int64_t num_units, std::int64_t num_layers = 1)
      : RNN(RnnSpec{.num_layers = num_layers, .num_units = num_units}) {}
  /// The layer of a get_config(). Throws: as the constructor.
  static std::shared_ptr<RNN> from_config(CudnnRnnOptions config);

 protected:
  std::shared_ptr<CudnnRnn> another(CudnnRnnOptions options) const override;
};
/// The Cudnn layer of a mode that is known only at run time, that of the network.
OPENRNN_API std::unique_ptr<CudnnRnn> make_cudnn_rnn(CudnnRnnOptions options);

// ---- Layers used with recurrent ones -----------------------------------------------------------

enum class Activation : std::uint8_t { kLinear, kRelu, kTanh, kSigmoid };

/// Constructor arguments of Dense.
struct DenseOptions {
  std::int64_t units = 0;
  Activation activation = Activation::kLinear;
  bool use_bias = true;
  Initializer kernel_initializer = {};  // empty: glorot_uniform
  Initializer bias_initializer = {};    // empty: zeros
  std::optional<std::int64_t> seed = {};
  DType dtype = DType::kFloat32;
  std::string name = {};
  /// Device of the variables and calls; null: the default one.
  const Device* device = nullptr;
};

/// activation(x kernel + bias): x [.., I] -> [.., units]. Variables kernel [I, units], bias
/// [units].
class OPENRNN_API Dense : public Layer {
 public:
  /// Throws: ArgumentError unless units > 0.
  explicit Dense(DenseOptions options);
  /// Every constructor argument, with the current name; the constructor is the inverse.
  DenseOptions get_config() const;
  static std::shared_ptr<Dense> from_config(DenseOptions config);
  /// Throws: ArgumentError for another depth or dtype than it was built for.
  Tensor operator()(const Tensor& inputs);
  /// The same.
  Tensor call(const Tensor& inputs) { return (*this)(inputs); }
  Shape compute_output_shape(const Shape& input_shape) const override;
  std::shared_ptr<Layer> copy() const override;
  const Variable& kernel() const noexcept { return kernel_; }
  /// Empty without bias.
  const Variable& bias() const noexcept { return bias_; }

 protected:
  void do_build(const Shape& input_shape) override;
  std::vector<Tensor> compute_call(const Attributes& call, const std::vector<Tensor>& inputs,
                                   const Replay& replay) override;

 private:
  DenseOptions options_;
  Variable kernel_, bias_;
};

/// Constructor arguments of Embedding.
struct EmbeddingOptions {
  std::int64_t vocabulary = 0;
  std::int64_t dim = 0;
  Initializer initializer = {};  // empty: uniform in [-0.05, 0.05)
  std::optional<std::int64_t> seed = {};
  DType dtype = DType::kFloat32;
  std::string name = {};
  /// Device of the variables and calls; null: the default one.
  const Device* device = nullptr;
};

/// Rows of a table: indices [..] int32 -> [.., dim]. Variable embeddings [vocabulary, dim].
class OPENRNN_API Embedding : public Layer {
 public:
  /// Throws: ArgumentError unless both sizes are positive.
  explicit Embedding(EmbeddingOptions options);
  /// Every constructor argument, with the current name; the constructor is the inverse.
  EmbeddingOptions get_config() const;
  static std::shared_ptr<Embedding> from_config(EmbeddingOptions config);
  /// Throws: ArgumentError naming the position and value of an index outside the vocabulary.
  Tensor operator()(const Tensor& indices);
  Tensor operator()(const ConstArrayView& indices) { return (*this)(Tensor(indices)); }
  /// The same.
  Tensor call(const Tensor& indices) { return (*this)(indices); }
  Shape compute_output_shape(const Shape& input_shape) const override;
  std::shared_ptr<Layer> copy() const override;
  const Variable& embeddings() const noexcept { return embeddings_; }

 protected:
  void do_build(const Shape& input_shape) override;
  std::vector<Tensor> compute_call(const Attributes& call, const std::vector<Tensor>& inputs,
                                   const Replay& replay) override;

 private:
  EmbeddingOptions options_;
  Variable embeddings_;
};

/// Constructor arguments of Dropout.
struct DropoutOptions {
  double rate = 0.5;
  std::optional<std::int64_t> seed = {};
  std::string name = {};
};

/// Sets elements to 0 with probability `rate` in training, and scales the others by 1/(1 - rate).
class OPENRNN_API Dropout : public Layer {
 public:
  /// Throws: ArgumentError unless 0 <= rate <= 1.
  explicit Dropout(DropoutOptions options);
  /// Every constructor argument, with the current name; the constructor is the inverse.
  DropoutOptions get_config() const;
  static std::shared_ptr<Dropout> from_config(DropoutOptions config);
  /// The inputs, dropped when training.
  Tensor operator()(const Tensor& inputs, bool training);
  /// The same.
  Tensor call(const Tensor& inputs, bool training) { return (*this)(inputs, training); }
  Shape compute_output_shape(const Shape& input_shape) const override { return input_shape; }
  std::shared_ptr<Layer> copy() const override;
  double rate() const noexcept { return options_.rate; }
  /// As CudnnRnn::dropout_calls.
  std::uint64_t dropout_calls() const noexcept { return dropout_.calls(); }
  void set_dropout_calls(std::uint64_t calls) noexcept { dropout_.set_calls(calls); }
  /// Its seed as well, for copies.
  ops::DropoutState& dropout_state() noexcept { return dropout_; }

 protected:
  void do_build(const Shape&) override;
  std::vector<Tensor> compute_call(const Attributes& call, const std::vector<Tensor>& inputs,
                                   const Replay& replay) override;

 private:
  DropoutOptions options_;
  ops::DropoutState dropout_;
};

}  // namespace openrnn::layers
