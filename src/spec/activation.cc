// Activations as text.
#include <charconv>
#include <cmath>

#include "spec/words.h"

namespace openrnn {
namespace {

constexpr std::string_view kNames[] = {
    "sigmoid",     "tanh",         "relu", "affine",   "leaky_relu", "thresholded_relu",
    "scaled_tanh", "hard_sigmoid", "elu",  "softsign", "softplus"};

// How many parameters a function has, and their defaults.
struct Parameters {
  int count = 0;
  double alpha = 0.0, beta = 0.0;
};

Parameters parameters_of(CellActivationKind kind) {
  switch (kind) {
    case CellActivationKind::kAffine:
      return {2, 1.0, 0.0};
    case CellActivationKind::kLeakyRelu:
      return {1, 0.01, 0.0};
    case CellActivationKind::kThresholdedRelu:
    case CellActivationKind::kElu:
      return {1, 1.0, 0.0};
    case CellActivationKind::kScaledTanh:
      return {2, 1.0, 1.0};
    case CellActivationKind::kHardSigmoid:
      return {2, 0.2, 0.5};
    default:
      return {};
  }
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

[[noreturn]] void refuse(std::string_view text, std::string_view expected) {
  throw ArgumentError(
      message("[activation] activation is '", excerpt(text), "', expected ", expected));
}

CellActivationKind kind_named(std::string_view name, std::string_view text) {
  std::string known;
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == name) return static_cast<CellActivationKind>(i);
    known += message("'", kNames[i], "', ");
  }
  refuse(text, message("one of ", known, "'linear', with parameters as in 'leaky_relu(0.1)'"));
}

double number_of(std::string_view word, std::string_view text) {
  // Not strtod, which takes the program's locale: files are the same in all of them.
  std::string_view digits = trimmed(word);
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  double value = 0.0;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, value);
  if (error != std::errc() || end != last || !std::isfinite(value)) {
    refuse(text, "finite numbers as its parameters");
  }
  return value;
}

std::string digits_of(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof(digits), value).ptr};
}

}  // namespace

CellActivation make_cell_activation(CellActivationKind kind) {
  const Parameters parameters = parameters_of(kind);
  return {kind, parameters.alpha, parameters.beta};
}

CellActivation parse_cell_activation(std::string_view text) {
  const std::size_t open = text.find('(');
  const std::string_view name = trimmed(text.substr(0, open));
  if (name == "linear" && open == std::string_view::npos)
    return make_cell_activation(CellActivationKind::kAffine);
  CellActivation parsed = make_cell_activation(kind_named(name, text));
  if (open == std::string_view::npos) return parsed;
  std::string_view rest = trimmed(text.substr(open + 1));
  if (rest.empty() || rest.back() != ')') refuse(text, "its parameters in parentheses");
  rest.remove_suffix(1);
  const int most = parameters_of(parsed.kind).count;
  for (int count = 0; !trimmed(rest).empty() || count > 0; ++count) {
    if (count == most) refuse(text, message("at most ", most, " parameters"));
    const std::size_t comma = rest.find(',');
    (count == 0 ? parsed.alpha : parsed.beta) = number_of(rest.substr(0, comma), text);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return parsed;
}

std::string to_string(const CellActivation& activation) {
  std::string text(kNames[static_cast<std::size_t>(activation.kind)]);
  const int count = parameters_of(activation.kind).count;
  if (count == 0) return text;
  text += "(" + digits_of(activation.alpha);
  if (count == 2) text += ", " + digits_of(activation.beta);
  return text + ")";
}

}  // namespace openrnn
