#include <unordered_set>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/keras/cells.h"
#include "mapping/keras/config.h"
#include "mapping/keras/fields.h"
#include "mapping/keras/keras.h"
#include "mapping/keras/slots.h"
#include "mapping/keras/whole.h"
#include "mapping/support/options.h"

namespace openrnn::mapping {

namespace {

/// What a whole file says.
struct KerasFile {
  const ModelFile& file;
  const MappingHints& hints;
  KerasVersion version = {};
  std::optional<KerasConfig> config = {};
};

const KerasLayer* find_layer(const KerasFile& keras, const KerasUnit& unit) {
  if (!keras.config) return nullptr;
  const KerasConfig& config = *keras.config;
  if (keras.file.kind() == FileKind::kKerasArchive) {
    constexpr std::string_view kOldRoot = "_layer_checkpoint_dependencies/";
    const std::string path =
        unit.path.starts_with(kOldRoot) ? "layers/" + unit.path.substr(kOldRoot.size()) : unit.path;
    const auto found = config.by_path.find(path);
    return found == config.by_path.end() ? nullptr : &config.layers[found->second];
  }
  for (const std::string& part : split_path(unit.path)) {
    const auto found = config.by_name.find(part);
    if (found != config.by_name.end()) return &config.layers[found->second];
  }
  return nullptr;
}

// Stacked cells that differ are a network each.
std::vector<KerasUnit> parts_of(const KerasFile& keras, const KerasUnit& unit) {
  const KerasLayer* const layer = find_layer(keras, unit);
  const bool matches = layer && layer->fault.empty() && layer->cells.size() == unit.cells.size();
  bool differ = false;
  for (std::size_t i = 1; i < unit.cells.size(); ++i) {
    if (unit.cells[i].backward || unit.cells[i].tensors.size() < 2) return {unit};
    const CellShape first = shape_of(unit.cells[0]), one = shape_of(unit.cells[i]);
    differ |= first.units != one.units || first.gates != one.gates || first.biases != one.biases;
    if (matches) differ |= layer->cells[i] != layer->cells[0];
  }
  if (!differ || (layer && !matches)) return {unit};
  std::vector<KerasUnit> parts;
  for (std::size_t i = 0; i < unit.cells.size(); ++i) {
    parts.push_back({unit.path, message(unit.name, "_", i), {unit.cells[i]}, i});
  }
  return parts;
}

// What all cells of the unit are, by the configuration; without one by their shapes alone.
KerasOptions options_of(const KerasFile& keras, const KerasUnit& unit, const CellShape& shape,
                        MappedModel* model) {
  const RnnMode mode = shape.gates == 4   ? RnnMode::kLstm
                       : shape.gates == 3 ? RnnMode::kGru
                                          : RnnMode::kRnnTanh;
  if (!keras.config) return {.mode = mode, .cudnn = shape.form == KerasForm::kCudnn};
  const KerasLayer* const layer = find_layer(keras, unit);
  if (!layer) {
    throw NoKerasLayer{"the configuration has no recurrent layer that is known in its place"};
  }
  if (!layer->fault.empty()) throw NoKerasLayer{layer->fault};
  const std::size_t number = unit.cell_number.value_or(0);
  if (!unit.cell_number && layer->cells.size() + layer->backward.size() != unit.cells.size()) {
    throw NoKerasLayer{message("it has tensors of ", unit.cells.size(), " cells, expected ",
                               layer->cells.size() + layer->backward.size())};
  }
  if (layer->merge_mode != "concat") {
    model->notes.push_back(message(network_called(unit.name), " has merge_mode '",
                                   excerpt(layer->merge_mode),
                                   "': its model merges the two halves of its output"));
  }
  if (layer->reverse && number == 0) {
    model->notes.push_back(message(network_called(unit.name),
                                   " has go_backwards: its model gives "
                                   "it the steps from the last to the first"));
  }
  const KerasOptions& options = layer->cells.at(number);
  if (options.mode != mode || (options.cudnn && shape.form != KerasForm::kCudnn)) {
    throw NoKerasLayer{"its tensors do not fit the class of its layer"};
  }
  return options;
}

[[noreturn]] void ask(const KerasFile& keras, const KerasUnit& unit, const std::string& what) {
  throw ArgumentError(
      message("[load_networks] ", network_called(unit.name), " in ", keras.file.path(), what));
}

// Keras's gates were hard_sigmoid before version 2.3, and TensorFlow 1 and 2 both said 2.2.4-tf.
CellActivation default_recurrent(const KerasFile& keras, const KerasUnit& unit,
                                 MappedModel* model) {
  if (keras.hints.recurrent_activation) return *keras.hints.recurrent_activation;
  const KerasVersion& version = keras.version;
  if (version.major < 2 || (version.major == 2 && version.minor < 3)) {
    ask(keras, unit,
        " has no configuration, and its version has sigmoid or hard_sigmoid, expected the hint "
        "recurrent_activation");
  }
  model->notes.push_back(message("of ", network_called(unit.name),
                                 " the file says no activations: they are Keras's own"));
  return make_cell_activation(CellActivationKind::kSigmoid);
}

bool resets_after(const KerasFile& keras, const KerasUnit& unit, const CellShape& shape,
                  const KerasOptions& options) {
  if (shape.biases > 0) {
    const bool after = shape.biases == 2;
    if (options.reset_after && *options.reset_after != after) {
      throw NoKerasLayer{message("reset_after is ", after ? "false" : "true",
                                 " in its configuration and not by its bias")};
    }
    return after;
  }
  if (options.reset_after) return *options.reset_after;
  if (keras.hints.reset_after) return *keras.hints.reset_after;
  ask(keras, unit,
      " is a gru without biases and without a configuration, expected the hint "
      "reset_after");
}

DType dtype_of(const KerasCell& cell) {
  for (const DType one : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    if (cell.tensors[0]->dtype == dtype_name(one)) return one;
  }
  throw NoKerasLayer{
      message("its kernel is ", excerpt(cell.tensors[0]->dtype), ", expected floating point")};
}

RnnSpec spec_of(const KerasFile& keras, const KerasUnit& unit, MappedModel* model) {
  const auto backward = static_cast<std::int64_t>(std::count_if(
      unit.cells.begin(), unit.cells.end(), [](const KerasCell& cell) { return cell.backward; }));
  const auto cells = static_cast<std::int64_t>(unit.cells.size());
  if (backward > 0 && (cells != 2 || backward != 1)) {
    throw NoKerasLayer{
        "it has several cells in two directions, whose outputs meet at its end alone"};
  }
  const CellShape shape = shape_of(unit.cells[0]);
  const KerasOptions options = options_of(keras, unit, shape, model);
  RnnSpec spec{.mode = options.mode, .num_units = shape.units, .input_size = shape.input};
  spec.num_layers = cells - backward;
  if (backward) spec.direction = Direction::kBidirectional;
  spec.dtype = dtype_of(unit.cells[0]);
  spec.use_bias = shape.biases > 0;
  spec.single_bias = shape.biases == 1;
  if (spec.mode == RnnMode::kGru) spec.reset_after = resets_after(keras, unit, shape, options);
  if (options.cudnn) return spec;
  spec.activation = options.activation;
  if (spec.num_gates() == 1) return plainest(spec);
  if (spec.is_lstm()) spec.output_activation = options.activation;
  spec.recurrent_activation = options.recurrent_activation ? options.recurrent_activation
                                                           : default_recurrent(keras, unit, model);
  return plainest(spec);
}

MappedNetwork read_unit(const KerasFile& keras, const KerasUnit& unit, MappedModel* model) {
  const RnnSpec spec = spec_of(keras, unit, model);
  try {
    spec.validate();
  } catch (const ArgumentError& error) {
    throw NoKerasLayer{error.what()};
  }
  const ParamsLayout layout(spec);
  MappedNetwork network{
      .name = unit.name, .spec = spec, .params = Array(spec.dtype, {layout.size()})};
  std::int64_t layer = 0;
  for (const KerasCell& cell : unit.cells) {
    const KerasPlace place{.layer = cell.backward ? 0 : layer++,
                           .direction = cell.backward ? 1 : 0,
                           .form = shape_of(cell).form};
    const std::vector<Shape> shapes = keras_shapes(layout, place);
    for (std::size_t i = 0; i < cell.tensors.size(); ++i) {
      const TensorInfo& info = *cell.tensors[i];
      if (shapes.size() != cell.tensors.size() || info.shape != shapes[i] ||
          info.dtype != dtype_name(spec.dtype)) {
        throw NoKerasLayer{message("'", excerpt(info.name), "' is ", excerpt(info.dtype), " ",
                                   to_string(info.shape), ", which does not fit the others")};
      }
      // Some rows at a time: no second copy of a large network.
      keras.file.read_rows(info.name, [&](std::int64_t first, const ConstArrayView& rows) {
        set_keras_rows(layout, place, i, first, rows, &network.params);
      });
      network.tensors.push_back(info.name);
    }
  }
  return network;
}

KerasVersion version_in(const ModelFile& file, const ValueIndex& values) {
  if (file.kind() == FileKind::kKerasWeights) return {.major = 3};
  if (file.kind() == FileKind::kKerasH5) {
    const std::string root = values.text("keras_version");
    return keras_version_of(root.empty() ? values.text("model_weights/keras_version") : root);
  }
  const nlohmann::json metadata =
      nlohmann::json::parse(values.text("metadata.json"), nullptr, false);
  const bool said = metadata.is_object() && metadata.contains("keras_version") &&
                    metadata["keras_version"].is_string();
  return said ? keras_version_of(metadata["keras_version"].get<std::string>())
              : KerasVersion{.major = 3};
}

}  // namespace

MappedModel map_keras(const ModelFile& file, const MappingHints& hints) {
  MappedModel model{.kind = file.kind(), .values = file.values()};
  const ValueIndex values(file.values());
  KerasFile keras{.file = file, .hints = hints, .version = version_in(file, values)};
  const bool archive = file.kind() == FileKind::kKerasArchive;
  const std::string config = values.text(archive ? "config.json" : "model_config");
  if (!config.empty()) {
    keras.config = parse_keras_config(file.path(), config, keras.version.major);
  }
  std::unordered_set<std::string> taken, names;
  NetworksOfLayers networks;
  for (KerasUnit& unit : find_keras_units(file, values)) {
    if (!names.insert(unit.name).second) names.insert(unit.name = unit.path);
    try {
      const KerasLayer* const layer = find_layer(keras, unit);
      if (layer) order_cells(*layer, &unit.cells);
      std::vector<MappedNetwork> made;
      for (const KerasUnit& part : parts_of(keras, unit)) {
        made.push_back(read_unit(keras, part, &model));
      }
      for (MappedNetwork& network : made) {
        taken.insert(network.tensors.begin(), network.tensors.end());
        if (layer) networks[layer - keras.config->layers.data()].push_back(network.name);
        model.networks.push_back(std::move(network));
      }
    } catch (const NoKerasLayer& reason) {
      model.notes.push_back(
          message("no network was made from '", excerpt(unit.name), "': ", reason.why));
    }
  }
  if (keras.config) {
    add_keras_layers({file, values, *keras.config, networks, keras.version.major}, config, &model);
    for (const MappedLayer& layer : model.layers) {
      taken.insert(layer.tensors.begin(), layer.tensors.end());
    }
    for (std::string& name : add_keras_slots(file, values, &model)) taken.insert(std::move(name));
  }
  for (const TensorInfo& info : file.tensors()) {
    if (!taken.contains(info.name)) model.not_understood.push_back(info.name);
  }
  const std::string joined = values.text(kKerasNetworks);
  if (!joined.empty()) join_keras_layers(file.path(), joined, &model);
  return model;
}

}  // namespace openrnn::mapping
