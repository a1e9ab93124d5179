// The words of the enums, each list in the order of its enumerators.
#pragma once

#include "base/excerpt.h"
#include "base/message.h"
#include "openrnn/spec.h"

namespace openrnn::spec {

using Words = std::span<const std::string_view>;

inline constexpr std::string_view kModes[] = {"rnn_relu", "rnn_tanh", "lstm", "gru"};
inline constexpr std::string_view kInputModes[] = {"linear_input", "skip_input", "auto_select"};
inline constexpr std::string_view kDirections[] = {"unidirectional", "bidirectional"};
inline constexpr std::string_view kMaths[] = {"float32", "bf16", "bf16x3", "tf32", "fp16"};
inline constexpr std::string_view kWeightsDTypes[] = {"none", "float16", "bfloat16", "int8"};
inline constexpr std::string_view kLayerNorms[] = {"none", "products", "split_products", "gates"};
inline constexpr std::string_view kLayerNormsOfCell[] = {"none", "output", "carried"};
inline constexpr std::string_view kRecurrentDropoutForms[] = {"state", "candidate"};
inline constexpr std::string_view kGates[] = {"i", "f", "c", "o", "r", "z", "n", "h"};

/// The name that a field of this type has, and its words.
struct WordList {
  std::string_view field;
  Words words;
};
constexpr WordList words_of(RnnMode) { return {"rnn_mode", kModes}; }
constexpr WordList words_of(InputMode) { return {"input_mode", kInputModes}; }
constexpr WordList words_of(Direction) { return {"direction", kDirections}; }
constexpr WordList words_of(Math) { return {"math", kMaths}; }
constexpr WordList words_of(WeightsDType) { return {"weights_dtype", kWeightsDTypes}; }
constexpr WordList words_of(LayerNorm) { return {"layer_norm", kLayerNorms}; }
constexpr WordList words_of(LayerNormCell) { return {"layer_norm_cell", kLayerNormsOfCell}; }
constexpr WordList words_of(RecurrentDropoutForm) {
  return {"recurrent_dropout_form", kRecurrentDropoutForms};
}
constexpr WordList words_of(Gate) { return {"gate", kGates}; }

template <class Enum>
std::string_view word(Enum value) {
  return words_of(value).words[static_cast<std::size_t>(value)];
}

/// Throws: ArgumentError naming the field, the word and those that there are.
template <class Enum>
Enum parse_word(std::string_view given) {
  const auto [field, words] = words_of(Enum{});
  std::string known;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == given) return static_cast<Enum>(i);
    known += message(i == 0 ? "'" : ", '", words[i], "'");
  }
  throw ArgumentError(
      message("[", field, "] ", field, " is '", excerpt(given), "', expected one of ", known));
}

}  // namespace openrnn::spec
