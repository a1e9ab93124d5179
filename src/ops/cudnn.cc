#include "openrnn/ops_cudnn.h"
#include "openrnn/runtime.h"
#include "ops/support/support.h"
#include "ops/symbolic/rnn.h"

namespace openrnn::ops {
namespace {

RnnSpec of_mode(RnnMode mode, RnnSpec spec) {
  spec.mode = mode;
  return spec;
}

Tensor canonical_to_tensor(const ValidSpec& spec, std::span<const ConstArrayView> weights,
                           std::span<const ConstArrayView> biases) {
  const Array params = openrnn::canonical_to_params(ParamsLayout(spec), weights, biases);
  const Device* const device = spec->compute.device;
  return device ? Tensor(params.view(), *device) : Tensor(params.view());
}

// Host data of a model's call is copied to the model's device; placed tensors must be there.
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
  RnnSpec spec = of_mode(in.mode, options.network);
  const std::int64_t dirs = spec.num_dirs();
  const std::int64_t states = in.h.shape()[options.time_major ? 0 : 1];
  if (states % dirs != 0 || states == 0) {
    throw ArgumentError(message("[", in.call, "] input_h has shape ", to_string(in.h.shape()),
                                ", expected a multiple of ", dirs, " states"));
  }
  const std::int64_t hidden = in.h.shape()[2];
  spec.num_layers = states / dirs;
  spec.num_units = in.mode == RnnMode::kLstm ? in.c.shape()[2] : hidden;
  spec.num_proj = hidden == spec.num_units ? 0 : hidden;
  spec.input_size = in.x.shape()[2];
  spec.dtype = in.x.dtype();
  const auto first_key = [seed = spec.training.seed] {
    return DropoutState(Graph::current().op_seeds(seed)).next();
  };
  return rnn(spec,
             {.x = in.x,
              .h0 = in.h,
              .c0 = in.c,
              .params = in.params,
              .sequence_lengths = options.sequence_lengths,
              .lengths = options.lengths,
              .time_major = options.time_major,
              .training = options.is_training,
              .next_dropout = first_key,
              .call = in.call},
             nullptr);
}

}  // namespace

RnnOutputs run_model(const ValidSpec& spec, RnnInputs given, const ModelOfCall& model) {
  place(model.device, given);
  if (!model.state) return rnn(spec, given, nullptr);
  if (given.training) given.next_dropout = [&state = *model.state] { return state.dropout.next(); };
  return rnn(spec, given, &model.state->cache);
}

CudnnRnnModel::CudnnRnnModel(std::string call, RnnMode mode, RnnSpec spec)
    : call_(std::move(call)),
      spec_(of_mode(mode, spec)),
      kept_(std::make_shared<CudnnModelState>()) {
  if (spec_->has_cell() && !spec_->is_lstm()) {
    throw ArgumentError(message("[", call_, "] num_proj is ", spec_->num_proj,
                                ", expected 0: with a projection a gru has a second state, which ",
                                "only layers::CudnnGRU and ops::rnn take"));
  }
  kept_->dropout = DropoutState(Graph::current().op_seeds(spec_->training.seed));
}

std::string_view CudnnRnnModel::math_kind() const {
  const Device* const device = spec_->compute.device;
  return openrnn::math_kind(spec_, device ? *device : default_device());
}

std::int64_t CudnnRnnModel::params_size() const { return openrnn::params_size(spec_); }

CanonicalParams CudnnRnnModel::params_to_canonical(const Tensor& params) const {
  return openrnn::params_to_canonical(ParamsLayout(spec_), params.to_host().view());
}

Tensor CudnnRnnModel::canonical_to_params(std::span<const ConstArrayView> weights,
                                          std::span<const ConstArrayView> biases) const {
  return canonical_to_tensor(spec_, weights, biases);
}

RnnOutputs CudnnRnnModel::call(RnnInputs inputs, bool is_training,
                               const CudnnCallOptions& options) {
  require_rank3(call_, "input_data", inputs.x);
  require_rank3(call_, "input_h", inputs.h0);
  if (spec_->has_cell()) require_rank3(call_, "input_c", inputs.c0);
  inputs.h0 = state_as(inputs.h0, options.time_major);
  inputs.c0 = state_as(inputs.c0, options.time_major);
  inputs.sequence_lengths = options.sequence_lengths;
  inputs.lengths = options.lengths;
  inputs.time_major = options.time_major;
  inputs.training = is_training;
  inputs.save = options.save;
  inputs.recompute = options.recompute;
  inputs.call = call_;
  const ModelOfCall model{spec_->compute.device, kept_};
  const std::int64_t depth = inputs.x.shape()[2];
  if (depth == spec_->input_size && !is_symbolic(inputs)) {
    return run_model(spec_, std::move(inputs), model);
  }
  RnnSpec spec = spec_;
  spec.input_size = depth;
  return is_symbolic(inputs) ? defer_rnn(spec, inputs, model)
                             : run_model(spec, std::move(inputs), model);
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

std::int64_t cudnn_rnn_opaque_params_size(const RnnSpec& spec) {
  return openrnn::params_size(spec);
}

CanonicalParams cudnn_rnn_opaque_params_to_canonical(const RnnSpec& spec, const Tensor& params) {
  return openrnn::params_to_canonical(ParamsLayout(spec), params.to_host().view());
}

Tensor cudnn_rnn_canonical_to_opaque_params(const RnnSpec& spec,
                                            std::span<const ConstArrayView> weights,
                                            std::span<const ConstArrayView> biases) {
  return canonical_to_tensor(spec, weights, biases);
}

}  // namespace openrnn::ops
