// tf.contrib.rnn's LSTM cell with layer normalization.
#pragma once

#include "openrnn/cells.h"

namespace openrnn {

/// Constructor arguments of LayerNormBasicLSTMCell.
struct LayerNormBasicLSTMCellOptions {
  std::int64_t num_units = 0;
  /// Joins f after its normalization; in no variable.
  double forget_bias = 1.0;
  /// Of the new memory and of the cell on its way out; empty: tanh.
  CellFunction activation = {};
  /// Without, the cell is BasicLSTMCell with dropout.
  bool layer_norm = true;
  /// Initial values of every gamma and beta.
  double norm_gain = 1.0, norm_shift = 0.0;
  /// Of the new memory, at every call, in (0, 1]: recurrent dropout without memory loss (Semeniuta
  /// et al. 2016).
  double dropout_keep_prob = 1.0;
  std::optional<std::int64_t> dropout_prob_seed = {};
  DType dtype = DType::kFloat32;
  /// Of the kernel; empty: glorot_uniform.
  Initializer kernel_initializer = {};
  std::optional<std::int64_t> seed = {};
  /// The others are those of CompatibleCellOptions.
  std::string name = {};
  const Device* device = nullptr;
  bool reuse = false;
};

/// LSTM with layer normalization of each gate and of the carried cell (Ba et al. 2016), without
/// biases: i, j, f, o = LN of the blocks of [x, h] kernel; c = LN(c' * sigmoid(f + forget_bias) +
/// sigmoid(i) * activation(j)); h = sigmoid(o) * activation(c). LN divides by sqrt(variance +
/// 1e-12), 1e-3 for float16. kernel [I + U, 4U], column blocks i j f o; gamma and beta [U] in
/// input, transform, forget, output and state. With layer_norm false: bias [4U] in their place.
class OPENRNN_API LayerNormBasicLSTMCell : public VariableCell {
 public:
  /// Throws: ArgumentError unless num_units > 0 and dropout_keep_prob is in (0, 1].
  explicit LayerNormBasicLSTMCell(LayerNormBasicLSTMCellOptions options);
  static std::shared_ptr<LayerNormBasicLSTMCell> from_config(LayerNormBasicLSTMCellOptions config);
  LayerNormBasicLSTMCellOptions get_config() const;
  std::vector<std::int64_t> state_size() const override { return {num_units(), num_units()}; }
  std::int64_t output_size() const override { return num_units(); }
  std::shared_ptr<Layer> copy() const override;
  bool is_memory(std::size_t index) const override { return index == 0; }
  /// Of exactly this class, with tanh and without dropout.
  bool is_network() const override;
  CellNetwork network() const override;
  /// Counter of the calls, for checkpoints.
  ops::DropoutState& dropout_state() noexcept { return dropout_; }

 protected:
  void make_variables(std::int64_t input_size) override;
  CellResult step(const Tensor& inputs, const CellState& state) override;

 private:
  /// Of i, j, f, o and the cell.
  static constexpr std::size_t kNorms = 5;
  struct Norm {
    Variable gamma, beta;
  };
  double epsilon() const;
  Tensor normalized(const Tensor& x, const Norm& norm) const;
  Tensor dropped(const Tensor& memory);

  LayerNormBasicLSTMCellOptions options_;
  Variable kernel_, bias_;
  std::array<Norm, kNorms> norms_;
  ops::DropoutState dropout_;
};

}  // namespace openrnn
