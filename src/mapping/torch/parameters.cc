// The one table of facts: PyTorch's parameters as parts of the opaque buffer.
#include <cstring>

#include "base/message.h"
#include "mapping/support/options.h"
#include "openrnn/mapping.h"

namespace openrnn {

namespace {

constexpr std::string_view kHeldByTorch[] = {"num_proj", "use_bias"};

RnnSpec torch_spec(std::string_view call, const RnnSpec& given) {
  const RnnSpec spec = mapping::plainest(given);
  mapping::require_held(call, {}, spec, "PyTorch", kHeldByTorch);
  if (spec.projecting() && !spec.is_lstm()) {
    throw UnsupportedError(message("[", call, "] the network has num_proj ", spec.num_proj, " for ",
                                   to_string(spec.mode),
                                   ", which PyTorch cannot hold: it projects an lstm only"));
  }
  return spec;
}

bool is_of_input(const ParamRegion& region) {
  return region.role == ParamRole::kInputWeight || region.role == ParamRole::kInputBias;
}

// From all weights before all biases to layer by layer: weight_ih, weight_hh, the biases,
// weight_hr.
std::vector<TorchParameter> in_order_of_modules(const RnnSpec& spec,
                                                std::vector<TorchParameter> parameters) {
  const auto layers = static_cast<std::size_t>(spec.num_pseudo_layers());
  const std::size_t biases = spec.use_bias ? 2 : 0, weights = parameters.size() / layers - biases;
  std::vector<TorchParameter> ordered;
  for (std::size_t at = 0; at < layers; ++at) {
    const auto take = [&](std::size_t number) { ordered.push_back(std::move(parameters[number])); };
    take(at * weights);
    take(at * weights + 1);
    for (std::size_t bias = 0; bias < biases; ++bias) take(layers * weights + at * biases + bias);
    if (weights == 3) take(at * weights + 2);
  }
  return ordered;
}

ConstArrayView part_of(const ConstArrayView& params, const TorchParameter& parameter) {
  const std::size_t first = static_cast<std::size_t>(parameter.offset) * dtype_size(params.dtype);
  return {static_cast<const std::byte*>(params.data) + first, params.dtype, parameter.shape};
}

}  // namespace

std::vector<TorchParameter> torch_parameters(const ValidSpec& given) {
  const RnnSpec spec = torch_spec("torch_parameters", given);
  const ParamsLayout layout(spec);
  const std::int64_t rows = spec.num_gates() * spec.num_units;
  std::vector<TorchParameter> parameters;
  const auto add = [&](const ParamRegion& region, std::string_view symbol, Shape shape) {
    // Gates are in the same order on both sides (i f g o, r z n): all begin where the first one is.
    if (region.gate != 0) return;
    parameters.push_back(
        {message(symbol, "_l", region.layer, region.direction == 1 ? "_reverse" : ""),
         std::move(shape), region.offset});
  };
  for (const ParamRegion& region : layout.weights()) {
    const bool projection = region.role == ParamRole::kProjection;
    add(region,
        projection            ? "weight_hr"
        : is_of_input(region) ? "weight_ih"
                              : "weight_hh",
        {projection ? region.rows : rows, region.cols});
  }
  for (const ParamRegion& region : layout.biases()) {
    add(region, is_of_input(region) ? "bias_ih" : "bias_hh", {rows});
  }
  return in_order_of_modules(spec, std::move(parameters));
}

CanonicalParams canonical_from_torch(const ValidSpec& spec,
                                     std::span<const ConstArrayView> tensors) {
  const std::vector<TorchParameter> parameters = torch_parameters(spec);
  if (tensors.size() != parameters.size()) {
    throw ArgumentError(message("[canonical_from_torch] ", tensors.size(), " tensors, expected ",
                                parameters.size(), ", from ", parameters.front().name, " to ",
                                parameters.back().name));
  }
  Array params(spec->dtype, {params_size(spec)});
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].shape != parameters[i].shape || tensors[i].dtype != spec->dtype) {
      throw ArgumentError(message("[canonical_from_torch] ", parameters[i].name, " is ",
                                  dtype_name(tensors[i].dtype), " ", to_string(tensors[i].shape),
                                  ", expected ", dtype_name(spec->dtype), " ",
                                  to_string(parameters[i].shape)));
    }
    std::memcpy(const_cast<void*>(part_of(params.view(), parameters[i]).data), tensors[i].data,
                tensors[i].size_bytes());
  }
  return params_to_canonical(ParamsLayout(spec), params.view());
}

std::vector<Array> torch_from_canonical(const ValidSpec& spec,
                                        std::span<const ConstArrayView> weights,
                                        std::span<const ConstArrayView> biases) {
  const std::vector<TorchParameter> parameters = torch_parameters(spec);
  const Array params = canonical_to_params(ParamsLayout(spec), weights, biases);
  std::vector<Array> tensors;
  for (const TorchParameter& parameter : parameters) {
    tensors.emplace_back(part_of(params.view(), parameter));
  }
  return tensors;
}

}  // namespace openrnn
