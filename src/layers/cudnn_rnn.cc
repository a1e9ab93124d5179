#include <cstring>

#include "base/message.h"
#include "openrnn/layers.h"
#include "openrnn/runtime.h"
#include "openrnn/saveables.h"
#include "ops/symbolic/rnn.h"

namespace openrnn::layers {
namespace {

// The bit pattern, so that every int64 seed has its own stream.
std::optional<std::uint64_t> stream_seed(std::optional<std::int64_t> seed) {
  return seed ? std::optional<std::uint64_t>(static_cast<std::uint64_t>(*seed)) : std::nullopt;
}

// Arguments of a recorded call, except tensors.
Attributes attributes_of(const RnnCallOptions& call) {
  Attributes attributes{call.training, call.time_major, call.save, !call.lengths.empty()};
  if (call.sequence_lengths) {
    attributes.emplace_back(
        std::vector<std::int64_t>(call.sequence_lengths->begin(), call.sequence_lengths->end()));
  }
  return attributes;
}

bool has_lengths(const Attributes& recorded) { return std::get<bool>(recorded.at(3)); }

RnnCallOptions options_in(const Attributes& recorded) {
  RnnCallOptions call;
  call.training = std::get<bool>(recorded.at(0));
  call.time_major = std::get<bool>(recorded.at(1));
  call.save = std::get<bool>(recorded.at(2));
  if (recorded.size() > 4) {
    const auto& lengths = std::get<std::vector<std::int64_t>>(recorded[4]);
    call.sequence_lengths.emplace(lengths.begin(), lengths.end());
  }
  return call;
}

const char* class_name(RnnMode mode) {
  switch (mode) {
    case RnnMode::kLstm:
      return "CudnnLSTM";
    case RnnMode::kGru:
      return "CudnnGRU";
    case RnnMode::kRnnTanh:
      return "CudnnRNNTanh";
    default:
      return "CudnnRNNRelu";
  }
}

ValidSpec depth_checked(RnnSpec network, std::int64_t input_size) {
  network.input_size = input_size;
  return network;
}

void check_one_state(const Layer& layer, std::size_t index, const Tensor& given, Shape expected,
                     bool time_major) {
  if (!time_major) std::swap(expected[0], expected[1]);
  const char* const symbol = index == 0 ? "h" : "c";
  if (!shapes_fit(given.shape(), expected)) {
    throw ArgumentError(message("[", layer.name(), "] initial_state[", index, "] (", symbol,
                                ") has shape ", to_string(given.shape()), ", expected ",
                                to_string(expected),
                                time_major ? ", time-major" : ", batch-major"));
  }
  if (given.dtype() != layer.dtype()) {
    throw ArgumentError(message("[", layer.name(), "] initial_state[", index, "] (", symbol,
                                ") is ", dtype_name(given.dtype()), ", expected ",
                                dtype_name(layer.dtype())));
  }
}

}  // namespace

CudnnRnn::CudnnRnn(RnnMode mode, std::string default_name, CudnnRnnOptions options)
    : Layer(options.name, std::move(default_name), options.network.dtype,
            options.network.compute.device),
      options_(std::move(options)) {
  options_.network.mode = mode;
  options_.network.input_size = 0;
  depth_checked(options_.network, options_.network.num_units);  // U suits every input mode
  set_trainable(options_.trainable);
  set_activity_regularizer(options_.activity_regularizer);
}

std::string_view CudnnRnn::math_kind() const {
  return spec_ ? openrnn::math_kind(*spec_, device())
               : openrnn::math_kind(depth_checked(network(), network().num_units), device());
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
  if (!network().is_lstm()) return {network().h_shape(batch_size)};
  return {network().h_shape(batch_size), network().c_shape(batch_size)};
}

void CudnnRnn::require_built(const char* property) const {
  if (spec_) return;
  throw StateError(message("[", class_name(network().mode), "] ", property, " of '", name(),
                           "' before the input shape is known, expected a build or a call before"));
}

std::vector<Shape> CudnnRnn::canonical_weight_shapes() const {
  require_built("canonical_weight_shapes");
  const ParamsLayout layout(*spec_);
  std::vector<Shape> shapes;
  for (const ParamRegion& region : layout.weights()) shapes.push_back(region.shape());
  return shapes;
}

std::vector<Shape> CudnnRnn::canonical_weight_shape(std::int64_t layer) const {
  if (layer < 0 || layer >= network().num_layers) {
    throw ArgumentError(message("[", name(), "] canonical_weight_shape of layer ", layer,
                                ", expected 0 to ", network().num_layers - 1));
  }
  require_built("canonical_weight_shape");
  const ParamsLayout layout(*spec_);
  std::vector<Shape> shapes;
  for (const ParamRegion& region : layout.weights()) {
    if (region.layer == layer) shapes.push_back(region.shape());
  }
  return shapes;
}

std::vector<Shape> CudnnRnn::canonical_bias_shapes() const {
  return std::vector<Shape>(
      static_cast<std::size_t>(2 * network().num_gates() * network().num_pseudo_layers()),
      Shape{network().num_units});
}

Array CudnnRnn::canonical_to_opaque(std::span<const ConstArrayView> weights,
                                    std::span<const ConstArrayView> biases) const {
  require_built("canonical_to_opaque");
  return canonical_to_params(ParamsLayout(*spec_), weights, biases);
}

void CudnnRnn::create_saveable() {
  require_built("create_saveable");
  if (saveable_) {
    throw StateError(
        message("Cudnn saveable already created [", name(), "], expected a layer without"));
  }
  saveable_ = make_cudnn_saveable(
      kernel_,
      {.network = *spec_, .scope = saveable_scope(), .name = kernel_.name() + "_saveable"});
  Graph::current().add_saveable(saveable_);
}

Shape CudnnRnn::compute_output_shape(const Shape& input_shape) const {
  if (input_shape.size() != 3) {
    throw ArgumentError(message("[", name(), "] compute_output_shape of ", to_string(input_shape),
                                ", expected 3 dimensions: [time, batch, depth]"));
  }
  return {input_shape[0], input_shape[1], network().output_size()};
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
  const ValidSpec spec = depth_checked(network(), input_shape.back());
  const ParamsLayout layout(spec);
  VariableOptions variable;
  variable.dtype = dtype();
  variable.seed = stream_seed(network().training.seed);
  variable.initializer = [this, &layout](ArrayView values, RandomStream& random) {
    const std::uint64_t high = random.next_uint32(), low = random.next_uint32();
    const Array params = initialize_params(layout, high << 32 | low, options_.kernel_initializer,
                                           options_.bias_initializer);
    std::memcpy(values.data, params.data(), params.size_bytes());
  };
  kernel_ = add_weight("opaque_kernel", {layout.size()}, variable);
  const std::uint64_t calls = dropout_.calls();
  dropout_ = ops::DropoutState(Graph::current().op_seeds(network().training.seed));
  dropout_.set_calls(calls);
  spec_ = spec;
  set_input_spec({.ndim = 3, .axes = {{-1, spec->input_size}}});
  // Under a reusing scope another layer made the variable, and has its saveable.
  if (!VariableScope::current_reuse()) create_saveable();
}

void CudnnRnn::check_inputs(const Tensor& inputs) const {
  const std::size_t rank = inputs.shape().size();
  if (rank != 3) {
    throw ArgumentError(message("[", name(), "] incompatible layer input: found ndim=", rank,
                                " with shape ", to_string(inputs.shape()), ", expected ndim=3"));
  }
  if (spec_ && !dims_fit(inputs.shape()[2], (*spec_)->input_size)) {
    throw ArgumentError(message("[", name(), "] incompatible layer input: axis -1 of shape ",
                                to_string(inputs.shape()), ", expected axis -1 to have value ",
                                (*spec_)->input_size));
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
                                network().is_lstm() ? ": (h, c)" : ": (h,)"));
  }
  for (std::size_t i = 0; i < state.size(); ++i) {
    check_one_state(*this, i, state[i], shapes[i], time_major);
  }
}

