#include "mapping/keras/slots.h"

#include <map>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/support/keras_arrays.h"

namespace openrnn::mapping {

namespace {

// The step and the learning rate come before the slots.
constexpr std::size_t kCounters = 2;

// The optimizer's variables in its order; `name` is what Keras calls it.
std::vector<std::string> optimizer_variables(const ModelFile& file, const ValueIndex& values,
                                             std::string* name) {
  std::vector<std::string> found;
  if (file.kind() == FileKind::kKerasH5) {
    for (const std::string& one : values.texts("optimizer_weights/weight_names")) {
      if (!file.contains("optimizer_weights/" + one)) return {};
      found.push_back("optimizer_weights/" + one);
    }
    if (!found.empty()) {
      const std::string first = values.texts("optimizer_weights/weight_names")[0];
      *name = first.substr(0, first.find('/'));
    }
    return found;
  }
  while (file.contains(message("optimizer/vars/", found.size()))) {
    found.push_back(message("optimizer/vars/", found.size()));
  }
  *name = values.text("optimizer/vars/name");
  return found;
}

// Of each variable, one behind the other.
std::vector<std::string> slot_names(std::string_view optimizer) {
  if (optimizer.starts_with("adam")) return {"m", "v"};
  if (optimizer.starts_with("sgd")) return {"momentum"};
  // Keras 3 makes the name from the class, RMSprop.
  if (optimizer.starts_with("rmsprop") || optimizer.starts_with("rm_sprop")) return {"rms"};
  if (optimizer.starts_with("adagrad")) return {"accumulator"};
  return {};
}

// The tensors of the trainable variables, in the order of Keras's trainable_variables.
std::vector<std::string> trainable_tensors(const MappedModel& model) {
  std::map<std::string_view, const MappedNetwork*> networks;
  for (const MappedNetwork& network : model.networks) networks[network.name] = &network;
  std::vector<std::string> tensors;
  for (const MappedLayer& layer : model.layers) {
    const auto trainable = layer.options.find("trainable");
    if (trainable != layer.options.end() && !std::get<bool>(trainable->second)) continue;
    const std::vector<std::string>& of_layer =
        layer.kind == "recurrent"
            ? networks.at(layer_option_as<std::string>(layer, "network"))->tensors
            : layer.tensors;
    tensors.insert(tensors.end(), of_layer.begin(), of_layer.end());
  }
  return tensors;
}

/// The tensors of a slot by those of the variables.
using SlotTensors = std::map<std::string, std::string>;

// All of them, or nothing.
std::optional<Array> slot_of_network(const ModelFile& file, const MappedNetwork& network,
                                     const SlotTensors& slots) {
  const ParamsLayout layout(network.spec);
  Array buffer(network.spec.dtype, {layout.size()});
  std::size_t next = 0;
  for (std::int64_t layer = 0; layer < network.spec.num_layers; ++layer) {
    for (std::int64_t direction = 0; direction < network.spec.num_dirs(); ++direction) {
      const KerasPlace place{.layer = layer, .direction = direction};
      std::vector<Array> arrays;
      std::vector<ConstArrayView> views;
      for (const Shape& shape : keras_shapes(layout, place)) {
        if (next == network.tensors.size()) return std::nullopt;
        const auto slot = slots.find(network.tensors[next++]);
        if (slot == slots.end()) return std::nullopt;
        arrays.push_back(file.read(slot->second));
        if (arrays.back().shape() != shape || arrays.back().dtype() != network.spec.dtype) {
          return std::nullopt;
        }
      }
      for (const Array& array : arrays) views.push_back(array.view());
      set_from_keras(layout, place, views, &buffer);
    }
  }
  return buffer;
}

}  // namespace

std::vector<std::string> add_keras_slots(const ModelFile& file, const ValueIndex& values,
                                         MappedModel* model) {
  std::string optimizer;
  const std::vector<std::string> found = optimizer_variables(file, values, &optimizer);
  if (found.size() <= kCounters || model->layers.empty()) return {};
  const std::vector<std::string> names = slot_names(optimizer),
                                 variables = trainable_tensors(*model);
  bool fits = !names.empty() && found.size() == kCounters + names.size() * variables.size();
  std::vector<SlotTensors> slots(names.size());
  for (std::size_t i = 0; fits && i < variables.size() * names.size(); ++i) {
    const std::string &variable = variables[i / names.size()], &slot = found[kCounters + i];
    const TensorInfo &of_variable = file.info(variable), &of_slot = file.info(slot);
    fits = of_slot.shape == of_variable.shape && of_slot.dtype == of_variable.dtype;
    slots[i % names.size()][variable] = slot;
  }
  if (!fits) {
    model->notes.push_back(message("the ", found.size(), " variables of the optimizer '",
                                   excerpt(optimizer), "' are not read: they are not those of ",
                                   variables.size(),
                                   " trainable variables as it is known to have"));
    return {};
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (MappedNetwork& network : model->networks) {
      std::optional<Array> slot = slot_of_network(file, network, slots[i]);
      if (slot) network.slots[names[i]] = std::move(*slot);
    }
    for (MappedLayer& layer : model->layers) {
      for (std::size_t w = 0; w < layer.weights.size(); ++w) {
        const auto slot = slots[i].find(layer.tensors[w]);
        if (slot != slots[i].end()) layer.weights[w].slots[names[i]] = file.read(slot->second);
      }
    }
  }
  return {found.begin() + kCounters, found.end()};
}

}  // namespace openrnn::mapping
