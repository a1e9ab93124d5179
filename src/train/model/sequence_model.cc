// Embedding or one-hot, recurrent layers, dense.
#include "openrnn/ops.h"
#include "openrnn/train_model.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

/// Each layer starts from random numbers of its own.
std::int64_t layer_seed(const ModelConfig& config, int layer) {
  constexpr std::uint64_t kSeeds = std::uint64_t{1} << 31;
  return static_cast<std::int64_t>((config.seed() * 4 + static_cast<std::uint64_t>(layer)) %
                                   kSeeds);
}

void set_element(Array& array, std::int64_t index, double value) {
  const auto i = static_cast<std::size_t>(index);
  switch (array.dtype()) {
    case DType::kFloat16:
      array.as<Half>()[i] = to_half(value);
      return;
    case DType::kBfloat16:
      array.as<Bfloat16>()[i] = to_bfloat16(value);
      return;
    case DType::kFloat32:
      array.as<float>()[i] = static_cast<float>(value);
      return;
    default:
      array.as<double>()[i] = value;
  }
}

}  // namespace

SequenceModel::SequenceModel(const ModelConfig& config) : config_(config) {
  if ((config.vocabulary > 0) == (config.columns > 0)) {
    throw ArgumentError(message("SequenceModel", "vocabulary ", config.vocabulary, " and columns ",
                                config.columns, ", expected one of the two above 0"));
  }
  std::int64_t width = config.columns;
  if (config.vocabulary > 0) width = config.embedding > 0 ? config.embedding : config.vocabulary;
  if (config.vocabulary > 0 && config.embedding > 0) {
    layers::EmbeddingOptions options;
    options.vocabulary = config.vocabulary;
    options.dim = config.embedding;
    options.seed = layer_seed(config, 0);
    options.dtype = config.network.dtype;
    options.device = config.network.compute.device;
    // As large as what the layers hand on: a small embedding is hardly heard at first.
    options.initializer = random_normal_initializer(0.0, 0.5);
    embedding_ = std::make_unique<layers::Embedding>(options);
    embedding_->build({-1, -1});
  }
  RnnSpec network = config.network;
  network.training.seed = layer_seed(config, 1);
  rnn_ = layers::make_cudnn_rnn({.network = network});
  rnn_->build({-1, -1, width});
  if (network.is_lstm() && network.forget_bias == 0.0) raise_forget_bias();
  if (network.training.dropout > 0.0) {
    output_dropout_ = std::make_unique<layers::Dropout>(
        layers::DropoutOptions{network.training.dropout, layer_seed(config, 2), ""});
  }
  layers::DenseOptions dense;
  dense.units = config.outputs;
  dense.seed = layer_seed(config, 3);
  dense.dtype = config.network.dtype;
  dense.device = config.network.compute.device;
  dense_ = std::make_unique<layers::Dense>(dense);
  dense_->build({-1, -1, rnn_->spec().output_size()});
}

/// A forget gate that starts open lets gradients reach far back from the first step on.
void SequenceModel::raise_forget_bias() {
  Array params = rnn_->kernel().to_host();
  const ParamsLayout layout(rnn_->spec());
  constexpr std::int64_t kForget = 1;
  for (const ParamRegion& region : layout.biases()) {
    if (region.role != ParamRole::kInputBias || region.gate != kForget) continue;
    for (std::int64_t i = 0; i < region.size(); ++i) set_element(params, region.offset + i, 1.0);
  }
  rnn_->kernel().assign(params.view());
}

SequenceModel::Result SequenceModel::operator()(const Array& x, const std::vector<Tensor>& state,
                                                const Call& call) {
  // All is [time, batch, ..] here.
  std::optional<ops::PartScope> time_major;
  if (const ops::PartScope* const scope = ops::PartScope::current()) {
    time_major.emplace(scope->part(), scope->step(), 1);
  }
  Tensor inputs;
  if (embedding_) {
    inputs = (*embedding_)(x.view());
  } else if (config_.vocabulary > 0) {
    inputs = ops::one_hot(Tensor(x.view()), config_.vocabulary, config_.network.dtype);
  } else {
    inputs = x.dtype() == config_.network.dtype
                 ? Tensor(x.view())
                 : Tensor(cast(x.view(), config_.network.dtype).view());
  }
  layers::RnnCallOptions options;
  options.training = call.training;
  if (call.training) options.recompute = recompute_;
  options.sequence_lengths = call.sequence_lengths;
  layers::RnnResult result = (*rnn_)(inputs, state, options);
  Tensor hidden = result.output;
  if (output_dropout_) hidden = (*output_dropout_)(hidden, call.training);
  return {(*dense_)(hidden), std::move(result.state)};
}

std::vector<Variable> SequenceModel::variables() const {
  std::vector<Variable> all;
  const auto add = [&](const Layer& layer) {
    for (const Variable& variable : layer.weights()) all.push_back(variable);
  };
  if (embedding_) add(*embedding_);
  add(*rnn_);
  add(*dense_);
  return all;
}

std::uint64_t SequenceModel::dropout_calls() const { return rnn_->dropout_calls(); }

void SequenceModel::set_dropout_calls(std::uint64_t calls) {
  rnn_->set_dropout_calls(calls);
  if (output_dropout_) output_dropout_->set_dropout_calls(calls);
}

}  // namespace openrnn::train
