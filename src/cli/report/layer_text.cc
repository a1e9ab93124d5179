#include "cli/report/layer_text.h"

#include <fmt/core.h>

#include "base/excerpt.h"

namespace openrnn::cli {
namespace {

std::string text_of_option(const PlainValue& value) {
  return std::visit(
      []<class T>(const T& held) -> std::string {
        if constexpr (std::is_same_v<T, std::string>) {
          return excerpt(held);
        } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
          return to_string(Shape(held.begin(), held.end()));
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
          return fmt::format("of {} values", held.size());
        } else if constexpr (std::is_arithmetic_v<T>) {
          return fmt::format("{}", held);
        } else {
          return "none";
        }
      },
      value);
}

}  // namespace

std::string text_of_layer(const MappedLayer& layer, const std::vector<LayerValue>& outputs) {
  std::string text = layer.kind, inputs;
  for (const auto& [name, value] : layer.options) {
    if (value == layer_option({.name = layer.name, .kind = layer.kind}, name)) continue;
    text += fmt::format(", {} {}", name, text_of_option(value));
  }
  for (const LayerOutput& from : layer.inputs) {
    inputs += (inputs.empty() ? " of " : ", ") + excerpt(from.layer);
    if (from.index) inputs += fmt::format(" ({})", from.index);
  }
  text += inputs + ":";
  for (const LayerValue& value : outputs) {
    text += fmt::format(" {} {}", dtype_name(value.dtype), to_string(value.shape));
  }
  return text + (outputs[0].masked ? ", masked" : "");
}

}  // namespace openrnn::cli
