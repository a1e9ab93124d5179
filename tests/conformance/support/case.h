// Cases of the conformance suite as data: one line of text each, with the reason it is there.
#pragma once

#include <cctype>
#include <cstdlib>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "openrnn/engine.h"

namespace openrnn::conformance {

/// One network and one call of it.
struct Case {
  std::string text, reason;
  RnnSpec spec;
  std::int64_t time = 1, batch = 1;
  bool time_major = true;
  bool null_states = false;           // h0 and c0 are not given
  std::vector<std::int32_t> lengths;  // empty: not given

  bool trains() const { return spec.compute.weights_dtype == WeightsDType::kNone; }
  std::int64_t seq_size(std::int64_t width) const { return time * batch * width; }
  std::int64_t h_size() const { return spec.num_pseudo_layers() * batch * spec.hidden_size(); }
  std::int64_t c_size() const {
    return spec.has_cell() ? spec.num_pseudo_layers() * batch * spec.num_units : 0;
  }
};

inline void PrintTo(const Case& c, std::ostream* out) { *out << c.text << " (" << c.reason << ")"; }

/// Lengths in no order: the first row is empty if there are several, one is full, the rest differ.
inline std::vector<std::int32_t> uneven_lengths(std::int64_t time, std::int64_t batch) {
  std::vector<std::int32_t> lengths;
  for (std::int64_t b = 0; b < batch; ++b) {
    lengths.push_back(static_cast<std::int32_t>((b * 5 + time * (b % 2)) % (time + 1)));
  }
  if (batch > 1) lengths[static_cast<std::size_t>(batch / 2)] = static_cast<std::int32_t>(time);
  return lengths;
}

namespace detail {

inline bool set_norm(RnnSpec& s, const std::string& word) {
  if (word.starts_with("norm=")) {
    s.layer_norm = parse_layer_norm(word.substr(5));
  } else if (word.starts_with("cell_norm=")) {
    s.layer_norm_cell = parse_layer_norm_cell(word.substr(10));
  } else if (word == "tiny_epsilon") {
    s.layer_norm_epsilon = 1e-12;
  } else {
    return false;
  }
  return true;
}

inline bool set_word(Case& c, const std::string& word) {
  RnnSpec& s = c.spec;
  if (word == "lstm" || word == "gru" || word == "rnn_tanh" || word == "rnn_relu") {
    s.mode = parse_rnn_mode(word);
  } else if (word == "bi") {
    s.direction = Direction::kBidirectional;
  } else if (word == "skip") {
    s.input_mode = InputMode::kSkipInput;
  } else if (word == "auto") {
    s.input_mode = InputMode::kAutoSelect;
  } else if (word == "f16" || word == "f32" || word == "f64") {
    s.dtype = parse_dtype("float" + word.substr(1));
  } else if (word == "b16") {
    s.dtype = DType::kBfloat16;
  } else if (word == "bf16" || word == "bf16x3" || word == "tf32" || word == "fp16") {
    s.compute.math = parse_math(word);
  } else if (word.starts_with("stored_")) {
    s.compute.weights_dtype = parse_weights_dtype(word.substr(7));
  } else if (word == "batch_major") {
    c.time_major = false;
  } else if (word == "null_states") {
    c.null_states = true;
  } else if (word == "clip") {
    s.cell_clip = {{-0.3, 0.25}};
  } else if (word == "forget") {
    s.forget_bias = 0.8125;
  } else if (word == "reset_before") {
    s.reset_after = false;
  } else if (word == "peepholes") {
    s.use_peepholes = true;
  } else if (word == "coupled") {
    s.coupled_gates = true;
  } else if (word == "no_bias") {
    s.use_bias = false;
  } else if (word == "one_bias") {
    s.single_bias = true;
  } else if (word == "proj_clip") {
    s.proj_clip = {{-0.2, 0.15}};
  } else if (word == "gate_clip") {
    s.gate_clip = {{-0.45, 0.35}};
  } else if (word.starts_with("drop_state=") || word.starts_with("drop_candidate=")) {
    s.training.recurrent_dropout = std::stod(word.substr(word.find('=') + 1));
    s.training.recurrent_dropout_form = word.starts_with("drop_state")
                                            ? RecurrentDropoutForm::kState
                                            : RecurrentDropoutForm::kCandidate;
  } else if (word.starts_with("zone=")) {
    s.zoneout = std::stod(word.substr(5));
  } else if (word.starts_with("zone_cell=")) {
    s.zoneout_cell = std::stod(word.substr(10));
  } else if (word.starts_with("act=")) {
    s.activation = parse_cell_activation(word.substr(4));
  } else if (word.starts_with("gates=")) {
    s.recurrent_activation = parse_cell_activation(word.substr(6));
  } else if (word.starts_with("out=")) {
    s.output_activation = parse_cell_activation(word.substr(4));
  } else {
    return word == "lengths";
  }
  return true;
}

inline bool set_size(Case& c, const std::string& word) {
  const std::string text = word.substr(1);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return false;
  const auto size = static_cast<std::int64_t>(value);
  switch (word[0]) {
    case 'L':
      c.spec.num_layers = size;
      return true;
    case 'U':
      c.spec.num_units = size;
      return true;
    case 'I':
      c.spec.input_size = size;
      return true;
    case 'P':
      c.spec.num_proj = size;
      return true;
    case 'B':
      c.batch = size;
      return true;
    case 'T':
      c.time = size;
      return true;
    case 'D':
      c.spec.training.dropout = value;
      return true;
    default:
      return false;
  }
}

}  // namespace detail

/// "lstm L2 U17 I3 B7 T5 P4 D0.5 bi skip|auto f16|b16|f32|f64 lengths batch_major null_states
/// clip forget reset_before peepholes coupled no_bias one_bias proj_clip gate_clip act=relu
/// gates=hard_sigmoid(0.2,0.5) out=softsign drop_state=0.5 drop_candidate=0.5 zone=0.25
/// zone_cell=0.5 norm=products cell_norm=output tiny_epsilon
/// bf16|bf16x3|tf32|fp16|stored_float16|stored_bfloat16|stored_int8". Throws: ArgumentError naming
/// a word that is not understood.
inline Case parse_case(const std::string& text, const std::string& reason) {
  Case c;
  c.text = text;
  c.reason = reason;
  std::istringstream words(text);
  bool lengths = false;
  for (std::string word; words >> word;) {
    if (!detail::set_word(c, word) && !detail::set_norm(c.spec, word) &&
        !detail::set_size(c, word)) {
      throw ArgumentError("[parse_case] word is '" + word +
                          "', expected one of the words of a case");
    }
    lengths |= word == "lengths";
  }
  if (lengths) c.lengths = uneven_lengths(c.time, c.batch);
  c.spec.validate();
  return c;
}

/// A name that GoogleTest takes: letters, digits and underscores.
inline std::string test_name(std::string text) {
  for (char& letter : text) {
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  }
  return text;
}
inline std::string test_name(const Case& c) { return test_name(c.reason + "__" + c.text); }

/// Whether sizes shrink, for builds that are many times slower.
inline bool reduced() {
  const char* text = std::getenv("OPENRNN_TEST_REDUCED");
  return text && std::string(text) == "1";
}

}  // namespace openrnn::conformance
