// The opaque buffer as the tensors of TensorFlow's compatible cells: Saveables and converters.
#pragma once

#include "openrnn/graph.h"

namespace openrnn {

// ---- The cell format as data -------------------------------------------------------------------

/// One region of the opaque buffer inside one tensor of the cell format. A matrix [rows, cols] lies
/// there transposed, its corner at (row, col); a bias lies at col, added to a second one if it has
/// one.
struct TfPart {
  std::int64_t rows = 0, cols = 0;
  std::int64_t offset = 0;
  /// Of the recurrent bias that is stored as a sum with the input bias; -1: none.
  std::int64_t second_offset = -1;
  std::int64_t row = 0, col = 0;
};

enum class TfTensorKind : std::uint8_t { kWeight, kProjection, kBias };

/// One tensor of the cell format, and the regions of the opaque buffer that it is made of.
struct TfTensor {
  /// 'rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/kernel', without scope.
  std::string name;
  std::int64_t layer = 0, direction = 0;
  /// What the cell calls it: 'kernel', 'candidate/hidden_projection/bias'.
  std::string suffix;
  Shape shape;
  TfTensorKind kind = TfTensorKind::kWeight;
  std::vector<TfPart> parts;

  /// Whether each element is the sum of two biases.
  bool sums_biases() const { return !parts.empty() && parts[0].second_offset >= 0; }
};

/// The tensors that TensorFlow's platform-independent cells hold for a network: kernels [in + O,
/// G*U] with column blocks i c f o (lstm) or r z (gru), one bias a gate but for the candidate of a
/// gru. Weights by layer and direction, a projection after its kernel, then all biases, each
/// layer's peepholes (`w_f_diag`, `w_i_diag`, `w_o_diag`) behind them. A gru that resets before the
/// product is TensorFlow's GRUCell, `gru_cell`. Biases that a network has not have no tensor. Layer
/// normalization of gates with a carried cell is LayerNormBasicLSTMCell, whose `input`,
/// `transform`, `forget`, `output` and `state` have gamma and beta, the beta of a gate being its
/// bias; other layer normalization has `kernel_norm/gamma`, `recurrent_norm/gamma` and
/// `state_norm/{gamma, beta}`, blocks as the kernel (gru: r z n), behind a layer's biases. Options
/// without parameters (activations, clips, forget_bias, coupled_gates) are not in it: the cell that
/// reads it sets them.
class OPENRNN_API TfCanonicalFormat {
 public:
  /// Throws: ArgumentError as RnnSpec::validate.
  explicit TfCanonicalFormat(const RnnSpec& spec);

  const RnnSpec& spec() const noexcept { return spec_; }
  /// Elements of the opaque buffer.
  std::int64_t opaque_size() const noexcept { return opaque_size_; }
  const std::vector<TfTensor>& tensors() const noexcept { return tensors_; }

  /// From a buffer of the layout's shape; weights are copied bit for bit, bW + bR rounded once. A
  /// longer buffer is accepted; its tail is ignored. Throws: as check_params.
  std::vector<Array> from_opaque(std::string_view call, const ConstArrayView& params) const;
  /// The inverse. A bias sum goes half into each bias, so that their sum is what was given.
  /// `prefix` stands before the names in errors. Throws: ArgumentError for a wrong count, shape or
  /// dtype, naming the tensor, given and expected.
  Array to_opaque(std::string_view call, std::string_view prefix,
                  std::span<const ConstArrayView> tensors) const;

  /// A buffer with the layout of parameters that holds something else (a gradient, a moment of
  /// Adam, a momentum), in its own floating dtype: tensors as a cell with one bias keeps them, the
  /// input bias' part where parameters have sums; then, for each of those, the recurrent bias'
  /// part. Bit for bit: nothing is summed or halved. Throws: as check_slots.
  std::vector<Array> slots_from_opaque(std::string_view call, const ConstArrayView& slots) const;
  /// The inverse. The recurrent biases' parts may be left out: then both biases get what the cell's
  /// one bias has. Throws: ArgumentError as to_opaque.
  Array slots_to_opaque(std::string_view call, std::string_view prefix,
                        std::span<const ConstArrayView> tensors) const;

