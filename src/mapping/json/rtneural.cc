// RTNeural has a layer's weights as Keras's get_weights() gives them.
#include "mapping/json/rtneural.h"

#include <unordered_set>

#include "base/message.h"
#include "mapping/json/json.h"
#include "mapping/support/keras_arrays.h"

namespace openrnn::mapping {

namespace {

// The network that a layer's arrays make by their shapes; nothing if they make none.
std::optional<RnnSpec> layer_spec(RnnMode mode, std::span<const TensorInfo* const> arrays) {
  const Shape &kernel = arrays[0]->shape, &recurrent = arrays[1]->shape;
  if (kernel.size() != 2 || recurrent.size() != 2) return std::nullopt;
  RnnSpec spec{.mode = mode, .num_units = recurrent[0], .input_size = kernel[0]};
  spec.use_bias = arrays.size() == 3;
  const bool two = spec.use_bias && arrays[2]->shape.size() == 2;
  spec.single_bias = spec.use_bias && !two;
  // Keras has the recurrent bias apart where the reset gate comes after the product.
  if (mode == RnnMode::kGru && spec.use_bias) spec.reset_after = two;
  if (spec.num_units < 1 || spec.input_size < 1) return std::nullopt;
  try {
    spec.validate();
  } catch (const ArgumentError&) {
    return std::nullopt;
  }
  const std::vector<Shape> expected = keras_shapes(ParamsLayout(spec), {});
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i]->shape != expected[i]) return std::nullopt;
  }
  return spec;
}

/// One layer of a network.
struct CellLayer {
  std::size_t number = 0;
  std::string name;  // of the network, where we wrote it
  RnnSpec spec;
  std::vector<Array> arrays;
  std::vector<std::string> tensors;
};

std::optional<CellLayer> read_cell(const ModelFile& file, const RtneuralLayer& given,
                                   std::vector<std::string>* notes) {
  const RnnMode mode = given.type == "lstm" ? RnnMode::kLstm : RnnMode::kGru;
  const std::size_t count = given.weights.size();
  const std::optional<RnnSpec> spec =
      count == 2 || count == 3 ? layer_spec(mode, given.weights) : std::nullopt;
  if (!spec) {
    notes->push_back(message("no network was made from '", given.place(), "': its ", count,
                             " arrays have not the shapes of a ", to_string(mode)));
    return std::nullopt;
  }
  CellLayer layer{.number = given.number,
                  .name = given.given_name.value_or(given.place()),
                  .spec = *spec,
                  .arrays = {},
                  .tensors = {}};
  for (const TensorInfo* info : given.weights) {
    layer.arrays.push_back(file.read(info->name));
    layer.tensors.push_back(info->name);
  }
  return layer;
}

// Layers one behind the other that have one name are one network.
bool continues(const CellLayer& before, const CellLayer& layer) {
  RnnSpec as_before = layer.spec;
  as_before.input_size = before.spec.input_size;
  return layer.number == before.number + 1 && layer.name == before.name &&
         as_before == before.spec && layer.spec.input_size == before.spec.num_units;
}

MappedNetwork network_of(std::span<CellLayer> layers) {
  RnnSpec spec = layers[0].spec;
  spec.num_layers = static_cast<std::int64_t>(layers.size());
  const ParamsLayout layout(spec);
  MappedNetwork network{
      .name = layers[0].name, .spec = spec, .params = Array(spec.dtype, {layout.size()})};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    std::vector<ConstArrayView> views;
    for (const Array& array : layers[i].arrays) views.push_back(array.view());
    set_from_keras(layout, {.layer = static_cast<std::int64_t>(i)}, views, &network.params);
    network.tensors.insert(network.tensors.end(), layers[i].tensors.begin(),
                           layers[i].tensors.end());
  }
  return network;
}

// Tensors that neither a network nor a layer was made from.
std::vector<std::string> not_taken(const ModelFile& file, const MappedModel& model) {
  std::unordered_set<std::string_view> taken;
  for (const MappedNetwork& one : model.networks) {
    taken.insert(one.tensors.begin(), one.tensors.end());
  }
  for (const MappedLayer& one : model.layers) taken.insert(one.tensors.begin(), one.tensors.end());
  std::vector<std::string> names;
  for (const TensorInfo& info : file.tensors()) {
    if (!taken.contains(info.name)) names.push_back(info.name);
  }
  return names;
}

}  // namespace

MappedModel map_rtneural(const ModelFile& file) {
  MappedModel model{.kind = file.kind(), .values = file.values()};
  const std::vector<RtneuralLayer> given = rtneural_layers(file);
  std::vector<CellLayer> cells;
  for (const RtneuralLayer& layer : given) {
    if (!layer.is_recurrent()) continue;
    std::optional<CellLayer> cell = read_cell(file, layer, &model.notes);
    if (cell) cells.push_back(std::move(*cell));
  }
  RtneuralNetworks networks;
  for (std::size_t first = 0; first < cells.size();) {
    std::size_t last = first + 1;
    while (last < cells.size() && continues(cells[last - 1], cells[last])) ++last;
    for (std::size_t i = first; i < last; ++i) networks[cells[i].number];
    networks[cells[first].number] = cells[first].name;
    model.networks.push_back(network_of(std::span(cells).subspan(first, last - first)));
    first = last;
  }
  add_rtneural_layers(file, given, networks, &model);
  model.not_understood = not_taken(file, model);
  return model;
}

}  // namespace openrnn::mapping
