// NeuralAmpModeler's LSTM: for each layer [W R] of the gates i f g o, row by row, their biases, and
// the states h and c to begin with; then the head, a product with h and a bias, a dense layer here.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/json/chain.h"
#include "mapping/json/json.h"
#include "mapping/json/text.h"
#include "mapping/support/chain.h"
#include "mapping/support/values.h"

namespace openrnn::mapping {

namespace {

constexpr std::string_view kNam = "a file of NeuralAmpModeler";
constexpr std::string_view kHeadWeight = "head.weight", kHeadBias = "head.bias";
constexpr std::string_view kVersion = "version", kRate = "sample_rate", kMetadata = "metadata.";

/// Elements of the list in its order.
class NamWeights {
 public:
  explicit NamWeights(std::span<float> values) : rest_(values) {}
  /// Calls visit(element of the list, element of what it is given).
  template <class Visit>
  void visit_network(const ParamsLayout& layout, std::span<float> params, std::span<float> h,
                     std::span<float> c, const Visit& visit) {
    const RnnSpec& spec = layout.spec();
    for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
      for (std::int64_t gate = 0; gate < spec.num_gates(); ++gate) {
        const ParamRegion& input = layout.weight(layer, 0, ParamRole::kInputWeight, gate);
        const ParamRegion& hidden = layout.weight(layer, 0, ParamRole::kRecurrentWeight, gate);
        for (std::int64_t row = 0; row < spec.num_units; ++row) {
          each(params, input.offset + row * input.cols, input.cols, visit);
          each(params, hidden.offset + row * hidden.cols, hidden.cols, visit);
        }
      }
      for (std::int64_t gate = 0; gate < spec.num_gates(); ++gate) {
        const ParamRegion& bias = layout.bias(layer, 0, ParamRole::kInputBias, gate);
        each(params, bias.offset, bias.rows, visit);
      }
      each(h, layer * spec.num_units, spec.num_units, visit);
      each(c, layer * spec.num_units, spec.num_units, visit);
    }
  }
  std::span<float> rest() const { return rest_; }

 private:
  template <class Visit>
  void each(std::span<float> values, std::int64_t first, std::int64_t count, const Visit& visit) {
    for (std::int64_t i = 0; i < count; ++i) {
      visit(rest_[static_cast<std::size_t>(i)], values[static_cast<std::size_t>(first + i)]);
    }
    rest_ = rest_.subspan(static_cast<std::size_t>(count));
  }

  std::span<float> rest_;
};

// Numbers of the list without the head.
std::int64_t list_size(const RnnSpec& spec) {
  return params_size(spec) + 2 * spec.num_layers * spec.num_units;
}

std::optional<RnnSpec> nam_spec(const ModelFile& file) {
  RnnSpec spec{.single_bias = true};
  const std::pair<const char*, std::int64_t*> sizes[] = {{"config.num_layers", &spec.num_layers},
                                                         {"config.hidden_size", &spec.num_units},
                                                         {"config.input_size", &spec.input_size}};
  for (const auto& [name, size] : sizes) {
    const auto* const given = find_value<std::int64_t>(file.values(), name);
    if (!given) return std::nullopt;
    *size = *given;
  }
  try {
    spec.validate();
    return spec;
  } catch (const ArgumentError&) {
    return std::nullopt;
  }
}

std::vector<double> numbers_of(const Array& state) {
  const std::span<const float> values = state.view().as<float>();
  return {values.begin(), values.end()};
}

/// What a file is written from.
struct NamParts {
  const MappedNetwork* network = nullptr;
  std::vector<float> head = {};
  float bias = 0.0F;
};

NamParts parts_of_layers(const MappedModel& model) {
  const std::vector<JsonLink> chain = json_chain(model, kNam);
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const MappedLayer& layer = *chain[i].layer;
    if (i > 1) refuse_held(layer, "a place behind the head", kNam);
    const bool fits = layer.kind == (i == 0 ? "recurrent" : "dense");
    if (!fits) {
      refuse_held(
          layer,
          message("the kind ", layer.kind, " in the place of ", i == 0 ? "the LSTM" : "the head"),
          kNam);
    }
    if (i == 0 && !chain[i].network->spec.is_lstm()) {
      refuse_held(layer, message("a ", to_string(chain[i].network->spec.mode)), kNam);
    }
    if (i == 0) continue;
    const auto& activation = layer_option_as<std::string>(layer, "activation");
    if (chain[i].width != 1) refuse_held(layer, message(chain[i].width, " units"), kNam);
    if (activation != "linear") refuse_held(layer, "the activation " + activation, kNam);
  }
  if (chain.size() != 2) {
    throw ArgumentError(message("[save_networks] ", kNam, " has a head behind its LSTM, expected ",
                                "a dense layer of 1 unit behind the recurrent one"));
  }
  const std::span<const float> kernel = layer_weight(*chain[1].layer, "kernel")->view().as<float>();
  const Array* const bias = layer_weight(*chain[1].layer, "bias");
  return {.network = chain[0].network,
          .head = {kernel.begin(), kernel.end()},
          .bias = bias ? bias->view().as<float>()[0] : 0.0F};
}