void CudnnRnn::check_lengths(const Shape& inputs, const RnnCallOptions& call) const {
  const bool known = !call.lengths.empty() && !call.lengths.is_symbolic();
  if (!call.sequence_lengths && !known) return;
  const std::int64_t max_time = inputs[call.time_major ? 0 : 1];
  const std::int64_t batch = inputs[call.time_major ? 1 : 0];
  const std::vector<std::int32_t> lengths =
      known ? *ops::lengths_of(name(), call.lengths) : *call.sequence_lengths;
  if (batch >= 0 && static_cast<std::int64_t>(lengths.size()) != batch) {
    throw ArgumentError(message("[", name(), "] sequence_lengths has ", lengths.size(),
                                " elements, expected ", batch, ", one a row of the batch"));
  }
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    if (lengths[row] >= 0 && (max_time < 0 || lengths[row] <= max_time)) continue;
    throw ArgumentError(message("[", name(), "] sequence_lengths[", row, "] is ", lengths[row],
                                ", expected 0 to ", max_time < 0 ? "max_time" : message(max_time)));
  }
}

// `given` is the input, then the initial state if there is one.
ops::RnnOutputs CudnnRnn::compute(const std::vector<Tensor>& given, const RnnCallOptions& call,
                                  const Tensor& lengths) {
  ops::RnnInputs in{.x = given[0], .params = kernel_.read(), .call = name()};
  if (given.size() > 1) in.h0 = given[1];
  if (given.size() > 2) in.c0 = given[2];
  in.sequence_lengths = call.sequence_lengths;
  in.lengths = lengths;
  in.time_major = call.time_major;
  in.training = call.training;
  in.save = call.save;
  in.every = call.every;
  if (call.training && network().training.dropout > 0.0) in.dropout = dropout_.next();
  return ops::rnn(*spec_, in, &cache_);
}

