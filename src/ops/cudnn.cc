#include "openrnn/ops_cudnn.h"
#include "openrnn/runtime.h"
#include "ops/support/support.h"
#include "ops/symbolic/rnn.h"

namespace openrnn::ops {
namespace {

RnnSpec spec_of(RnnMode mode, const CudnnRnnOptions& options) {
  RnnSpec spec{.mode = mode,
               .num_layers = options.num_layers,
               .num_units = options.num_units,
               .input_size = options.input_size,
               .input_mode = options.input_mode,
               .direction = options.direction,
               .dtype = options.dtype,
               .dropout = options.dropout,
               .num_proj = options.num_proj,
               .cell_clip = {},
               .math = options.math,
               .weights_dtype = options.weights_dtype};
  spec.validate();
  return spec;
}

Tensor canonical_to_tensor(const RnnSpec& spec, const Device* device,
                           std::span<const ConstArrayView> weights,
                           std::span<const ConstArrayView> biases) {
  const Array params = openrnn::canonical_to_params(ParamsLayout(spec), weights, biases);
  return device ? Tensor(params.view(), *device) : Tensor(params.view());
}

// Host data of a model's call goes to the model's device; what was placed has to lie there.
void place(const Device* device, RnnInputs& in) {
  if (!device) return;
  for (Tensor* tensor : {&in.x, &in.h0, &in.c0, &in.params}) {
    if (tensor->empty()) continue;
    if (tensor->placed() && &tensor->device() != device) {
      throw ArgumentError(message("[", in.call, "] one input lies on ", tensor->device().name(),
                                  ", expected ", device->name(),
                                  ", the device of the model: to() copies a tensor to another"));
    }
    *tensor = tensor->to(*device);
  }
}

// A state or an input of three dimensions.
void require_rank3(std::string_view call, std::string_view name, const Tensor& tensor) {
  require_floating(call, name, tensor);
  if (tensor.shape().size() == 3) return;
  throw ArgumentError(message("[", call, "] ", name, " has shape ", to_string(tensor.shape()),
                              ", expected 3 dimensions"));
}

struct FunctionInputs {
  std::string call;
  RnnMode mode;
  const Tensor& x;
  Tensor h, c;
  const Tensor& params;
};

RnnOutputs run_function(FunctionInputs in, const CudnnFunctionOptions& options) {
  require_rank3(in.call, "inputs", in.x);
  require_rank3(in.call, "input_h", in.h);
  if (in.mode == RnnMode::kLstm) require_rank3(in.call, "input_c", in.c);
  in.h = state_as(in.h, options.time_major);
  in.c = state_as(in.c, options.time_major);
  const std::int64_t dirs = options.direction == Direction::kBidirectional ? 2 : 1;
  const std::int64_t states = in.h.shape()[options.time_major ? 0 : 1];
  if (states % dirs != 0 || states == 0) {
    throw ArgumentError(message("[", in.call, "] input_h has shape ", to_string(in.h.shape()),
                                ", expected a multiple of ", dirs, " states"));
  }
  const std::int64_t hidden = in.h.shape()[2];
  const std::int64_t units = in.mode == RnnMode::kLstm ? in.c.shape()[2] : hidden;
  RnnSpec spec = spec_of(in.mode, {.num_layers = states / dirs,
                                   .num_units = units,
                                   .input_size = in.x.shape()[2],
                                   .input_mode = options.input_mode,
                                   .direction = options.direction,
                                   .dtype = in.x.dtype(),
                                   .dropout = options.dropout,
                                   .num_proj = hidden == units ? 0 : hidden,
                                   .math = options.math,
                                   .weights_dtype = options.weights_dtype});
  DropoutState dropout(Graph::current().op_seeds(options.seed));
  spec.seed = dropout.seed();
  return rnn(spec,
             {.x = in.x,
              .h0 = in.h,
              .c0 = in.c,
              .params = in.params,
              .sequence_lengths = options.sequence_lengths,
              .lengths = options.lengths,
              .time_major = options.time_major,
              .training = options.is_training,
              .dropout = dropout.next(),
              .call = in.call},
             nullptr);
}

}  // namespace

RnnOutputs run_model(const RnnSpec& spec, RnnInputs given, const ModelOfCall& model) {
  place(model.device, given);
  if (!model.state) return rnn(spec, given, nullptr);
  if (given.training) given.dropout = model.state->dropout.next();
  return rnn(spec, given, &model.state->cache);
}

CudnnRnnModel::CudnnRnnModel(std::string call, RnnMode mode, const CudnnRnnOptions& options)
    : call_(std::move(call)),
      mode_(mode),
      options_(options),
      kept_(std::make_shared<CudnnModelState>()) {
  spec_of(mode, options);
  kept_->dropout = DropoutState(Graph::current().op_seeds(options.seed));
}

RnnSpec CudnnRnnModel::spec_for(std::int64_t input_size) const {
  CudnnRnnOptions options = options_;
  options.input_size = input_size;
  RnnSpec spec = spec_of(mode_, options);
  spec.seed = kept_->dropout.seed();
  return spec;
}

std::string_view CudnnRnnModel::math_kind() const {
  return openrnn::math_kind(spec(), options_.device ? *options_.device : default_device());
}

std::int64_t CudnnRnnModel::params_size() const { return openrnn::params_size(spec()); }

CanonicalParams CudnnRnnModel::params_to_canonical(const Tensor& params) const {
  return openrnn::params_to_canonical(ParamsLayout(spec()), params.to_host().view());
}

Tensor CudnnRnnModel::canonical_to_params(std::span<const ConstArrayView> weights,
                                          std::span<const ConstArrayView> biases) const {
  return canonical_to_tensor(spec(), options_.device, weights, biases);
}

RnnOutputs CudnnRnnModel::call(RnnInputs inputs, bool is_training,
                               const CudnnCallOptions& options) {
  require_rank3(call_, "input_data", inputs.x);
  require_rank3(call_, "input_h", inputs.h0);
  if (mode_ == RnnMode::kLstm) require_rank3(call_, "input_c", inputs.c0);
  inputs.h0 = state_as(inputs.h0, options.time_major);
  inputs.c0 = state_as(inputs.c0, options.time_major);
  inputs.sequence_lengths = options.sequence_lengths;
  inputs.lengths = options.lengths;
  inputs.time_major = options.time_major;
  inputs.training = is_training;
  inputs.call = call_;
  const RnnSpec spec = spec_for(inputs.x.shape()[2]);
  if (is_symbolic(inputs)) return defer_rnn(spec, inputs, {options_.device, kept_});
  return run_model(spec, std::move(inputs), {options_.device, kept_});
}

RnnOutputs cudnn_lstm(const Tensor& inputs, const Tensor& input_h, const Tensor& input_c,
                      const Tensor& params, const CudnnFunctionOptions& options) {
  return run_function({"cudnn_lstm", RnnMode::kLstm, inputs, input_h, input_c, params}, options);
}

RnnOutputs cudnn_gru(const Tensor& inputs, const Tensor& input_h, const Tensor& params,
                     const CudnnFunctionOptions& options) {
  return run_function({"cudnn_gru", RnnMode::kGru, inputs, input_h, Tensor(), params}, options);
}

RnnOutputs cudnn_rnn_tanh(const Tensor& inputs, const Tensor& input_h, const Tensor& params,
                          const CudnnFunctionOptions& options) {
  return run_function({"cudnn_rnn_tanh", RnnMode::kRnnTanh, inputs, input_h, Tensor(), params},
                      options);
}

RnnOutputs cudnn_rnn_relu(const Tensor& inputs, const Tensor& input_h, const Tensor& params,
                          const CudnnFunctionOptions& options) {
  return run_function({"cudnn_rnn_relu", RnnMode::kRnnRelu, inputs, input_h, Tensor(), params},
                      options);
}

std::int64_t cudnn_rnn_opaque_params_size(RnnMode mode, const CudnnRnnOptions& options) {
  return openrnn::params_size(spec_of(mode, options));
}

CanonicalParams cudnn_rnn_opaque_params_to_canonical(RnnMode mode, const CudnnRnnOptions& options,
                                                     const Tensor& params) {
  return openrnn::params_to_canonical(ParamsLayout(spec_of(mode, options)),
                                      params.to_host().view());
}

Tensor cudnn_rnn_canonical_to_opaque_params(RnnMode mode, const CudnnRnnOptions& options,
                                            std::span<const ConstArrayView> weights,
                                            std::span<const ConstArrayView> biases) {
  return canonical_to_tensor(spec_of(mode, options), options.device, weights, biases);
}

}  // namespace openrnn::ops
