#include "mapping/torch/names.h"

#include <algorithm>

namespace openrnn::mapping {

namespace {

constexpr std::string_view kSymbols[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh",
                                         "weight_hr"};

// '_l0', '_l12_reverse'. More layers than four digits can count are none of a network.
bool is_torch_suffix(std::string_view text) {
  constexpr std::size_t kMostDigits = 4;
  constexpr std::string_view kReverse = "_reverse";
  if (!text.starts_with("_l")) return false;
  text.remove_prefix(2);
  if (text.ends_with(kReverse)) text.remove_suffix(kReverse.size());
  if (text.empty() || text.size() > kMostDigits) return false;
  if (text.size() > 1 && text[0] == '0') return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::optional<TorchName> parse_torch_name(std::string_view name) {
  const std::size_t point = name.rfind('.');
  const std::size_t start = point == std::string_view::npos ? 0 : point + 1;
  const std::string_view last = name.substr(start);
  for (const std::string_view symbol : kSymbols) {
    if (!last.starts_with(symbol)) continue;
    const std::string_view suffix = last.substr(symbol.size());
    // A cell projects nothing.
    const bool is_cell = suffix.empty() && symbol != "weight_hr";
    if (is_cell || is_torch_suffix(suffix)) return TorchName{name.substr(0, start), last, is_cell};
  }
  return std::nullopt;
}

}  // namespace openrnn::mapping