std::vector<Tensor> CudnnRnn::compute_call(const Attributes& recorded,
                                           const std::vector<Tensor>& inputs,
                                           const Replay& replay) {
  RnnCallOptions call = options_in(recorded);
  call.training = replay.training.value_or(call.training);
  std::vector<Tensor> values = inputs;
  Tensor lengths;
  if (has_lengths(recorded)) {
    lengths = std::move(values.back());
    values.pop_back();
  }
  for (std::size_t i = 1; i < values.size(); ++i) {
    values[i] = ops::state_as(values[i], call.time_major);
  }
  check_state(std::vector<Tensor>(values.begin() + 1, values.end()),
              values[0].shape()[call.time_major ? 1 : 0], call.time_major);
  ops::RnnOutputs out = compute(values, call, lengths);
  std::vector<Tensor> results{std::move(out.output), std::move(out.h)};
  if (network().is_lstm()) results.push_back(std::move(out.c));
  return results;
}

RnnResult CudnnRnn::record(const std::vector<Tensor>& given, const RnnCallOptions& call) {
  if (call.every) {
    throw UnsupportedError(message("[", name(), "] every layer's outputs of a symbolic call, ",
                                   "expected values: ask when there are some"));
  }
  // The lengths come last, so that a model can be given other ones.
  std::vector<Tensor> inputs = given;
  if (!call.lengths.empty()) inputs.push_back(call.lengths);
  std::vector<Tensor> made = record_node(
      inputs, ops::rnn_specs(*spec_, given[0].shape(), call.time_major), {attributes_of(call)});
  const StateLayout layout = call.time_major ? StateLayout::kTimeMajor : StateLayout::kBatchMajor;
  RnnResult result{.output = std::move(made[0])};
  for (std::size_t i = 1; i < made.size(); ++i) {
    result.state.push_back(std::move(made[i]).with_state_layout(layout));
  }
  return result;
}

