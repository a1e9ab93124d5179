#include "mapping/keras/config.h"

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/keras/fields.h"

namespace openrnn::mapping {

namespace {

using nlohmann::json;

constexpr int kMaxConfigDepth = 64;
constexpr double kSlopeOfKeras3 = 1.0 / 6.0, kSlopeOfKeras2 = 0.2;

struct FunctionName {
  const char* name;
  CellActivationKind kind;
};
// Those that are the same function in every version.
constexpr FunctionName kFunctions[] = {
    {"tanh", CellActivationKind::kTanh},         {"sigmoid", CellActivationKind::kSigmoid},
    {"relu", CellActivationKind::kRelu},         {"linear", CellActivationKind::kAffine},
    {"softsign", CellActivationKind::kSoftsign}, {"softplus", CellActivationKind::kSoftplus},
    {"elu", CellActivationKind::kElu},
};
constexpr double kLeakyRelu = 0.2;  // of the function; the layer of that name has its own

CellActivation named_function(const std::string& name, int keras_major) {
  for (const FunctionName& one : kFunctions) {
    if (name == one.name) return make_cell_activation(one.kind);
  }
  if (name == "hard_sigmoid") {
    const double slope = keras_major >= 3 ? kSlopeOfKeras3 : kSlopeOfKeras2;
    return {CellActivationKind::kHardSigmoid, slope, 0.5};
  }
  if (name == "leaky_relu") return {CellActivationKind::kLeakyRelu, kLeakyRelu, 0.0};
  throw NoKerasLayer{"the activation is '" + excerpt(name) + "', which no network here has"};
}

// A name, or a function with its name as configuration; null is the identity.
std::optional<CellActivation> parse_function(const json& config, const char* key, int keras_major) {
  const json* const value = member(config, key);
  if (!value) return std::nullopt;
  if (value->is_null()) return make_cell_activation(CellActivationKind::kAffine);
  if (value->is_string()) return named_function(value->get<std::string>(), keras_major);
  const std::string type = text_at(*value, "class_name");
  if (type == "function") return named_function(text_at(*value, "config"), keras_major);
  throw NoKerasLayer{"the activation is of class '" + excerpt(type) +
                     "', which no network here has"};
}

struct LayerClass {
  const char *layer, *cell, *path;
  RnnMode mode;
  bool cudnn;
};
constexpr LayerClass kLayerClasses[] = {
    {"LSTM", "LSTMCell", "lstm", RnnMode::kLstm, false},
    {"GRU", "GRUCell", "gru", RnnMode::kGru, false},
    {"SimpleRNN", "SimpleRNNCell", "simple_rnn", RnnMode::kRnnTanh, false},
    {"CuDNNLSTM", "", "cu_dnnlstm", RnnMode::kLstm, true},
    {"CuDNNGRU", "", "cu_dnngru", RnnMode::kGru, true},
};

const LayerClass* find_layer_class(std::string_view name, bool cell) {
  for (const LayerClass& one : kLayerClasses) {
    if (name == (cell ? one.cell : one.layer) && !name.empty()) return &one;
  }
  return nullptr;
}

KerasOptions parse_options(const LayerClass& type, const json& config, int keras_major) {
  KerasOptions options{.mode = type.mode, .cudnn = type.cudnn};
  options.go_backwards = flag_at(config, "go_backwards", false);
  if (type.cudnn) {
    options.activation = make_cell_activation(CellActivationKind::kTanh);
    options.recurrent_activation = make_cell_activation(CellActivationKind::kSigmoid);
    if (type.mode == RnnMode::kGru) options.reset_after = true;
    return options;
  }
  options.activation = parse_function(config, "activation", keras_major);
  if (type.mode == RnnMode::kRnnTanh) return options;
  // Keras 1 has 'inner_activation'.
  options.recurrent_activation = parse_function(config, "recurrent_activation", keras_major);
  if (!options.recurrent_activation) {
    options.recurrent_activation = parse_function(config, "inner_activation", keras_major);
  }
  // The option came with its default of before.
  if (type.mode == RnnMode::kGru) options.reset_after = flag_at(config, "reset_after", false);
  return options;
}

// An LSTM, or an RNN over one cell or several.
std::vector<KerasOptions> parse_cells(const json& node, int keras_major) {
  const std::string type = text_at(node, "class_name");
  const json& config = config_of(node);
  if (const LayerClass* found = find_layer_class(type, false)) {
    return {parse_options(*found, config, keras_major)};
  }
  if (type != "RNN") throw NoKerasLayer{"the class '" + excerpt(type) + "' is not known"};
  const json* const cell = member(config, "cell");
  std::vector<const json*> cells;
  if (cell && text_at(*cell, "class_name") == "StackedRNNCells") {
    const json* const list = member(config_of(*cell), "cells");
    if (list && list->is_array()) {
      for (const json& one : *list) cells.push_back(&one);
    }
  } else if (cell) {
    cells.push_back(cell);
  }
  std::vector<KerasOptions> options;
  for (const json* one : cells) {
    const std::string name = text_at(*one, "class_name");
    const LayerClass* const found = find_layer_class(name, true);
    if (!found) throw NoKerasLayer{"the cell is of class '" + excerpt(name) + "'"};
    options.push_back(parse_options(*found, config_of(*one), keras_major));
    options.back().go_backwards = flag_at(config, "go_backwards", false);
  }
  if (options.empty()) throw NoKerasLayer{"the RNN has no cell"};
  return options;
}

class ConfigWalk {
 public:
  ConfigWalk(KerasConfig* out, int keras_major) : out_(*out), keras_major_(keras_major) {}

