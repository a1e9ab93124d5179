// The op-level models CudnnLSTM, CudnnGRU, CudnnRNNTanh and CudnnRNNRelu.
#pragma once

#include "openrnn/graph_symbolic.h"
#include "openrnn/ops_rnn.h"

namespace openrnn::ops {

/// State shared by the calls of one op-level model, also by recorded ones, which may outlive it.
struct CudnnModelState : CallState {
  DropoutState dropout;
  PackedCache cache;
};

/// Options of a call.
struct CudnnCallOptions {
  std::optional<std::vector<std::int32_t>> sequence_lengths = {};
  /// As RnnInputs::lengths.
  Tensor lengths = {};
  /// False: input and output are [B, T, .], states [B, L*D, .]; states as in
  /// layers::RnnCallOptions.
  bool time_major = true;
  /// As RnnInputs::save and recompute.
  bool save = false;
  std::int64_t recompute = 0;
};

/// Base of the four models: sizes, conversion and the call. A call takes any time and batch size,
/// and another input size if params is long enough for it. Calls of one object must not overlap.
/// Without a seed the masks are those of the graph's next one; TensorFlow's models have seed 0 by
/// default.
class OPENRNN_API CudnnRnnModel {
 public:
  /// As given, with the mode of the class.
  const RnnSpec& spec() const noexcept { return spec_; }
  /// As openrnn::math_kind of spec().
  std::string_view math_kind() const;

  /// Elements of the opaque buffer.
  std::int64_t params_size() const;
  /// By layer, direction and slot. Throws: as openrnn::params_to_canonical.
  CanonicalParams params_to_canonical(const Tensor& params) const;
  /// The inverse. Throws: as openrnn::canonical_to_params.
  Tensor canonical_to_params(std::span<const ConstArrayView> weights,
                             std::span<const ConstArrayView> biases) const;
  /// Training calls with dropout so far, for checkpoints.
  DropoutState& dropout_state() noexcept { return kept_->dropout; }

 protected:
  /// Throws: ArgumentError as RnnSpec::validate.
  CudnnRnnModel(std::string call, RnnMode mode, RnnSpec spec);
  RnnOutputs call(RnnInputs inputs, bool is_training, const CudnnCallOptions& options);

 private:
  std::string call_;
  ValidSpec spec_;
  std::shared_ptr<CudnnModelState> kept_;
};

/// Throws, from a call: ArgumentError for input_data that is not 3-D, input_h that is not
/// [L*D, B, O], input_c that is not [L*D, B, U], params too short for this input depth (naming
/// both), or lengths outside 0..T. A gradient through is_training=false is an ArgumentError too.
/// EngineError for a math that this machine lacks, UnsupportedError for gradients with a
/// weights_dtype; then nothing is computed.
class OPENRNN_API CudnnLSTM : public CudnnRnnModel {
 public:
  /// Throws: ArgumentError as RnnSpec::validate.
  explicit CudnnLSTM(const RnnSpec& spec) : CudnnRnnModel("CudnnLSTM", RnnMode::kLstm, spec) {}
  /// (output [T, B, D*O], output_h, output_c).
  RnnOutputs operator()(const Tensor& input_data, const Tensor& input_h, const Tensor& input_c,
                        const Tensor& params, bool is_training = true,
                        const CudnnCallOptions& options = {}) {
    return call({.x = input_data, .h0 = input_h, .c0 = input_c, .params = params}, is_training,
                options);
  }
};

/// The models without a cell state: (output [T, B, D*O], output_h [L*D, B, O]).
template <RnnMode kMode>
class CudnnNoCell : public CudnnRnnModel {
 public:
  /// Throws: ArgumentError as RnnSpec::validate, and for num_proj of a gru, whose c no call takes.
  explicit CudnnNoCell(const RnnSpec& spec) : CudnnRnnModel(kName, kMode, spec) {}
  /// (output [T, B, D*O], output_h).
  RnnOutputs operator()(const Tensor& input_data, const Tensor& input_h, const Tensor& params,
                        bool is_training = true, const CudnnCallOptions& options = {}) {
    return call({.x = input_data, .h0 = input_h, .params = params}, is_training, options);
  }

 private:
  static constexpr const char* kName = kMode == RnnMode::kGru       ? "CudnnGRU"
                                       : kMode == RnnMode::kRnnTanh ? "CudnnRNNTanh"
                                                                    : "CudnnRNNRelu";
};
using CudnnGRU = CudnnNoCell<RnnMode::kGru>;
using CudnnRNNTanh = CudnnNoCell<RnnMode::kRnnTanh>;
using CudnnRNNRelu = CudnnNoCell<RnnMode::kRnnRelu>;

// ---- The same as functions ---------------------------------------------------------------------

/// Options of the functions. Sizes are those of the tensors: input size of `inputs`, layers and
/// units of `input_h` (with a projection `input_h` has its size and `input_c` the units). A
/// function keeps no state, so its dropout masks are those of a model's first call. A refused call
/// uses up no seed of the graph.
struct CudnnFunctionOptions {
  bool is_training = true;
  /// What the tensors do not say: all but mode, sizes and dtype.
  RnnSpec network = {};
  std::optional<std::vector<std::int32_t>> sequence_lengths = {};
  Tensor lengths = {};
  bool time_major = true;
};
/// inputs [T, B, I], input_h [L*D, B, O], input_c [L*D, B, U], params: (output [T, B, D*O], h, c).
/// Throws: as a call of ops::CudnnLSTM.
OPENRNN_API RnnOutputs cudnn_lstm(const Tensor& inputs, const Tensor& input_h,
                                  const Tensor& input_c, const Tensor& params,
                                  const CudnnFunctionOptions& options = {});
/// inputs [T, B, I], input_h [L*D, B, U], params: (output [T, B, D*U], h). Throws: as cudnn_lstm.
OPENRNN_API RnnOutputs cudnn_gru(const Tensor& inputs, const Tensor& input_h, const Tensor& params,
                                 const CudnnFunctionOptions& options = {});
/// As cudnn_gru.
OPENRNN_API RnnOutputs cudnn_rnn_tanh(const Tensor& inputs, const Tensor& input_h,
                                      const Tensor& params,
                                      const CudnnFunctionOptions& options = {});
/// As cudnn_gru.
OPENRNN_API RnnOutputs cudnn_rnn_relu(const Tensor& inputs, const Tensor& input_h,
                                      const Tensor& params,
                                      const CudnnFunctionOptions& options = {});
/// As openrnn::params_size.
OPENRNN_API std::int64_t cudnn_rnn_opaque_params_size(const RnnSpec& spec);
/// As CudnnRnnModel::params_to_canonical.
OPENRNN_API CanonicalParams cudnn_rnn_opaque_params_to_canonical(const RnnSpec& spec,
                                                                 const Tensor& params);
/// As CudnnRnnModel::canonical_to_params.
OPENRNN_API Tensor cudnn_rnn_canonical_to_opaque_params(const RnnSpec& spec,
                                                        std::span<const ConstArrayView> weights,
                                                        std::span<const ConstArrayView> biases);

}  // namespace openrnn::ops