RnnResult CudnnRnn::operator()(const Tensor& inputs, const std::vector<Tensor>& initial_state,
                               const RnnCallOptions& call) {
  check_inputs(inputs);
  std::vector<Tensor> given{inputs};
  for (const Tensor& state : initial_state) {
    given.push_back(ops::state_as(state, call.time_major));
  }
  check_state({given.begin() + 1, given.end()}, inputs.shape()[call.time_major ? 1 : 0],
              call.time_major);
  const bool symbolic = any_symbolic(given) || call.lengths.is_symbolic();
  // Else the operation does; what is to be recorded or built is refused before.
  if (symbolic || !built()) check_lengths(inputs.shape(), call);
  // Before variables are made, so that missing arithmetic leaves no variables.
  if (!built() && network().compute.math != Math::kFloat32) math_kind();
  ensure_built(inputs.shape(), call.scope);
  require_class_build();
  begin_call(given);
  RnnResult result;
  if (symbolic) {
    result = record(given, call);
  } else {
    ops::RnnOutputs out = compute(given, call, call.lengths);
    result = {std::move(out.output),
              {std::move(out.h)},
              std::move(out.layer_outputs),
              std::move(out.layer_cells)};
    if (network().is_lstm()) result.state.push_back(std::move(out.c));
  }
  if (activity_regularizer()) {
    std::vector<Tensor> outputs{result.output};
    outputs.insert(outputs.end(), result.state.begin(), result.state.end());
    end_call(given, outputs);
  }
  return result;
}

CudnnRnnOptions CudnnRnn::get_config() const {
  CudnnRnnOptions config = options_;
  config.name = name();
  config.trainable = trainable();
  config.activity_regularizer = activity_regularizer();
  return config;
}

std::shared_ptr<CudnnLSTM> CudnnLSTM::from_config(CudnnRnnOptions config) {
  return std::make_shared<CudnnLSTM>(std::move(config));
}

std::shared_ptr<CudnnGRU> CudnnGRU::from_config(CudnnRnnOptions config) {
  return std::make_shared<CudnnGRU>(std::move(config));
}

std::shared_ptr<CudnnRNNTanh> CudnnRNNTanh::from_config(CudnnRnnOptions config) {
  return std::make_shared<CudnnRNNTanh>(std::move(config));
}

std::shared_ptr<CudnnRNNRelu> CudnnRNNRelu::from_config(CudnnRnnOptions config) {
  return std::make_shared<CudnnRNNRelu>(std::move(config));
}

std::shared_ptr<CudnnRnn> CudnnRnn::clone() const {
  std::shared_ptr<CudnnRnn> copy = make_cudnn_rnn(options_);
  copy->copy_layer(*this);
  copy->spec_ = spec_;
  copy->kernel_ = kernel_;
  copy->saveable_ = saveable_;
  copy->dropout_ = dropout_;
  return copy;
}

std::shared_ptr<CudnnRnn> CudnnRnn::with_arithmetic(Math math, WeightsDType weights_dtype) const {
  require_built("with_arithmetic");
  RnnSpec network = *spec_;
  network.compute.math = math;
  network.compute.weights_dtype = weights_dtype;
  const ValidSpec spec = network;
  std::shared_ptr<CudnnRnn> copy = clone();
  copy->options_.network.compute = network.compute;
  copy->spec_ = spec;
  return copy;
}

CudnnLSTM::CudnnLSTM(CudnnRnnOptions options)
    : CudnnRnn(RnnMode::kLstm, "cudnn_lstm", std::move(options)) {}
CudnnGRU::CudnnGRU(CudnnRnnOptions options)
    : CudnnRnn(RnnMode::kGru, "cudnn_gru", std::move(options)) {}
CudnnRNNTanh::CudnnRNNTanh(CudnnRnnOptions options)
    : CudnnRnn(RnnMode::kRnnTanh, "cudnn_rnn_tanh", std::move(options)) {}
CudnnRNNRelu::CudnnRNNRelu(CudnnRnnOptions options)
    : CudnnRnn(RnnMode::kRnnRelu, "cudnn_rnn_relu", std::move(options)) {}

std::unique_ptr<CudnnRnn> make_cudnn_rnn(CudnnRnnOptions options) {
  switch (options.network.mode) {
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
