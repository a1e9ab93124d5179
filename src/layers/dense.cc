// Dense, Embedding and Dropout.
#include "base/message.h"
#include "openrnn/layers.h"

namespace openrnn::layers {
namespace {

VariableOptions variable_options(DType dtype, const Initializer& initializer,
                                 std::optional<std::int64_t> seed) {
  VariableOptions options;
  options.dtype = dtype;
  options.initializer = initializer;
  if (seed) options.seed = static_cast<std::uint64_t>(*seed);
  return options;
}

void check_positive(const char* call, const char* what, std::int64_t value) {
  if (value < 1) {
    throw ArgumentError(message("[", call, "] ", what, " ", value, ", expected 1 or more"));
  }
}

Tensor activate(Activation activation, const Tensor& x) {
  switch (activation) {
    case Activation::kRelu:
      return ops::relu(x);
    case Activation::kTanh:
      return ops::tanh(x);
    case Activation::kSigmoid:
      return ops::sigmoid(x);
    default:
      return x;
  }
}

}  // namespace

Dense::Dense(DenseOptions options)
    : Layer(options.name, "dense", options.dtype, options.device), options_(std::move(options)) {
  check_positive("Dense", "units", options_.units);
}

void Dense::do_build(const Shape& input_shape) {
  if (input_shape.empty() || input_shape.back() < 1) {
    throw ArgumentError(message("[", name(), "] an input shape of ", to_string(input_shape),
                                ", expected its last dimension to be defined"));
  }
  kernel_ = add_weight("kernel", {input_shape.back(), options_.units},
                       variable_options(dtype(), options_.kernel_initializer, options_.seed));
  set_input_spec({.axes = {{-1, input_shape.back()}}});
  if (!options_.use_bias) return;
  const Initializer zeros = constant_initializer(0.0);
  bias_ = add_weight(
      "bias", {options_.units},
      variable_options(dtype(), options_.bias_initializer ? options_.bias_initializer : zeros,
                       options_.seed));
}

Tensor Dense::operator()(const Tensor& inputs) {
  if (inputs.dtype() != dtype()) {
    throw ArgumentError(message("[", name(), "] inputs are ", dtype_name(inputs.dtype()),
                                ", expected ", dtype_name(dtype())));
  }
  ensure_built(inputs.shape());
  require_class_build();
  if (inputs.shape().empty() ||
      (inputs.shape().back() >= 0 && inputs.shape().back() != kernel_.shape()[0])) {
    throw ArgumentError(message("[", name(), "] incompatible layer input: axis -1 of shape ",
                                to_string(inputs.shape()), ", expected axis -1 to have value ",
                                kernel_.shape()[0]));
  }
  return run_call({inputs}, {{dtype(), compute_output_shape(inputs.shape())}})[0];
}

std::vector<Tensor> Dense::compute_call(const Attributes&, const std::vector<Tensor>& inputs,
                                        const Replay&) {
  const Tensor bias = options_.use_bias ? bias_.read() : Tensor();
  return {activate(options_.activation, ops::dense(inputs[0], kernel_.read(), bias))};
}

DenseOptions Dense::get_config() const {
  DenseOptions config = options_;
  config.name = name();
  return config;
}

std::shared_ptr<Dense> Dense::from_config(DenseOptions config) {
  return std::make_shared<Dense>(std::move(config));
}

std::shared_ptr<Layer> Dense::copy() const {
  auto made = std::make_shared<Dense>(options_);
  made->copy_layer(*this);
  made->kernel_ = kernel_;
  made->bias_ = bias_;
  return made;
}

Shape Dense::compute_output_shape(const Shape& input_shape) const {
  if (input_shape.empty()) {
    throw ArgumentError(message("[", name(), "] compute_output_shape of a scalar, expected at ",
                                "least 1 dimension"));
  }
  Shape shape = input_shape;
  shape.back() = options_.units;
  return shape;
}

Embedding::Embedding(EmbeddingOptions options)
    : Layer(options.name, "embedding", options.dtype, options.device),
      options_(std::move(options)) {
  check_positive("Embedding", "vocabulary", options_.vocabulary);
  check_positive("Embedding", "dim", options_.dim);
}

void Embedding::do_build(const Shape&) {
  const Initializer initializer =
      options_.initializer ? options_.initializer : random_uniform_initializer();
  embeddings_ = add_weight("embeddings", {options_.vocabulary, options_.dim},
                           variable_options(dtype(), initializer, options_.seed));
}

Tensor Embedding::operator()(const Tensor& indices) {
  ensure_built(indices.shape());
  require_class_build();
  return run_call({indices}, {{dtype(), compute_output_shape(indices.shape())}})[0];
}

std::vector<Tensor> Embedding::compute_call(const Attributes&, const std::vector<Tensor>& inputs,
                                            const Replay&) {
  return {ops::embedding_lookup(embeddings_.read(), inputs[0])};
}

EmbeddingOptions Embedding::get_config() const {
  EmbeddingOptions config = options_;
  config.name = name();
  return config;
}

std::shared_ptr<Embedding> Embedding::from_config(EmbeddingOptions config) {
  return std::make_shared<Embedding>(std::move(config));
}

std::shared_ptr<Layer> Embedding::copy() const {
  auto made = std::make_shared<Embedding>(options_);
  made->copy_layer(*this);
  made->embeddings_ = embeddings_;
  return made;
}

Shape Embedding::compute_output_shape(const Shape& input_shape) const {
  Shape shape = input_shape;
  shape.push_back(options_.dim);
  return shape;
}

Dropout::Dropout(DropoutOptions options)
    : Layer(options.name, "dropout", DType::kFloat32), options_(std::move(options)) {
  if (!(options_.rate >= 0.0 && options_.rate <= 1.0)) {
    throw ArgumentError(message("[Dropout] rate ", options_.rate, ", expected 0 to 1"));
  }
}

DropoutOptions Dropout::get_config() const {
  DropoutOptions config = options_;
  config.name = name();
  return config;
}

std::shared_ptr<Dropout> Dropout::from_config(DropoutOptions config) {
  return std::make_shared<Dropout>(std::move(config));
}

std::shared_ptr<Layer> Dropout::copy() const {
  auto made = std::make_shared<Dropout>(options_);
  made->copy_layer(*this);
  made->dropout_ = dropout_;
  return made;
}

void Dropout::do_build(const Shape&) {
  const std::uint64_t calls = dropout_.calls();
  dropout_ = ops::DropoutState(Graph::current().op_seeds(options_.seed));
  dropout_.set_calls(calls);
}

Tensor Dropout::operator()(const Tensor& inputs, bool training) {
  ensure_built(inputs.shape());
  require_class_build();
  return run_call({inputs}, {{inputs.dtype(), inputs.shape()}}, {training})[0];
}

std::vector<Tensor> Dropout::compute_call(const Attributes& call, const std::vector<Tensor>& inputs,
                                          const Replay& replay) {
  const bool training = replay.training.value_or(std::get<bool>(call.at(0)));
  if (!training || options_.rate == 0.0) return inputs;
  return {ops::next_dropout(inputs[0], options_.rate, dropout_)};
}

}  // namespace openrnn::layers
