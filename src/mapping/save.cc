#include <algorithm>
#include <unordered_set>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/kinds.h"
#include "mapping/support/options.h"

namespace openrnn {

namespace {

using mapping::network_called;
using mapping::WritableFormat;

const WritableFormat& row_of(ModelFormat format) {
  for (const WritableFormat& row : mapping::writable_formats()) {
    if (row.format == format) return row;
  }
  throw ArgumentError("[save_networks] the format is no ModelFormat");
}

void check_state(const MappedNetwork& network, std::string_view what,
                 const std::optional<Array>& state, std::int64_t width) {
  const Shape expected{network.spec.num_pseudo_layers(), width};
  if (!state || (state->shape() == expected && state->dtype() == network.spec.dtype)) return;
  throw ArgumentError(message("[save_networks] ", what, " of ", network_called(network.name),
                              " is ", dtype_name(state->dtype()), " ", to_string(state->shape()),
                              ", expected ", dtype_name(network.spec.dtype), " ",
                              to_string(expected)));
}

void check_fits(const MappedNetwork& network) {
  const std::int64_t size = params_size(network.spec);
  check_exact_params("save_networks", network.spec, network.params.view(), size);
  for (const auto& [name, slot] : network.slots) {
    check_slots("save_networks", network.spec, slot.view(), size);
    if (slot.size() == size) continue;
    throw ArgumentError(message("[save_networks] the slot '", excerpt(name), "' of ",
                                network_called(network.name), " has ", slot.size(),
                                " elements, expected ", size));
  }
  check_state(network, "initial_h", network.initial_h, network.spec.hidden_size());
  if (network.initial_c && !network.spec.has_cell()) {
    throw ArgumentError(message("[save_networks] ", network_called(network.name),
                                " has initial_c, expected none of ", to_string(network.spec.mode)));
  }
  check_state(network, "initial_c", network.initial_c, network.spec.num_units);
}

void require_weights(const MappedModel& model) {
  for (const MappedLayer& layer : model.layers) {
    const bool has = layer.kind == "dense" || layer.kind == "embedding";
    if (has && layer.weights.empty()) {
      throw ArgumentError(message("[save_networks] the layer '", excerpt(layer.name),
                                  "' has no weights, expected them"));
    }
  }
}

/// The states that a recurrent layer begins with are its network's as well, for files that have
/// them there.
class LayerStates {
 public:
  explicit LayerStates(const MappedModel& model) : given_(model) {
    for (const MappedLayer& layer : model.layers) {
      if (layer.kind != "recurrent") continue;
      set(layer, "initial_h", &MappedNetwork::initial_h);
      set(layer, "initial_c", &MappedNetwork::initial_c);
    }
  }
  const MappedModel& model() const { return changed_ ? *changed_ : given_; }

 private:
  void set(const MappedLayer& layer, const char* option,
           std::optional<Array> MappedNetwork::*state) {
    const auto& given = layer_option_as<std::vector<double>>(layer, option);
    if (given.empty()) return;
    if (!changed_) changed_ = given_;
    const auto& name = layer_option_as<std::string>(layer, "network");
    MappedNetwork& network = *std::ranges::find(changed_->networks, name, &MappedNetwork::name);
    const std::int64_t rows = network.spec.num_pseudo_layers();
    Array wide(DType::kFloat64, {rows, static_cast<std::int64_t>(given.size()) / rows});
    std::ranges::copy(given, wide.as<double>().begin());
    network.*state = cast(wide.view(), network.spec.dtype);
  }

  const MappedModel& given_;
  std::optional<MappedModel> changed_;
};

}  // namespace

bool holds_layers(ModelFormat format) { return row_of(format).layers; }

bool holds_value(ModelFormat format, std::string_view name) {
  const WritableFormat& row = row_of(format);
  return !row.holds_value || row.holds_value(name);
}

std::string_view to_string(ModelFormat format) { return row_of(format).name; }

ModelFormat parse_model_format(std::string_view name) {
  std::vector<std::string> names;
  for (const WritableFormat& row : mapping::writable_formats()) {
    if (row.name == name) return row.format;
    names.emplace_back(row.name);
  }
  throw ArgumentError(
      message("[parse_model_format] '", excerpt(name), "', expected one of ", listed(names)));
}

ModelFormat model_format_of(const std::string& path) {
  std::vector<std::string> endings;
  for (const WritableFormat& row : mapping::writable_formats()) {
    for (const std::string_view ending : row.endings) {
      if (path.ends_with(ending)) return row.format;
      endings.emplace_back(ending);
    }
  }
  throw ArgumentError(message("[model_format_of] the name '", excerpt(path),
                              "' says no format, expected one of ", listed(endings)));
}

void save_networks(const std::string& path, const MappedModel& model, ModelFormat format) {
  const WritableFormat& row = row_of(format);
  std::unordered_set<std::string_view> names;
  for (const MappedNetwork& network : model.networks) {
    if (!names.insert(network.name).second) {
      throw ArgumentError(message("[save_networks] ", network_called(network.name),
                                  " is there twice, expected names that differ"));
    }
    check_fits(network);
  }
  if (model.networks.empty()) {
    throw ArgumentError("[save_networks] the model has no network, expected at least one");
  }
  if (!model.layers.empty()) {
    check_layers(model.layers, model.outputs, find_spec_in(model));
    require_weights(model);
  }
  row.save(path, LayerStates(model).model());
}

}  // namespace openrnn