// Of networks alone: the head is in values, as in files of ours from before it was a layer.
NamParts parts_of_values(const MappedModel& model) {
  if (model.networks.size() != 1 || !model.networks[0].spec.is_lstm()) {
    throw UnsupportedError(message("[save_networks] there are ", model.networks.size(),
                                   " networks or one that is no LSTM, of which ", kNam,
                                   " holds one"));
  }
  const std::int64_t units = model.networks[0].spec.num_units;
  const auto* const head = find_value<std::vector<double>>(model.values, kHeadWeight);
  const auto* const bias = find_value<double>(model.values, kHeadBias);
  if (!head || !bias || static_cast<std::int64_t>(head->size()) != units) {
    throw ArgumentError(message("[save_networks] ", kNam, " has a head behind its LSTM, expected ",
                                "a dense layer of 1 unit, or the value head.weight of ", units,
                                " numbers and the value head.bias"));
  }
  NamParts parts{.network = &model.networks[0], .bias = static_cast<float>(*bias)};
  for (const double value : *head) parts.head.push_back(static_cast<float>(value));
  return parts;
}

nlohmann::ordered_json value_in_json(const PlainValue& value) {
  return std::visit(
      []<class T>(const T& held) -> nlohmann::ordered_json {
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nullptr;
        } else {
          return held;
        }
      },
      value);
}

// Everything but the weights, as an object.
std::string header_of(const std::vector<NamedValue>& values, const RnnSpec& spec) {
  using nlohmann::ordered_json;
  const auto* const version = find_value<std::string>(values, kVersion);
  ordered_json header = {{"version", version ? *version : std::string("0.5.0")}};
  for (const NamedValue& value : values) {
    if (!value.name.starts_with(kMetadata)) continue;
    header["metadata"][value.name.substr(kMetadata.size())] = value_in_json(value.value);
  }
  header["architecture"] = "LSTM";
  header["config"] = {{"input_size", spec.input_size},
                      {"hidden_size", spec.num_units},
                      {"num_layers", spec.num_layers}};
  const auto rate = std::ranges::find(values, kRate, &NamedValue::name);
  if (rate != values.end()) header["sample_rate"] = value_in_json(rate->value);
  return header.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

bool nam_holds(std::string_view name) {
  return name == kVersion || name == kRate || name == kHeadWeight || name == kHeadBias ||
         name.starts_with(kMetadata);
}

MappedModel map_nam(const ModelFile& file) {
  MappedModel model{.kind = file.kind(), .values = file.values()};
  const auto* const architecture = find_value<std::string>(file.values(), "architecture");
  const std::optional<RnnSpec> spec = nam_spec(file);
  const std::string list = "weights";
  const std::int64_t count =
      file.contains(list) && file.info(list).shape.size() == 1 ? file.info(list).shape[0] : 0;
  const std::int64_t expected = spec ? list_size(*spec) + spec->num_units + 1 : 0;
  if (!architecture || *architecture != "LSTM" || !spec || count != expected) {
    for (const TensorInfo& info : file.tensors()) model.not_understood.push_back(info.name);
    model.notes.push_back(!architecture || *architecture != "LSTM"
                              ? message("the architecture is '",
                                        excerpt(architecture ? *architecture : ""),
                                        "', no recurrent one")
                              : message("the configuration of the LSTM asks for ", expected,
                                        " weights, there are ", count));
    return model;
  }
  const ParamsLayout layout(*spec);
  const Shape states{spec->num_layers, spec->num_units};
  MappedNetwork network{.name = "lstm",
                        .spec = *spec,
                        .params = Array(spec->dtype, {layout.size()}),
                        .initial_h = Array(spec->dtype, states),
                        .initial_c = Array(spec->dtype, states),
                        .tensors = {list}};
  Array values = file.read(list);
  NamWeights weights(values.as<float>());
  weights.visit_network(layout, network.params.as<float>(), network.initial_h->as<float>(),
                        network.initial_c->as<float>(),
                        [](float listed, float& element) { element = listed; });
  const std::span<const float> head = weights.rest();
  begin_chain(spec->input_size, "input", &model);
  append_layer({.name = network.name,
                .kind = "recurrent",
                .options = {{"network", network.name},
                            {"initial_h", numbers_of(*network.initial_h)},
                            {"initial_c", numbers_of(*network.initial_c)}}},
               &model);
  MappedLayer dense =
      dense_layer("head", Array::of<float>({spec->num_units, 1}, head.first(head.size() - 1)),
                  Array::of<float>({1}, head.last(1)));
  dense.tensors = {list};
  append_layer(std::move(dense), &model);
  model.networks.push_back(std::move(network));
  return model;
}

void save_nam(const std::string& path, const MappedModel& model) {
  const NamParts parts = model.layers.empty() ? parts_of_values(model) : parts_of_layers(model);
  MappedNetwork network = json_network(*parts.network, kNam, 1);
  const RnnSpec& spec = network.spec;
  const Shape states{spec.num_layers, spec.num_units};
  if (!network.initial_h) network.initial_h.emplace(spec.dtype, states);
  if (!network.initial_c) network.initial_c.emplace(spec.dtype, states);
  Array values(DType::kFloat32, {list_size(spec) + spec.num_units + 1});
  NamWeights weights(values.as<float>());
  weights.visit_network(ParamsLayout(spec), network.params.as<float>(),
                        network.initial_h->as<float>(), network.initial_c->as<float>(),
                        [](float& listed, float element) { listed = element; });
  std::ranges::copy(parts.head, weights.rest().begin());
  weights.rest().back() = parts.bias;
  std::string text = header_of(model.values, spec);
  text.pop_back();  // the end of the object
  text += ",\n \"weights\": ";
  append_lists(values, kNam, &text);
  write_file_atomically(path, text + "}\n");
}

}  // namespace openrnn::mapping
