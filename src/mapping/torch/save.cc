#include <algorithm>
#include <map>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/torch/objects_writer.h"
#include "mapping/support/biases.h"
#include "mapping/support/options.h"
#include "mapping/torch/checkpoint.h"

namespace openrnn::mapping {

namespace {

using formats::TorchObject;

// The network as PyTorch's modules have it: two biases or none, and nothing beside them.
MappedNetwork torch_form(const MappedNetwork& given, std::string_view format) {
  constexpr std::string_view kHeld[] = {"num_proj", "use_bias", "single_bias", "forget_bias"};
  MappedNetwork network = given;
  network.spec = plainest(network.spec);
  require_held("save_networks", network.name, network.spec, format, kHeld);
  network = without_forget_bias(network);
  return network.spec.use_bias ? with_biases(network, 2) : network;
}

constexpr std::string_view kModelKeys[] = {"model", "state_dict", "model_state_dict"};

// The dictionary of a checkpoint that all networks were in: 'model' of 'model.lstm'. Empty if there
// is none of these names, which programs have for a state_dict.
std::string_view common_key(const std::vector<NamedView>& views) {
  for (const std::string_view key : kModelKeys) {
    const bool all = std::ranges::all_of(views, [&](const NamedView& view) {
      return view.name.starts_with(key) && view.name.substr(key.size()).starts_with('.');
    });
    if (all) return key;
  }
  return {};
}

// One that no value is in.
std::string_view free_key(const std::vector<NamedValue>& values) {
  for (const std::string_view key : kModelKeys) {
    const bool taken = std::ranges::any_of(values, [&](const NamedValue& value) {
      return std::string_view(value.name).substr(0, value.name.find('.')) == key;
    });
    if (!taken) return key;
  }
  throw ArgumentError(
      "[save_networks] values are named model, state_dict and model_state_dict, "
      "expected one of them free for the weights");
}

/// Values by the parts of their names: dictionaries in dictionaries.
struct ValueTree {
  std::optional<TorchObject> leaf = {};
  std::vector<std::string> order = {};
  std::map<std::string, ValueTree> below = {};

  ValueTree& at(const std::string& key) {
    if (!below.contains(key)) order.push_back(key);
    return below[key];
  }
  // Dictionaries under 0, 1, .. are a list; plain values in one would be a single value.
  bool is_list() const {
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i] != std::to_string(i) || below.at(order[i]).leaf) return false;
    }
    return !order.empty();
  }
  TorchObject object() && {
    if (leaf) return std::move(*leaf);
    TorchObject out{.kind = is_list() ? TorchObject::Kind::kList : TorchObject::Kind::kDict};
    for (const std::string& key : order) out.add(key, std::move(below.at(key)).object());
    return out;
  }
};

/// Puts an object at its name; false where a part of the name is a value, or names of others begin
/// with it.
bool place(ValueTree& root, std::string_view name, TorchObject object) {
  ValueTree* at = &root;
  for (std::size_t point = name.find('.'); point != std::string_view::npos;
       point = name.find('.')) {
    at = &at->at(std::string(name.substr(0, point)));
    if (at->leaf) return false;
    name.remove_prefix(point + 1);
  }
  ValueTree& last = at->at(std::string(name));
  if (last.leaf || !last.below.empty()) return false;
  last.leaf = std::move(object);
  return true;
}

// {"state": {0: {"exp_avg": .., "step": ..}}, "param_groups": [{"lr": .., "params": [0, 1]}]}.
// Names of parameters, from `name_start` on, only where their order does not tell which they are.
TorchObject optimizer_object(const TorchCheckpoint& checkpoint, std::size_t name_start) {
  const TorchOptimizerState& optimizer = *checkpoint.optimizer;
  const std::vector<NamedView>& views = checkpoint.tensors.views;
  const bool in_order =
      optimizer.groups.size() == 1 && optimizer.groups[0].parameters.size() == views.size();
  TorchObject state{.kind = TorchObject::Kind::kNumbered};
  for (const TorchSlotView& slot : optimizer.slots) {
    const std::string number = std::to_string(slot.number);
    if (state.items.empty() || state.items.back().first != number) {
      state.add(number, {.kind = TorchObject::Kind::kDict});
      if (optimizer.step) {
        state.items.back().second.add(std::string(kTorchStep),
                                      TorchObject::of_tensor(optimizer.step->view()));
      }
    }
    state.items.back().second.add(slot.slot, TorchObject::of_tensor(slot.values));
  }
  TorchObject groups{.kind = TorchObject::Kind::kList};
  for (const TorchOptimizerState::Group& group : optimizer.groups) {
    TorchObject options{.kind = TorchObject::Kind::kDict};
    for (const NamedValue& option : group.options) {
      options.add(option.name, TorchObject::of(option.value));
    }
    options.add("params", TorchObject::of(group.parameters));
    std::vector<std::string> names;
    for (const std::int64_t number : group.parameters) {
      names.push_back(views[static_cast<std::size_t>(number)].name.substr(name_start));
    }
    if (!in_order) options.add("param_names", TorchObject::of(std::move(names)));
    groups.add({}, std::move(options));
  }
  TorchObject out{.kind = TorchObject::Kind::kDict};
  out.add("state", std::move(state));
  out.add("param_groups", std::move(groups));
  return out;
}

