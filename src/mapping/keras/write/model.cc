#include "mapping/keras/write/model.h"

#include "base/message.h"
#include "mapping/keras/config.h"
#include "mapping/support/biases.h"
#include "mapping/support/keras_arrays.h"
#include "mapping/support/options.h"

namespace openrnn::mapping {

namespace {

using nlohmann::ordered_json;

const char* class_of(const RnnSpec& spec) {
  if (spec.is_lstm()) return "LSTM";
  return spec.mode == RnnMode::kGru ? "GRU" : "SimpleRNN";
}

[[noreturn]] void refuse(const MappedNetwork& network, const std::string& what,
                         std::string_view format) {
  throw UnsupportedError(message("[save_networks] ", network_called(network.name), " has ", what,
                                 ", which ", format, " cannot hold"));
}

void require_functions(const MappedNetwork& network, std::string_view format) {
  const RnnSpec& spec = network.spec;
  if (spec.is_lstm() && spec.candidate_activation() != spec.cell_activation()) {
    refuse(network,
           message("activation ", to_string(spec.candidate_activation()), " and output_activation ",
                   to_string(spec.cell_activation())),
           format);
  }
  std::vector<CellActivation> used{spec.candidate_activation()};
  if (spec.num_gates() > 1) used.push_back(spec.gate_activation());
  for (const CellActivation& one : used) {
    if (!keras_name_of(one)) refuse(network, "the activation " + to_string(one), format);
  }
}

// The configuration of one direction.
ordered_json options_of_layer(const RnnSpec& spec, const std::string& name, const SavedCall& call) {
  ordered_json config = {{"name", name},
                         {"trainable", call.trainable},
                         {"dtype", dtype_name(spec.dtype)},
                         {"return_sequences", call.return_sequences},
                         {"return_state", call.return_state},
                         {"go_backwards", call.go_backwards},
                         {"stateful", call.stateful},
                         {"unroll", false},
                         {"units", spec.num_units},
                         {"activation", *keras_name_of(spec.candidate_activation())},
                         {"use_bias", spec.use_bias},
                         {"dropout", 0.0},
                         {"recurrent_dropout", 0.0}};
  if (spec.num_gates() > 1) {
    config["recurrent_activation"] = *keras_name_of(spec.gate_activation());
  }
  if (spec.mode == RnnMode::kGru) config["reset_after"] = spec.reset_after;
  // Keras 2 before 2.3 does not know it.
  if (call.zero_output_for_mask) config["zero_output_for_mask"] = true;
  return config;
}

// As Keras 3 names objects.
ordered_json object_json(const char* module, const std::string& type, ordered_json config) {
  return {{"module", module},
          {"class_name", type},
          {"config", std::move(config)},
          {"registered_name", nullptr}};
}

// Of one direction, or of both behind one another.
std::vector<SavedArray> arrays_of(const MappedNetwork& network, std::int64_t layer,
                                  const std::string& name) {
  const ParamsLayout layout(network.spec);
  const bool both = network.spec.num_dirs() == 2;
  std::vector<SavedArray> saved;
  for (std::int64_t direction = 0; direction < network.spec.num_dirs(); ++direction) {
    const char* const side = !both ? "" : direction == 0 ? "forward_" : "backward_";
    const std::string inner = both ? message("/", side, name) : std::string();
    const std::string object = both ? message(side, "layer/") : std::string();
    std::size_t i = 0;
    for (Array& array :
         keras_arrays(layout, {.layer = layer, .direction = direction}, network.params.view())) {
      saved.push_back({message(name, inner, "/cell/", keras_array_name(i)),
                       message(object, "cell/vars/", i), std::move(array)});
      ++i;
    }
  }
  return saved;
}

}  // namespace

// The network as Keras computes it: one bias, or the two of a GRU that resets after the product.
MappedNetwork keras_form(const MappedNetwork& given, std::string_view format, bool options) {
  constexpr std::string_view kHeld[] = {"reset_after",         "use_bias",   "single_bias",
                                        "forget_bias",         "activation", "output_activation",
                                        "recurrent_activation"};
  MappedNetwork network = given;
  network.spec = plainest(network.spec);
  require_held("save_networks", network.name, network.spec, format,
               std::span(kHeld).first(options ? std::size(kHeld) : 4));
  if (!options && network.spec.mode == RnnMode::kRnnRelu) refuse(network, "relu", format);
  if (network.initial_h || network.initial_c) refuse(network, "initial states", format);
  require_functions(network, format);
  network = without_forget_bias(network);
  if (!network.spec.use_bias) return network;
  const bool two = network.spec.mode == RnnMode::kGru && network.spec.reset_after;
  return with_biases(network, two ? 2 : 1);
}

std::string KerasNames::layer(std::string name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
  };
  for (char& c : name) {
    if (c == '/') c = '.';
    if (!is_plain(c) && c != '-') c = '_';
  }
  if (name.empty() || !is_plain(name[0])) name = "rnn" + name;
  std::string unequal = name;
  for (int i = 1; !taken_.insert(unequal).second; ++i) unequal = message(name, "_", i);
  return unequal;
}

