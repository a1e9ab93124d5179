// The opaque parameter buffer: its layout, its canonical form and its initializers.
#pragma once

#include <functional>
#include <utility>

#include "openrnn/spec.h"

namespace openrnn {

/// What one region of the opaque buffer is.
enum class ParamRole : std::uint8_t {
  kInputWeight,      // W, [U, in_l]; empty at layer 0 under skip_input
  kRecurrentWeight,  // R, [U, O]
  kProjection,       // Wp, [P, U]
  kInputBias,        // bW, [U]
  kRecurrentBias,    // bR, [U]
  kPeephole,         // p, [U]; of i, f and o
  kInputGain,        // gW, [U]; of layer_norm of products
  kRecurrentGain,    // gR, [U]
  kSumGain,          // g, [U]; of layer_norm of gates
  kCellGain,         // gC, [U]; of layer_norm_cell
  kCellBias,         // bC, [U]
};

/// One matrix (row-major) or vector inside the opaque buffer.
struct OPENRNN_API ParamRegion {
  ParamRole role = ParamRole::kInputWeight;
  std::int64_t layer = 0;
  std::int64_t direction = 0;  // 0 forward, 1 backward
  /// cuDNN's linLayerID: input slots, then recurrent slots, then the projection; peepholes follow,
  /// then gains of the input's side or of sums, of the recurrent side, and the cell's gain and
  /// bias.
  std::int64_t slot = 0;
  /// Index of the gate in gates_of(mode); 0 for the projection and the cell.
  std::int64_t gate = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;  // 1 for a vector
  /// Elements from the start of the buffer.
  std::int64_t offset = 0;
  /// "l0_fwd/W_i", "l1_bwd/bR_o", "l0_fwd/Wp", "l0_fwd/p_i", "l0_fwd/gW_i", "l0_fwd/gC".
  std::string name;

  bool is_bias() const {
    return role == ParamRole::kInputBias || role == ParamRole::kRecurrentBias;
  }
  bool is_gain() const {
    return role == ParamRole::kInputGain || role == ParamRole::kRecurrentGain ||
           role == ParamRole::kSumGain || role == ParamRole::kCellGain;
  }
  bool is_vector() const {
    return is_bias() || is_gain() || role == ParamRole::kPeephole || role == ParamRole::kCellBias;
  }
  std::int64_t size() const { return rows * cols; }
  /// [U] for a vector, else [rows, cols].
  Shape shape() const { return is_vector() ? Shape{rows} : Shape{rows, cols}; }
};

/// The layout of the opaque buffer as data: all weights, then all biases, then all peepholes, then
/// all gains of gates, then all gains and biases of cells, each by layer, direction and slot,
/// without gaps. Every reader, writer and packer walks these lists.
/// Without options that cuDNN lacks it is the layout that cuDNN 5 to 9 use.
class OPENRNN_API ParamsLayout {
 public:
  /// Throws: ArgumentError as RnnSpec::validate.
  explicit ParamsLayout(const ValidSpec& spec);

  const RnnSpec& spec() const noexcept { return spec_; }
  /// Elements of the whole buffer.
  std::int64_t size() const noexcept { return size_; }
  /// In buffer order. An absent input matrix (skip_input) is listed with cols 0.
  std::span<const ParamRegion> weights() const noexcept { return weights_; }
  /// All vectors: the biases, then the peepholes, then what layer normalization has.
  std::span<const ParamRegion> biases() const noexcept { return biases_; }

  /// The region of one gate. Throws: ArgumentError when there is none.
  const ParamRegion& weight(std::int64_t layer, std::int64_t direction, ParamRole role,
                            std::int64_t gate) const;
  const ParamRegion& bias(std::int64_t layer, std::int64_t direction, ParamRole role,
                          std::int64_t gate) const;

