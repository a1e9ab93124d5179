#include <cstring>

#include "base/message.h"
#include "openrnn/layers.h"
#include "openrnn/saveables.h"

namespace openrnn::layers {
namespace {

// A bit pattern, so that every seed of an int64 has a stream of its own.
std::optional<std::uint64_t> stream_seed(std::optional<std::int64_t> seed) {
  return seed ? std::optional<std::uint64_t>(static_cast<std::uint64_t>(*seed)) : std::nullopt;
}

void check_one_state(const Layer& layer, std::size_t index, const Tensor& given, Shape expected,
                     bool time_major) {
  if (!time_major) std::swap(expected[0], expected[1]);
  const char* const symbol = index == 0 ? "h" : "c";
  if (given.shape() != expected) {
    throw ArgumentError(message("[", layer.name(), "] initial_state[", index, "] (", symbol,
                                ") has shape ", to_string(given.shape()), ", expected ",
                                to_string(expected)));
  }
  if (given.dtype() != layer.dtype()) {
    throw ArgumentError(message("[", layer.name(), "] initial_state[", index, "] (", symbol,
                                ") is ", dtype_name(given.dtype()), ", expected ",
                                dtype_name(layer.dtype())));
  }
}

}  // namespace

CudnnRnn::CudnnRnn(RnnMode mode, std::string default_name, CudnnRnnOptions options)
    : Layer(options.name, std::move(default_name), options.dtype),
      mode_(mode),
      options_(std::move(options)) {
  spec_for(options_.num_units).validate();  // a depth of U suits every input mode
}

RnnSpec CudnnRnn::spec_for(std::int64_t input_size) const {
  return {.mode = mode_,
          .num_layers = options_.num_layers,
          .num_units = options_.num_units,
          .input_size = input_size,
          .input_mode = options_.input_mode,
          .direction = options_.direction,
          .dtype = options_.dtype,
          .dropout = options_.dropout,
          .num_proj = options_.num_proj,
          .cell_clip = {}};
}

const RnnSpec& CudnnRnn::spec() const {
  if (!spec_) {
    throw ArgumentError(message("[", name(),
                                "] the input size is unknown since the layer has not been built, "
                                "expected a build or a call before"));
  }
  return *spec_;
}

std::int64_t CudnnRnn::input_size() const { return spec().input_size; }

const Variable& CudnnRnn::kernel() const { return (void)spec(), kernel_; }

std::vector<Shape> CudnnRnn::state_shape(std::int64_t batch_size) const {
  const RnnSpec spec = spec_for(options_.num_units);
  if (mode_ != RnnMode::kLstm) return {spec.h_shape(batch_size)};
  return {spec.h_shape(batch_size), spec.c_shape(batch_size)};
}

std::vector<Shape> CudnnRnn::canonical_weight_shapes() const {
  if (!spec_) {
    throw StateError(message("[", name(), "] canonical_weight_shapes before the input shape is ",
                             "known, expected a build or a call before"));
  }
  const ParamsLayout layout(*spec_);
  std::vector<Shape> shapes;
  for (const ParamRegion& region : layout.weights()) shapes.push_back(region.shape());
  return shapes;
}

std::vector<Shape> CudnnRnn::canonical_bias_shapes() const {
  const RnnSpec spec = spec_for(options_.num_units);
  return std::vector<Shape>(
      static_cast<std::size_t>(2 * spec.num_gates() * spec.num_pseudo_layers()),
      Shape{options_.num_units});
}

void CudnnRnn::do_build(const Shape& input_shape) {
  if (input_shape.size() != 3) {
    throw ArgumentError(message("[", name(), "] an input shape of ", input_shape.size(),
                                " dimensions ", to_string(input_shape),
                                ", expected 3: [time, batch, depth]"));
  }
  if (input_shape.back() < 0) {
    throw ArgumentError(message("[", name(), "] the last dimension of the input shape ",
                                to_string(input_shape), " is unknown, expected it to be defined"));
  }
  const RnnSpec spec = spec_for(input_shape.back());
  const ParamsLayout layout(spec);
  VariableOptions variable;
  variable.dtype = dtype();
  variable.seed = stream_seed(options_.seed);
  variable.initializer = [this, &layout](ArrayView values, RandomStream& random) {
    const std::uint64_t high = random.next_uint32(), low = random.next_uint32();
    const Array params = initialize_params(layout, high << 32 | low, options_.kernel_initializer,
                                           options_.bias_initializer);
    std::memcpy(values.data, params.data(), params.size_bytes());
  };
  kernel_ = add_weight("opaque_kernel", {layout.size()}, variable);
  const std::uint64_t calls = dropout_.calls();
  dropout_ = ops::DropoutState(Graph::current().op_seeds(options_.seed));
  dropout_.set_calls(calls);
  // Under a reusing scope another layer made the variable, and has its saveable.
  if (!VariableScope::current_reuse()) {
    saveable_ = make_cudnn_saveable(mode_, kernel_,
                                    {.num_layers = spec.num_layers,
                                     .num_units = spec.num_units,
                                     .input_size = spec.input_size,
                                     .input_mode = spec.input_mode,
                                     .direction = spec.direction,
                                     .scope = saveable_scope(),
                                     .name = kernel_.name() + "_saveable",
                                     .num_proj = spec.num_proj});
    Graph::current().add_saveable(saveable_);
  }
  spec_ = spec;
}

void CudnnRnn::check_inputs(const Tensor& inputs) const {
  const std::size_t rank = inputs.shape().size();
  if (rank != 3) {
    throw ArgumentError(message("[", name(), "] incompatible layer input: found ndim=", rank,
                                " with shape ", to_string(inputs.shape()), ", expected ndim=3"));
  }
  if (spec_ && inputs.shape()[2] != spec_->input_size) {
    throw ArgumentError(message("[", name(), "] incompatible layer input: axis -1 of shape ",
                                to_string(inputs.shape()), ", expected axis -1 to have value ",
                                spec_->input_size));
  }
  if (inputs.dtype() != dtype()) {
    throw ArgumentError(message("[", name(), "] inputs are ", dtype_name(inputs.dtype()),
                                ", expected ", dtype_name(dtype())));
  }
}

void CudnnRnn::check_state(const std::vector<Tensor>& state, std::int64_t batch,
                           bool time_major) const {
  if (state.empty()) return;
  const std::vector<Shape> shapes = state_shape(batch);
  if (state.size() != shapes.size()) {
    throw ArgumentError(message("[", name(), "] an initial_state of ", state.size(),
                                " tensors, expected ", shapes.size(),
                                mode_ == RnnMode::kLstm ? ": (h, c)" : ": (h,)"));
  }
  for (std::size_t i = 0; i < state.size(); ++i) {
    check_one_state(*this, i, state[i], shapes[i], time_major);
  }
}

RnnResult CudnnRnn::operator()(const Tensor& inputs, const std::vector<Tensor>& initial_state,
                               const RnnCallOptions& call) {
  check_inputs(inputs);
  ensure_built(inputs.shape());
  check_state(initial_state, inputs.shape()[call.time_major ? 1 : 0], call.time_major);
  ops::RnnInputs given{.x = inputs, .params = kernel_.read()};
  if (!initial_state.empty()) given.h0 = initial_state[0];
  if (initial_state.size() == 2) given.c0 = initial_state[1];
  given.sequence_lengths = call.sequence_lengths;
  given.time_major = call.time_major;
  given.training = call.training;
  given.save = call.save;
  if (call.training && options_.dropout > 0.0) given.dropout = dropout_.next();
  ops::RnnOutputs result = ops::rnn(*spec_, given, &cache_);
  RnnResult out{std::move(result.output), {std::move(result.h)}};
  if (mode_ == RnnMode::kLstm) out.state.push_back(std::move(result.c));
  return out;
}

CudnnLSTM::CudnnLSTM(CudnnRnnOptions options)
    : CudnnRnn(RnnMode::kLstm, "cudnn_lstm", std::move(options)) {}
CudnnGRU::CudnnGRU(CudnnRnnOptions options)
    : CudnnRnn(RnnMode::kGru, "cudnn_gru", std::move(options)) {}
CudnnRNNTanh::CudnnRNNTanh(CudnnRnnOptions options)
    : CudnnRnn(RnnMode::kRnnTanh, "cudnn_rnn_tanh", std::move(options)) {}
CudnnRNNRelu::CudnnRNNRelu(CudnnRnnOptions options)
    : CudnnRnn(RnnMode::kRnnRelu, "cudnn_rnn_relu", std::move(options)) {}

std::unique_ptr<CudnnRnn> make_cudnn_rnn(RnnMode mode, CudnnRnnOptions options) {
  switch (mode) {
    case RnnMode::kLstm:
      return std::make_unique<CudnnLSTM>(std::move(options));
    case RnnMode::kGru:
      return std::make_unique<CudnnGRU>(std::move(options));
    case RnnMode::kRnnTanh:
      return std::make_unique<CudnnRNNTanh>(std::move(options));
    default:
      return std::make_unique<CudnnRNNRelu>(std::move(options));
  }
}

}  // namespace openrnn::layers
