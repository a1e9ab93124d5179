// What the names of TensorFlow's variables say.
#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "mapping/tensorflow/cells.h"

namespace openrnn::mapping {

namespace {

// Longer ones come first. The second name is that of TensorFlow 1.0 and 1.1.
struct TfSuffix {
  std::string_view name, old_name;
};
constexpr TfSuffix kTfSuffixes[] = {
    {"candidate/input_projection/kernel", {}},
    {"candidate/input_projection/bias", {}},
    {"candidate/hidden_projection/kernel", {}},
    {"candidate/hidden_projection/bias", {}},
    {"gates/kernel", "gates/weights"},
    {"gates/bias", "gates/biases"},
    {"candidate/kernel", "candidate/weights"},
    {"candidate/bias", "candidate/biases"},
    {"projection/kernel", "projection/weights"},
    {"input/gamma", {}},
    {"input/beta", {}},
    {"transform/gamma", {}},
    {"transform/beta", {}},
    {"forget/gamma", {}},
    {"forget/beta", {}},
    {"output/gamma", {}},
    {"output/beta", {}},
    {"state/gamma", {}},
    {"state/beta", {}},
    {"recurrent_kernel", {}},
    {"kernel", "weights"},
    {"bias", "biases"},
    {"w_f_diag", {}},
    {"w_i_diag", {}},
    {"w_o_diag", {}},
};

bool has_tail(std::string_view name, std::string_view tail) {
  return !tail.empty() && name.ends_with(tail) &&
         (name.size() == tail.size() || name[name.size() - tail.size() - 1] == '/');
}

// The last part of a scope is taken off.
std::string_view take_part(std::string_view* scope) {
  const std::size_t slash = scope->rfind('/');
  const std::string_view part = slash == std::string_view::npos ? *scope : scope->substr(slash + 1);
  *scope = slash == std::string_view::npos ? std::string_view() : scope->substr(0, slash);
  return part;
}

std::string_view last_part(std::string_view scope) { return take_part(&scope); }

// N of 'cell_N'. More layers than four digits can count are none of a network.
std::optional<std::int64_t> layer_number(std::string_view part) {
  constexpr std::string_view kCell = "cell_";
  constexpr std::size_t kMostDigits = 4;
  if (!part.starts_with(kCell) || part.size() > kCell.size() + kMostDigits) return std::nullopt;
  std::int64_t number = 0;
  const char* const end = part.data() + part.size();
  const auto [stop, error] = std::from_chars(part.data() + kCell.size(), end, number);
  if (error != std::errc() || stop != end || number < 0) return std::nullopt;
  return number;
}

bool drop_part(std::string_view* scope, std::string_view part) {
  if (last_part(*scope) != part) return false;
  take_part(scope);
  return true;
}

// fw and bw of TensorFlow 1's loops.
bool place_two_directions(std::string_view rest, TfCell* cell) {
  const std::string_view way = take_part(&rest);
  if ((way != "fw" && way != "bw") || !drop_part(&rest, "bidirectional_rnn")) return false;
  cell->bidirectional = true;
  cell->direction = way == "bw" ? 1 : 0;
  std::string_view stack = rest;
  const std::optional<std::int64_t> layer = layer_number(take_part(&stack));
  if (layer && drop_part(&stack, "stack_bidirectional_rnn")) {
    cell->layer = *layer;
    rest = stack;
  }
  cell->network = rest;
  return true;
}

// 'forward_lstm' and 'backward_lstm' below Keras's Bidirectional.
bool place_keras_direction(std::string_view rest, TfCell* cell) {
  const std::string_view way = take_part(&rest);
  const bool forward = way.starts_with("forward_");
  if ((!forward && !way.starts_with("backward_")) || rest.empty()) return false;
  cell->bidirectional = true;
  cell->direction = forward ? 0 : 1;
  cell->network = rest;
  return true;
}

}  // namespace

std::vector<TfScope> tf_scopes(const std::vector<TfVariable>& variables,
                               std::vector<const TfVariable*>* others) {
  std::vector<TfScope> scopes;
  std::unordered_map<std::string, std::size_t> numbers;
  for (const TfVariable& variable : variables) {
    std::string_view name = variable.name;
    if (name.ends_with(":0")) name.remove_suffix(2);
    const auto* const suffix =
        std::find_if(std::begin(kTfSuffixes), std::end(kTfSuffixes), [&](const TfSuffix& one) {
          return has_tail(name, one.name) || has_tail(name, one.old_name);
        });
    if (suffix == std::end(kTfSuffixes)) {
      others->push_back(&variable);
      continue;
    }
    const std::size_t tail =
        has_tail(name, suffix->name) ? suffix->name.size() : suffix->old_name.size();
    const std::string scope(name.substr(0, name.size() - std::min(name.size(), tail + 1)));
    const auto [at, is_new] = numbers.emplace(scope, scopes.size());
    if (is_new) scopes.push_back({scope, {}});
    if (!scopes[at->second].tensors.emplace(suffix->name, &variable).second) {
      others->push_back(&variable);
    }
  }
  return scopes;
}

void place_tf_cell(TfCell* cell) {
  std::string_view rest = cell->scope->scope;
  const std::string_view name = take_part(&rest);
  if (cell->is_keras) {
    if (place_keras_direction(rest, cell) || place_keras_direction(cell->scope->scope, cell)) {
      return;
    }
    // 'lstm/lstm_cell', and 'lstm' of older versions.
    cell->network = name.find("_cell") == std::string_view::npos || rest.empty()
                        ? std::string_view(cell->scope->scope)
                        : rest;
    return;
  }
  std::string_view stack = rest;
  if (const std::optional<std::int64_t> layer = layer_number(take_part(&stack));
      layer && drop_part(&stack, "multi_rnn_cell")) {
    // A stack in each direction is no stack of two directions, unless it has one layer.
    if (*layer == 0 && place_two_directions(stack, cell)) return;
    cell->layer = *layer;
    drop_part(&stack, "rnn");
    cell->network = stack;
    return;
  }
  if (place_two_directions(rest, cell)) return;
  drop_part(&rest, "rnn");
  cell->network = rest;
}

}  // namespace openrnn::mapping