 private:
  void check_tensors(std::string_view call, std::string_view prefix, DType dtype,
                     std::span<const ConstArrayView> tensors) const;
  RnnSpec spec_;
  std::int64_t opaque_size_ = 0;
  std::vector<TfTensor> tensors_;
};

/// 'rnn/multi_rnn_cell/cell_1' or 'stack_bidirectional_rnn/cell_1/bidirectional_rnn/bw'.
OPENRNN_API std::string tf_cell_scope(Direction direction, std::int64_t layer, std::int64_t dir);
/// 'cudnn_compatible_lstm_cell', 'cudnn_compatible_gru_cell', 'basic_rnn_cell'.
OPENRNN_API std::string_view tf_cell_name(RnnMode mode);
/// The same, but 'gru_cell' for a gru that resets before the product, and with layer normalization
/// a name for each form ('layer_norm_basic_lstm_cell' for that cell), which no other network has.
OPENRNN_API std::string_view tf_cell_name(const RnnSpec& spec);

// ---- Saveables ---------------------------------------------------------------------------------

/// Names of objects from one to the next: {'cell-0', 'kernel'}. A name may hold slashes.
using ObjectPath = std::vector<std::string>;

/// A saveable that object-based checkpoints can store as well.
class OPENRNN_API ObjectSaveable : public SaveableObject {
 public:
  /// For each tensor, in the order of spec_names, the paths from the layer that lead to it.
  virtual std::vector<std::vector<ObjectPath>> object_paths() const = 0;
  /// Which of the tensors hold a sum of two biases.
  virtual std::vector<bool> bias_sums() const = 0;
  /// A slot of the variable, such as a moment of Adam, in its own floating dtype: what a cell with
  /// one bias keeps beside each tensor, which is the input bias' part where the tensor holds a sum.
  /// Then, for each such sum, the recurrent bias' part. Nothing is summed or halved.
  /// Throws: ArgumentError for another size or dtype.
  virtual std::vector<Array> slot_to_tensors(const ConstArrayView& slot) const = 0;
  /// The inverse; without the recurrent parts both biases get what the tensor holds.
  /// Throws: ArgumentError for a wrong count, shape or dtype.
  virtual Array slot_from_tensors(const std::vector<Array>& tensors) const = 0;
};

/// Constructor arguments after the variable, with TensorFlow's names.
struct CudnnSaveableOptions {
  /// The class sets its mode, the variable its dtype.
  RnnSpec network = {};
  /// Prefix `SCOPE/` of every tensor's name; empty: none.
  std::string scope = {};
  std::string name = "cudnn_rnn_saveable";
};

/// Stores an opaque buffer as the tensors of the compatible cells, and restores it from them.
class OPENRNN_API CudnnRnnSaveable : public ObjectSaveable {
 public:
  const std::string& name() const override { return name_; }
  const Variable& variable() const override { return opaque_params_; }
  std::vector<std::string> spec_names() const override;
  std::vector<Array> to_tensors(const ConstArrayView& value) const override;
  Array from_tensors(const std::vector<Array>& tensors) const override;
  /// `cell-{l}/NAME` as MultiRNNCell has it, and `NAME` alone when there is one layer;
  /// bidirectional: `cells_fw-{l}/NAME` and `cells_bw-{l}/NAME`. NAME: docs/layer_norm.md, too.
  std::vector<std::vector<ObjectPath>> object_paths() const override;
  std::vector<bool> bias_sums() const override;
  std::vector<Array> slot_to_tensors(const ConstArrayView& slot) const override;
  Array slot_from_tensors(const std::vector<Array>& tensors) const override;
  const RnnSpec& spec() const noexcept { return format_.spec(); }

 protected:
  /// Throws: ArgumentError for sizes out of range, or a variable whose size is not theirs.
  CudnnRnnSaveable(std::string call, RnnMode mode, Variable opaque_params,
                   const CudnnSaveableOptions& options);

