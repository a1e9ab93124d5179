// The configuration of a Keras model: which recurrent layers there are, and their options.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// What a configuration says of one recurrent layer, in one direction.
struct KerasOptions {
  RnnMode mode = RnnMode::kLstm;
  /// Nothing: the file does not say.
  std::optional<CellActivation> activation = {}, recurrent_activation = {};
  std::optional<bool> reset_after = {};
  bool cudnn = false;
  bool go_backwards = false;

  friend bool operator==(const KerasOptions&, const KerasOptions&) = default;
};

struct KerasLayer {
  std::string name;
  /// Of one cell, or of each of the stacked ones.
  std::vector<KerasOptions> cells;
  /// Of a Bidirectional layer.
  std::vector<KerasOptions> backward = {};
  std::string merge_mode = "concat";
  /// Reads the steps from the last to the first; of a layer of one direction.
  bool reverse = false;
  /// Why it is no network; empty where it is one.
  std::string fault = {};
};

/// The recurrent layers of a model, in its order.
struct KerasConfig {
  std::vector<KerasLayer> layers;
  /// Their numbers by name, and by the paths at which Keras 3 saves them ('layers/lstm_1').
  std::map<std::string, std::size_t, std::less<>> by_name, by_path;
};

/// Of a model's JSON; `keras_major` tells which hard_sigmoid is meant. `path` is for messages.
/// Throws: FormatError for what is no JSON.
KerasConfig parse_keras_config(const std::string& path, std::string_view json, int keras_major);

/// Whether a layer of this class is one of `layers`.
bool is_keras_recurrent(std::string_view type);
/// The name of a class as Keras has it in paths: 'SimpleRNN' is 'simple_rnn'.
std::string keras_snake_case(const std::string& name);

/// Keras 3's name of a function, nothing for one that it has none for.
std::optional<std::string> keras_name_of(const CellActivation& activation);

}  // namespace openrnn::mapping