 private:
  RnnSpec spec_;
  std::vector<ParamRegion> weights_, biases_;
  std::int64_t size_ = 0;
};

/// Elements of the opaque buffer: weights sum_l D*G*U*(in_l + O) (+ L*D*P*U), biases L*D*2*G*U (or
/// one a gate, or none), peepholes L*D*3*U, gains L*D*2*G*U of products or L*D*G*U of gates, and
/// L*D*2*U of cells.
/// Throws: ArgumentError as RnnSpec::validate.
OPENRNN_API std::int64_t params_size(const ValidSpec& spec);
inline std::int64_t params_size(const RnnSpec& spec) { return params_size(ValidSpec(spec)); }

/// The buffer as lists of matrices and vectors, as ParamsLayout has them.
struct CanonicalParams {
  std::vector<Array> weights;  // [U, in_l], [U, O], [P, U]
  std::vector<Array> biases;   // [U], with the peepholes and what follows behind them
};

/// Splits a buffer of the layout's shape (parameters, gradients, optimizer slots) into its
/// canonical form; bit-exact. A longer buffer is accepted; its tail is ignored. Throws:
/// ArgumentError for a buffer that is not 1-D or is too short, naming both sizes.
OPENRNN_API CanonicalParams params_to_canonical(const ParamsLayout& layout,
                                                const ConstArrayView& params);

/// The inverse; each tensor is consumed flat, so any shape with the right number of elements will
/// do.
/// Throws: ArgumentError for a wrong count, size or dtype, naming the tensor, given and expected.
OPENRNN_API Array canonical_to_params(const ParamsLayout& layout,
                                      std::span<const ConstArrayView> weights,
                                      std::span<const ConstArrayView> biases);

/// Throws: ArgumentError unless `params` is 1-D, of the spec's dtype, at least `expected` long and
/// not null.
OPENRNN_API void check_params(std::string_view call, const RnnSpec& spec,
                              const ConstArrayView& params, std::int64_t expected);
/// The same, but throws for a longer buffer too, such as that of a deeper network.
OPENRNN_API void check_exact_params(std::string_view call, const RnnSpec& spec,
                                    const ConstArrayView& params, std::int64_t expected);

/// The canonical form of a buffer with the layout of the parameters that holds something else (a
/// gradient, a moment of Adam, a momentum). Its floating dtype may be another one, such as float32
/// with parameters of 16 bits. The two biases stay separate; bit-exact. Throws: as check_slots.
OPENRNN_API CanonicalParams slots_to_canonical(const ParamsLayout& layout,
                                               const ConstArrayView& slots);
/// The inverse, in the dtype of the first weight. Throws: as canonical_to_params.
OPENRNN_API Array canonical_to_slots(const ParamsLayout& layout,
                                     std::span<const ConstArrayView> weights,
                                     std::span<const ConstArrayView> biases);
/// Throws ArgumentError unless `slots` is 1-D, of a floating dtype and at least `expected` long.
OPENRNN_API void check_slots(std::string_view call, const RnnSpec& spec,
                             const ConstArrayView& slots, std::int64_t expected);

// ---- Initializers ------------------------------------------------------------------------------

/// Fills `values`, [rows, cols] or [size], from its own stream; only the constant takes integers.
using Initializer = std::function<void(ArrayView values, RandomStream& random)>;

/// Every element `value`; ArgumentError for an integer dtype without it. Default of biases, with 0.
OPENRNN_API Initializer constant_initializer(double value);
/// Uniform within sqrt(6 / (rows + cols)) (Glorot and Bengio 2010). Default of matrices.
OPENRNN_API Initializer glorot_uniform_initializer();
/// Normal with variance 2 / (rows + cols), not truncated.
OPENRNN_API Initializer glorot_normal_initializer();
OPENRNN_API Initializer random_uniform_initializer(double low = -0.05, double high = 0.05);
OPENRNN_API Initializer random_normal_initializer(double mean = 0.0, double stddev = 0.05);
/// A random orthogonal matrix: Gram-Schmidt over rows or columns, whichever are fewer, times gain
/// (Saxe et al. 2013).
OPENRNN_API Initializer orthogonal_initializer(double gain = 1.0);

/// A new buffer: `kernel` on each canonical matrix and peephole, `bias` on each canonical bias,
/// each with its own random stream of `seed`. An empty Initializer means the default. Gains of
/// layer normalization are 1, the biases of its cells 0.
OPENRNN_API Array initialize_params(const ParamsLayout& layout, std::uint64_t seed,
                                    const Initializer& kernel = {}, const Initializer& bias = {});

}  // namespace openrnn