 private:
  std::string call_, name_, prefix_;
  Variable opaque_params_;
  TfCanonicalFormat format_;
};

/// kernel [in + O, 4U] and bias [4U] of each layer and direction, blocks i c f o; projection/kernel
/// [U, P] when projecting.
class OPENRNN_API CudnnLSTMSaveable : public CudnnRnnSaveable {
 public:
  /// Throws: ArgumentError for sizes out of range, or a variable whose size is not theirs.
  CudnnLSTMSaveable(Variable opaque_params, const CudnnSaveableOptions& options);
};
/// gates and candidate of each layer and direction; the biases of the candidate stay apart.
class OPENRNN_API CudnnGRUSaveable : public CudnnRnnSaveable {
 public:
  /// Throws: ArgumentError for sizes out of range, or a variable whose size is not theirs.
  CudnnGRUSaveable(Variable opaque_params, const CudnnSaveableOptions& options);
};
/// kernel [in + U, U] and bias [U] of each layer and direction.
class OPENRNN_API CudnnRNNTanhSaveable : public CudnnRnnSaveable {
 public:
  /// Throws: ArgumentError for sizes out of range, or a variable whose size is not theirs.
  CudnnRNNTanhSaveable(Variable opaque_params, const CudnnSaveableOptions& options);
};
/// As CudnnRNNTanhSaveable, under the same names.
class OPENRNN_API CudnnRNNReluSaveable : public CudnnRnnSaveable {
 public:
  /// Throws: ArgumentError for sizes out of range, or a variable whose size is not theirs.
  CudnnRNNReluSaveable(Variable opaque_params, const CudnnSaveableOptions& options);
};
/// The saveable of a mode that is known only at run time, that of the network.
OPENRNN_API std::shared_ptr<SaveableObject> make_cudnn_saveable(
    Variable opaque_params, const CudnnSaveableOptions& options);

// ---- Converters --------------------------------------------------------------------------------

/// A buffer in the cell format; projections apart.
struct TfCanonicalParams {
  std::vector<Array> weights;
  std::vector<Array> biases;
  /// [U, P] for each layer and direction; empty without projection.
  std::vector<Array> weights_proj;
  /// Of slots alone: the recurrent bias' part of each bias that is a sum in parameters, in order.
  std::vector<Array> recurrent_biases = {};
};

/// Converts any buffer of a network's shape to the cell format and back; the dtype is that of what
/// is given. Gradients, moments and other slots have calls of their own: the cell's one bias gets
/// what each of the two has, where tf_canonical calls would give a gradient the sum, twice as much.
class OPENRNN_API CudnnParamsFormatConverter {
 public:
  /// `tf_canonicals` is weights, then biases, in one list.
  /// Throws: ArgumentError as TfCanonicalFormat::to_opaque.
  Array tf_canonical_to_opaque(std::span<const ConstArrayView> tf_canonicals,
                               std::span<const ConstArrayView> weights_proj = {}) const;
  /// Throws: ArgumentError for a buffer that is not 1-D, not floating or of another size.
  TfCanonicalParams opaque_to_tf_canonical(const ConstArrayView& opaque_params) const;

  /// A gradient, a moment of Adam or another slot: `biases` hold the input biases' part, which for
  /// a gradient is that of the cell's one bias. Bit for bit. Throws: as opaque_to_tf_canonical.
  TfCanonicalParams opaque_slots_to_tf(const ConstArrayView& opaque_slots) const;
  /// The inverse. Without `recurrent_biases` both biases get what the cell's one bias has.
  /// Throws: ArgumentError as TfCanonicalFormat::slots_to_opaque.
  Array tf_slots_to_opaque(std::span<const ConstArrayView> tf_slots,
                           std::span<const ConstArrayView> weights_proj = {},
                           std::span<const ConstArrayView> recurrent_biases = {}) const;

 protected:
  CudnnParamsFormatConverter(std::string call, RnnMode mode, RnnSpec network);

 private:
  TfCanonicalFormat format_for(const ConstArrayView& values) const;
  void check_size(const TfCanonicalFormat& format, const ConstArrayView& buffer) const;
  std::vector<ConstArrayView> in_order(const TfCanonicalFormat& format,
                                       std::span<const ConstArrayView> tf_canonicals,
                                       std::span<const ConstArrayView> weights_proj) const;
  std::string call_;
  RnnSpec spec_;
};

/// Of an lstm, with or without projection.
class OPENRNN_API CudnnParamsFormatConverterLSTM : public CudnnParamsFormatConverter {
 public:
  /// Throws: ArgumentError for sizes out of range.
  explicit CudnnParamsFormatConverterLSTM(const RnnSpec& network);
};
/// Of a gru.
class OPENRNN_API CudnnParamsFormatConverterGRU : public CudnnParamsFormatConverter {
 public:
  /// Throws: ArgumentError for sizes out of range.
  explicit CudnnParamsFormatConverterGRU(const RnnSpec& network);
};
/// Of a plain network with tanh.
class OPENRNN_API CudnnParamsFormatConverterTanh : public CudnnParamsFormatConverter {
 public:
  /// Throws: ArgumentError for sizes out of range.
  explicit CudnnParamsFormatConverterTanh(const RnnSpec& network);
};
/// Of a plain network with relu.
class OPENRNN_API CudnnParamsFormatConverterRelu : public CudnnParamsFormatConverter {
 public:
  /// Throws: ArgumentError for sizes out of range.
  explicit CudnnParamsFormatConverterRelu(const RnnSpec& network);
};

}  // namespace openrnn
