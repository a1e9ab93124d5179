#include "cli/model/whole.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/excerpt.h"
#include "cli/commands.h"
#include "cli/model/input.h"
#include "openrnn/layers_graph.h"

namespace openrnn::cli {
namespace {

// Rows that are no multiple of a vector, and steps enough for states to matter.
constexpr std::int64_t kWholeBatch = 3, kWholeTime = 11;
constexpr std::uint64_t kWholeSeed = 21;

void require_none(bool given, const char* flag) {
  if (!given) return;
  throw ArgumentError(fmt::format(
      "[run] {} with a whole model, expected --network NAME beside it: it is of one network",
      flag));
}

Array in_dtype(const Array& values, DType dtype) {
  return dtype == DType::kInt32 ? as_indices(values) : as_floating(values, dtype);
}

// NumPy has no bfloat16; float32 holds each of its values.
Array storable(Array values, bool single) {
  if (values.dtype() == DType::kBfloat16) values = cast(values.view(), DType::kFloat32);
  if (!single) return values;
  const Shape shape(values.shape().begin() + 1, values.shape().end());
  return std::move(values).reshaped(shape);
}

void write_outputs(const RunFlags& flags, const layers::LayerGraph& graph,
                   const std::vector<Array>& outputs) {
  std::vector<NamedView> views;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const LayerOutput& from = graph.output_names()[i];
    views.push_back({from.index ? fmt::format("{}.{}", from.layer, from.index) : from.layer,
                     outputs[i].view()});
  }
  if (flags.output.ends_with(".safetensors")) {
    write_safetensors(flags.output, views);
  } else if (outputs.size() == 1) {
    write_npy(flags.output, outputs[0].view());
  } else {
    throw ArgumentError(
        fmt::format("[run] --output '{}' of a model of {} outputs, expected a file "
                    "that ends in .safetensors",
                    excerpt(flags.output), outputs.size()));
  }
  for (const NamedView& view : views) {
    fmt::print("output {} {} {} in {}\n", excerpt(view.name), dtype_name(view.values.dtype),
               to_string(view.values.shape), flags.output);
  }
}

std::int64_t size_or(std::int64_t size, std::int64_t otherwise) {
  return size < 0 ? otherwise : size;
}

// As many ids as each embedding has; ids of 0 among them, which may be masked.
std::int64_t vocabulary_behind(const MappedModel& model, const std::string& input) {
  std::int64_t least = INT32_MAX;
  for (const MappedLayer& layer : model.layers) {
    if (layer.kind != "embedding" || layer.inputs[0].layer != input) continue;
    least = std::min(least, layer_option_as<std::int64_t>(layer, "vocabulary"));
  }
  return least;
}

std::vector<Tensor> random_inputs(const MappedModel& model,
                                  const std::vector<LayerValue>& expected) {
  RandomStream random(kWholeSeed);
  std::vector<Tensor> values;
  std::size_t next = 0;
  for (const MappedLayer& layer : model.layers) {
    if (layer.kind != "input") continue;
    const LayerValue& value = expected.at(next++);
    Shape shape = value.shape;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      shape[axis] = size_or(shape[axis], axis == 0 ? kWholeBatch : kWholeTime);
    }
    Array made(DType::kFloat64, shape);
    for (double& one : made.as<double>()) one = random.normal();
    if (value.dtype == DType::kInt32) {
      const auto most = static_cast<double>(vocabulary_behind(model, layer.name));
      for (double& one : made.as<double>()) one = std::fmod(std::floor(std::abs(one) * 1e4), most);
    }
    values.emplace_back(in_dtype(made, value.dtype).view());
  }
  return values;
}

}  // namespace

bool is_whole(const MappedModel& model) {
  std::vector<std::string> inputs;
  for (const MappedLayer& layer : model.layers) {
    if (layer.kind == "input") {
      inputs.push_back(layer.name);
      continue;
    }
    if (layer.kind != "recurrent" || layer.inputs.size() != 1) return true;
    const bool plain = layer_option_as<bool>(layer, "return_sequences") &&
                       layer_option_as<std::string>(layer, "merge") == "concat" &&
                       !layer_option_as<bool>(layer, "reverse") &&
                       !layer_option_as<bool>(layer, "return_state");
    if (!plain || std::ranges::find(inputs, layer.inputs[0].layer) == inputs.end()) return true;
  }
  return false;
}

void run_whole(const RunFlags& flags, const MappedModel& given) {
  require_none(!flags.lengths.empty(), "--lengths");
  require_none(!flags.state.empty(), "--state");
  require_none(flags.stream.has_value(), "--stream");
  MappedModel model = given;
  for (MappedNetwork& network : model.networks) {
    if (flags.math) network.spec.compute.math = parse_math(*flags.math);
  }
  const auto graph = layers::LayerGraph::of(model);
  if (graph->inputs().size() != 1) {
    throw ArgumentError(
        fmt::format("[run] '{}' has {} inputs, expected a model of one, or "
                    "--network NAME",
                    flags.model, graph->inputs().size()));
  }
  require_file("--input", flags.input);
  const LayerValue& expected = graph->inputs()[0];
  Array values = in_dtype(read_input(flags.input), expected.dtype);
  const bool single = values.shape().size() + 1 == expected.shape.size();
  if (single) {
    Shape shape = values.shape();
    shape.insert(shape.begin(), 1);
    values = std::move(values).reshaped(std::move(shape));
  }
  if (!shapes_fit(values.shape(), expected.shape)) {
    throw ArgumentError(
        fmt::format("[run] --input has shape {}, expected {} of the whole model, "
                    "batch first",
                    to_string(values.shape()), to_string(expected.shape)));
  }
  std::vector<Array> outputs;
  for (Array& output : graph->predict({Tensor(values.view())})) {
    outputs.push_back(storable(std::move(output), single));
  }
  write_outputs(flags, *graph, outputs);
}

WholeDifference whole_difference(const MappedModel& a, const MappedModel& b) {
  const auto first = layers::LayerGraph::of(a), second = layers::LayerGraph::of(b);
  const std::vector<Tensor> inputs = random_inputs(a, first->inputs());
  const std::vector<Array> wanted = first->predict(inputs), found = second->predict(inputs);
  WholeDifference difference;
  if (wanted.size() != found.size()) {
    throw ArgumentError(fmt::format("[convert] what was written has {} outputs, expected {}",
                                    found.size(), wanted.size()));
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].shape() != found[i].shape()) {
      throw ArgumentError(fmt::format("[convert] what was written has an output {}, expected {}",
                                      to_string(found[i].shape()), to_string(wanted[i].shape())));
    }
    for (std::int64_t at = 0; at < wanted[i].size(); ++at) {
      const double x = element(wanted[i].view(), at), y = element(found[i].view(), at);
      const bool both_nan = std::isnan(x) && std::isnan(y);
      const double here = x == y || both_nan ? 0.0 : std::abs(x - y);
      difference.largest = std::isnan(here) ? HUGE_VAL : std::max(difference.largest, here);
      ++difference.values;
    }
  }
  return difference;
}

}  // namespace openrnn::cli