TorchObject checkpoint_object(const TorchCheckpoint& checkpoint) {
  const std::string_view found = common_key(checkpoint.tensors.views);
  const std::string_view key = found.empty() ? free_key(checkpoint.values) : found;
  TorchObject tensors{.kind = TorchObject::Kind::kOrdered};
  for (const NamedView& view : checkpoint.tensors.views) {
    tensors.add(found.empty() ? view.name : view.name.substr(found.size() + 1),
                TorchObject::of_tensor(view.values));
  }
  ValueTree root;
  place(root, key, std::move(tensors));
  if (checkpoint.optimizer) {
    const std::string& prefix = checkpoint.optimizer->prefix;
    place(root, std::string_view(prefix).substr(0, prefix.empty() ? 0 : prefix.size() - 1),
          optimizer_object(checkpoint, found.empty() ? 0 : found.size() + 1));
  }
  if (found.empty()) place(root, kTorchModelKey, TorchObject::of(std::string(key)));
  std::vector<NamedValue> flat;
  for (const NamedValue& value : checkpoint.values) {
    if (!place(root, value.name, TorchObject::of(value.value))) flat.push_back(value);
  }
  TorchObject out = std::move(root).object();
  for (const NamedValue& value : flat) {
    const auto is_it = [&](const auto& item) { return item.first == value.name; };
    if (std::ranges::any_of(out.items, is_it)) {
      throw ArgumentError(message("[save_networks] the value '", excerpt(value.name),
                                  "' has the name of a dictionary of the file, expected another"));
    }
    out.add(value.name, TorchObject::of(value.value));
  }
  return out;
}

// What other frameworks' files say of themselves would only make a checkpoint of a state_dict.
void leave_out_structure(FileKind kind, std::vector<NamedValue>* values) {
  switch (kind) {
    case FileKind::kKerasH5:
    case FileKind::kKerasWeights:
    case FileKind::kKerasArchive:
    case FileKind::kHdf5:
      return values->clear();
    case FileKind::kOnnx:
      std::erase_if(*values, [](const NamedValue& value) { return value.name == "producer_name"; });
      return;
    default:
      return;
  }
}

}  // namespace

TorchTensors torch_tensors_of(const MappedModel& model, std::string_view format) {
  TorchTensors out;
  for (const MappedNetwork& network : model.networks) {
    out.networks.push_back(torch_form(network, format));
  }
  for (const MappedNetwork& network : out.networks) {
    const std::string prefix = network.name.empty() ? "" : network.name + ".";
    const auto* const first = static_cast<const std::byte*>(network.params.data());
    const DType dtype = network.spec.dtype;
    for (const TorchParameter& parameter : torch_parameters(network.spec)) {
      const auto at = static_cast<std::size_t>(parameter.offset) * dtype_size(dtype);
      out.views.push_back({prefix + parameter.name, {first + at, dtype, parameter.shape}});
    }
  }
  return out;
}

void save_torch(const std::string& path, const MappedModel& model) {
  TorchCheckpoint checkpoint = torch_checkpoint_of(model, "a state_dict of PyTorch");
  leave_out_structure(model.kind, &checkpoint.values);
  if (!checkpoint.optimizer && checkpoint.values.empty()) {
    return write_torch_state_dict(path, checkpoint.tensors.views);
  }
  formats::write_torch_objects("save_networks", path, checkpoint_object(checkpoint));
}

}  // namespace openrnn::mapping
