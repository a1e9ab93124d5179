// NeuralAmpModeler's LSTM: for each layer [W R] of the gates i f g o, row by row, their biases, and
// the states h and c to begin with; then the head, a product with h and a bias.
#include <algorithm>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/json/json.h"
#include "mapping/json/text.h"
#include "mapping/support/options.h"
#include "mapping/support/values.h"

namespace openrnn::mapping {

namespace {

constexpr std::string_view kNam = "a file of NeuralAmpModeler";
constexpr std::string_view kHeadWeight = "head.weight", kHeadBias = "head.bias";

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

}  // namespace

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
  MappedNetwork network{.spec = *spec,
                        .params = Array(spec->dtype, {layout.size()}),
                        .initial_h = Array(spec->dtype, states),
                        .initial_c = Array(spec->dtype, states),
                        .tensors = {list}};
  Array values = file.read(list);
  NamWeights weights(values.as<float>());
  weights.visit_network(layout, network.params.as<float>(), network.initial_h->as<float>(),
                        network.initial_c->as<float>(),
                        [](float listed, float& element) { element = listed; });
  const std::span<float> head = weights.rest();
  model.values.push_back(
      {std::string(kHeadWeight), std::vector<double>(head.begin(), head.end() - 1)});
  model.values.push_back({std::string(kHeadBias), double{head.back()}});
  model.networks.push_back(std::move(network));
  return model;
}

void save_nam(const std::string& path, const MappedModel& model) {
  if (model.networks.size() != 1 || !model.networks[0].spec.is_lstm()) {
    throw UnsupportedError(message("[save_networks] there are ", model.networks.size(),
                                   " networks or one that is no LSTM, of which ", kNam,
                                   " holds one"));
  }
  MappedNetwork network = json_network(model.networks[0], kNam, 1);
  const RnnSpec& spec = network.spec;
  const auto* const head = find_value<std::vector<double>>(model.values, kHeadWeight);
  const auto* const bias = find_value<double>(model.values, kHeadBias);
  if (!head || !bias || static_cast<std::int64_t>(head->size()) != spec.num_units) {
    throw ArgumentError(message("[save_networks] ", kNam, " has a head behind its LSTM, expected ",
                                "the value head.weight of ", spec.num_units,
                                " numbers and the value head.bias"));
  }
  const Shape states{spec.num_layers, spec.num_units};
  if (!network.initial_h) network.initial_h.emplace(spec.dtype, states);
  if (!network.initial_c) network.initial_c.emplace(spec.dtype, states);
  Array values(DType::kFloat32, {list_size(spec) + spec.num_units + 1});
  NamWeights weights(values.as<float>());
  weights.visit_network(ParamsLayout(spec), network.params.as<float>(),
                        network.initial_h->as<float>(), network.initial_c->as<float>(),
                        [](float& listed, float element) { listed = element; });
  std::ranges::transform(*head, weights.rest().begin(),
                         [](double value) { return static_cast<float>(value); });
  weights.rest().back() = static_cast<float>(*bias);
  const auto* const rate = find_value<std::int64_t>(model.values, "sample_rate");
  std::string text = message(
      "{\"version\": \"0.5.0\", \"architecture\": \"LSTM\", \"config\": {\"input_size\": ",
      spec.input_size, ", \"hidden_size\": ", spec.num_units, ", \"num_layers\": ", spec.num_layers,
      "},\n", rate ? message(" \"sample_rate\": ", *rate, ",\n") : "", " \"weights\": ");
  append_lists(values, kNam, &text);
  write_file_atomically(path, text + "}\n");
}

}  // namespace openrnn::mapping
