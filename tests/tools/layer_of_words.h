// A recurrent layer from words such as units=7.
#pragma once

#include <openrnn/layers.h>

namespace openrnn::testing {

using Options = std::map<std::string, std::string>;

/// Each word is NAME=VALUE. Those of a layer are mode, layers, units, input, and what has a
/// default.
inline Options parse_options(std::span<const std::string> words) {
  Options options{{"direction", "unidirectional"},
                  {"dtype", "float32"},
                  {"input_mode", "linear_input"},
                  {"proj", "0"},
                  {"scope", ""}};
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    options[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return options;
}

/// Built in the variable scope `scope` unless that is empty; weights and biases are random.
inline std::unique_ptr<layers::CudnnRnn> build_layer(const Options& options, std::int64_t seed) {
  layers::CudnnRnnOptions layer;
  RnnSpec& network = layer.network;
  network.mode = parse_rnn_mode(options.at("mode"));
  network.num_layers = std::stoll(options.at("layers"));
  network.num_units = std::stoll(options.at("units"));
  network.direction = parse_direction(options.at("direction"));
  network.input_mode = parse_input_mode(options.at("input_mode"));
  network.dtype = parse_dtype(options.at("dtype"));
  network.num_proj = std::stoll(options.at("proj"));
  network.training.seed = seed;
  layer.kernel_initializer = layer.bias_initializer = random_uniform_initializer(-0.5, 0.5);
  auto built = layers::make_cudnn_rnn(layer);
  std::optional<VariableScope> scope;
  if (!options.at("scope").empty()) scope.emplace(options.at("scope"));
  built->build({-1, -1, std::stoll(options.at("input"))});
  return built;
}

}  // namespace openrnn::testing