  void walk_model(const json& model, const std::string& prefix, int depth) {
    const json& config = config_of(model);
    // In Keras 1 the layers are the configuration of a Sequential model.
    const json* const layers = config.is_array() ? &config : member(config, "layers");
    if (!layers || !layers->is_array() || depth == kMaxConfigDepth) return;
    std::map<std::string, int> numbers;
    for (const json& layer : *layers) {
      const std::string type = text_at(layer, "class_name"), snake = keras_snake_case(type);
      const int number = numbers[snake]++;
      const std::string path = prefix + "layers/" + snake + (number ? message("_", number) : "");
      if (is_keras_recurrent(type)) {
        add(layer, type, path);
      } else {
        walk_model(layer, path + "/", depth + 1);
      }
    }
  }

 private:
  void add(const json& node, const std::string& type, const std::string& path) {
    KerasLayer layer;
    const json& config = config_of(node);
    layer.name = text_at(config, "name");
    try {
      if (type == "Bidirectional") {
        parse_bidirectional(config, &layer);
      } else {
        layer.cells = parse_cells(node, keras_major_);
        layer.reverse = layer.cells[0].go_backwards;
        for (KerasOptions& cell : layer.cells) cell.go_backwards = false;
      }
    } catch (const NoKerasLayer& reason) {
      layer.fault = reason.why;
    }
    out_.by_name.emplace(layer.name, out_.layers.size());
    out_.by_path.emplace(path, out_.layers.size());
    out_.layers.push_back(std::move(layer));
  }

  void parse_bidirectional(const json& config, KerasLayer* layer) const {
    const json* const forward = member(config, "layer");
    if (!forward) throw NoKerasLayer{"it has no layer"};
    layer->cells = parse_cells(*forward, keras_major_);
    layer->backward = layer->cells;
    for (KerasOptions& cell : layer->backward) cell.go_backwards = !cell.go_backwards;
    const json* const backward = member(config, "backward_layer");
    if (backward && backward->is_object()) layer->backward = parse_cells(*backward, keras_major_);
    std::vector<KerasOptions> expected = layer->cells;
    for (KerasOptions& cell : expected) cell.go_backwards = true;
    if (layer->cells[0].go_backwards || layer->backward != expected) {
      throw NoKerasLayer{"its two directions differ by more than the direction"};
    }
    const json* const merge = member(config, "merge_mode");
    if (merge) layer->merge_mode = merge->is_string() ? merge->get<std::string>() : "none";
  }

  KerasConfig& out_;
  int keras_major_;
};

}  // namespace

KerasConfig parse_keras_config(const std::string& path, std::string_view text, int keras_major) {
  const json model = json::parse(text.begin(), text.end(), nullptr, false);
  if (model.is_discarded()) {
    throw FormatError(path, 0, "the model's configuration is no JSON, expected JSON");
  }
  KerasConfig config;
  ConfigWalk(&config, keras_major).walk_model(model, "", 0);
  return config;
}

std::string keras_snake_case(const std::string& name) {
  for (const LayerClass& one : kLayerClasses) {
    if (name == one.layer) return one.path;
  }
  const auto upper = [&](std::size_t i) { return name[i] >= 'A' && name[i] <= 'Z'; };
  const auto lower = [&](std::size_t i) { return name[i] >= 'a' && name[i] <= 'z'; };
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    // As Keras's own to_snake_case: Conv1DTranspose is conv1d_transpose.
    const bool begins =
        upper(i) && i > 0 && (lower(i - 1) || (i + 1 < name.size() && lower(i + 1)));
    if (begins) out += '_';
    out += static_cast<char>(upper(i) ? name[i] - 'A' + 'a' : name[i]);
  }
  return out;
}

bool is_keras_recurrent(std::string_view type) {
  return find_layer_class(type, false) || type == "RNN" || type == "Bidirectional";
}

std::optional<std::string> keras_name_of(const CellActivation& activation) {
  for (const FunctionName& one : kFunctions) {
    if (activation == make_cell_activation(one.kind)) return one.name;
  }
  if (activation == CellActivation{CellActivationKind::kHardSigmoid, kSlopeOfKeras3, 0.5}) {
    return "hard_sigmoid";
  }
  if (activation == CellActivation{CellActivationKind::kLeakyRelu, kLeakyRelu, 0.0}) {
    return "leaky_relu";
  }
  return std::nullopt;
}

}  // namespace openrnn::mapping