std::string KerasNames::group(const std::string& type) {
  const std::string group = keras_snake_case(type);
  const int number = numbers_[group]++;
  return number ? message(group, "_", number) : group;
}

ordered_json place_json(const std::string& layer, std::int64_t index) {
  return ordered_json::array({layer, 0, index});
}
ordered_json input_json(const std::string& layer, std::int64_t index) {
  return ordered_json::array({layer, 0, index, ordered_json::object()});
}

ordered_json node_json(const std::string& type, ordered_json config, ordered_json inbound) {
  const std::string name = config["name"];
  ordered_json node = object_json("keras.layers", type, std::move(config));
  node["name"] = name;
  node["inbound_nodes"] =
      inbound.empty() ? ordered_json::array() : ordered_json::array({std::move(inbound)});
  return node;
}

SavedLayer saved_input(const std::string& name, const Shape& shape, DType dtype,
                       KerasNames* names) {
  ordered_json sizes = ordered_json::array();
  for (const std::int64_t size : shape) {
    sizes.push_back(size < 0 ? ordered_json(nullptr) : ordered_json(size));
  }
  return {
      name,
      names->group("InputLayer"),
      {},
      node_json("InputLayer",
                {{"batch_shape", std::move(sizes)}, {"dtype", dtype_name(dtype)}, {"name", name}},
                ordered_json::array())};
}

SavedLayer saved_recurrent(const MappedNetwork& network, std::int64_t layer,
                           const std::string& name, const SavedCall& call, ordered_json inbound,
                           KerasNames* names) {
  const RnnSpec& spec = network.spec;
  const bool both = spec.direction == Direction::kBidirectional;
  const std::string type = class_of(spec);
  ordered_json config = options_of_layer(spec, (both ? "forward_" : "") + name, call);
  if (both) {
    ordered_json merge = call.merge == "none" ? ordered_json(nullptr) : ordered_json(call.merge);
    config = {{"name", name},
              {"trainable", call.trainable},
              {"dtype", dtype_name(spec.dtype)},
              {"merge_mode", std::move(merge)},
              {"layer", object_json("keras.layers", type, std::move(config))}};
  }
  const std::string outer = both ? "Bidirectional" : type;
  return {name, names->group(outer), arrays_of(network, layer, name),
          node_json(outer, std::move(config), std::move(inbound))};
}

SavedModel make_saved_model(const MappedModel& model, std::string_view format, bool options) {
  if (!model.layers.empty()) return make_saved_whole(model, format, options);
  SavedModel saved;
  ordered_json joined = ordered_json::object();
  bool renamed = false;
  KerasNames names;
  for (const MappedNetwork& given : model.networks) {
    const MappedNetwork network = keras_form(given, format, options);
    const RnnSpec& spec = network.spec;
    std::string before;
    for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
      const std::string name =
          names.layer(spec.num_layers == 1 ? network.name : message(network.name, "_", layer));
      renamed |= name != network.name;
      joined[network.name].push_back(name);
      if (layer == 0) {
        before = name + "_input";
        saved.layers.push_back(saved_input(before, {-1, -1, spec.input_size}, spec.dtype, &names));
        saved.inputs.push_back(place_json(before));
      }
      saved.layers.push_back(saved_recurrent(network, layer, name, {},
                                             ordered_json::array({input_json(before)}), &names));
      before = name;
    }
    saved.outputs.push_back(place_json(before));
  }
  if (renamed) saved.names = joined.dump();
  return saved;
}

std::string keras_model_json(const SavedModel& model) {
  ordered_json layers = ordered_json::array();
  for (const SavedLayer& layer : model.layers) layers.push_back(layer.node);
  return object_json("keras.src.models.functional", "Functional",
                     {{"name", "networks"},
                      {"trainable", true},
                      {"layers", std::move(layers)},
                      {"input_layers", model.inputs},
                      {"output_layers", model.outputs}})
      .dump();
}

}  // namespace openrnn::mapping
