// Activations by name.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/excerpt.h"
#include "base/message.h"
#include "openrnn/mapping_layers.h"

namespace openrnn {

namespace {

struct FunctionFact {
  std::string_view name;
  std::size_t numbers = 0;
  double alpha = 0.0, beta = 0.0;
};
// The parameters are those of cells (docs/cells_reference.md); clip has its two bounds.
constexpr FunctionFact kLayerFunctions[] = {
    {"linear"},
    {"relu"},
    {"tanh"},
    {"sigmoid"},
    {"softmax"},
    {"exponential"},
    {"softsign"},
    {"silu"},
    {"hard_sigmoid", 2, 0.2, 0.5},
    {"hard_silu", 2, 1.0 / 6.0, 0.5},
    {"leaky_relu", 1, 0.01},
    {"elu", 1, 1.0},
    {"selu"},
    {"gelu_tanh"},
    {"clip", 2, 0.0, 6.0},
};

// One number of "name(number, number)"; nothing for anything else.
std::optional<double> parse_number(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  double value = 0.0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && stop == text.data() + text.size();
  return whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

LayerFunction parse_layer_function(const std::string& text) {
  std::string_view name(text), inside;
  const std::size_t open = name.find('(');
  if (open != name.npos && name.ends_with(')')) {
    inside = name.substr(open + 1, name.size() - open - 2);
    name = name.substr(0, open);
  }
  std::vector<std::string> names;
  for (const FunctionFact& fact : kLayerFunctions) {
    names.emplace_back(fact.name);
    if (fact.name != name) continue;
    LayerFunction function{std::string(name), fact.alpha, fact.beta};
    std::size_t given = 0;
    for (double* const number : {&function.alpha, &function.beta}) {
      if (inside.empty() || given == fact.numbers) break;
      const std::size_t comma = std::min(inside.find(','), inside.size());
      const std::optional<double> value = parse_number(inside.substr(0, comma));
      if (!value) break;
      *number = *value;
      ++given;
      // A comma is in front of another number.
      if (comma + 1 == inside.size()) break;
      inside.remove_prefix(std::min(comma + 1, inside.size()));
    }
    const bool ordered = name != "clip" || function.alpha <= function.beta;
    if (inside.empty() && ordered) return function;
    throw ArgumentError(message("[layers] the activation '", excerpt(text), "', expected ", name,
                                " with at most ", fact.numbers, " numbers in parentheses"));
  }
  throw ArgumentError(
      message("[layers] the activation '", excerpt(text), "', expected one of ", listed(names)));
}

}  // namespace openrnn
