// Which networks a checkpoint's tensors form.
#include <nlohmann/json.hpp>
#include <set>

#include "base/excerpt.h"
#include "base/message.h"
#include "checkpoint/extras.h"
#include "checkpoint/network_names.h"
#include "openrnn/saveables.h"
#include "spec/tensorflow.h"

namespace openrnn {
namespace {

using checkpoint::Candidate;

constexpr std::string_view kRawName = "opaque_kernel", kRawTail = "/opaque_kernel";

const TensorInfo& need(const Candidate& group, const std::string& name, std::size_t rank) {
  const TensorInfo* info = group.find(name);
  if (!info) throw ArgumentError(excerpt(name) + " is missing");
  if (info->shape.size() != rank) {
    throw ArgumentError(message(excerpt(name), " has shape ", to_string(info->shape), ", expected ",
                                rank, " dimensions"));
  }
  return *info;
}

bool is_basic(const Candidate& group) {
  return group.form.layer_norm == LayerNorm::kGates;  // of all forms
}

// The spec of the first layer's tensors; the others are checked later.
RnnSpec spec_of(const Candidate& group) {
  RnnSpec spec = group.form;
  spec.num_layers = group.num_layers;
  spec.direction = group.direction;
  if (group.num_layers > static_cast<std::int64_t>(group.tensors.size())) {
    throw ArgumentError(message("layer ", group.num_layers - 1, " is there, but only ",
                                group.tensors.size(), " tensors in all"));
  }
  const std::string first = group.cell_prefix(0);
  const bool gru = spec.mode == RnnMode::kGru;
  const TensorInfo& kernel = need(group, first + (gru ? "gates/kernel" : "kernel"), 2);
  spec.dtype = parse_dtype(kernel.dtype);
  const std::int64_t gates = gru ? 2 : spec.is_lstm() ? 4 : 1;
  spec.num_units = kernel.shape[1] / gates;
  if (const TensorInfo* projection = group.find(first + "projection/kernel")) {
    spec.num_proj = projection->shape.size() == 2 ? projection->shape[1] : 0;
  }
  spec.input_size = kernel.shape[0] - spec.hidden_size();
  if (spec.input_size == 0) {
    // Recurrent rows alone: the inputs are added to every gate, so there are U of them.
    spec.input_mode = InputMode::kSkipInput;
    spec.input_size = spec.num_units;
  }
  spec.use_peepholes = group.find(first + "w_i_diag") != nullptr;
  if (is_basic(group)) {
    spec.layer_norm_epsilon = spec::layer_norm_basic_epsilon(spec.dtype);
  } else if (spec.normalizes() && group.find(first + "input/gamma")) {
    spec.layer_norm = LayerNorm::kGates;
  }
  spec.validate();
  return spec;
}

void check_against(const Candidate& group, const TfCanonicalFormat& format) {
  const std::string scope = group.scope.empty() ? "" : group.scope + "/";
  for (const TfTensor& tensor : format.tensors()) {
    const TensorInfo& info = need(group, scope + tensor.name, tensor.shape.size());
    if (info.shape != tensor.shape || info.dtype != dtype_name(format.spec().dtype)) {
      throw ArgumentError(message(excerpt(info.name), " is ", info.dtype, " ",
                                  to_string(info.shape), ", expected ",
                                  dtype_name(format.spec().dtype), " ", to_string(tensor.shape)));
    }
  }
  if (group.tensors.size() != format.tensors().size()) {
    throw ArgumentError(
        message(group.tensors.size(), " tensors, expected ", format.tensors().size()));
  }
}

// Calls visit(key, value) for each value in the run's configuration; false where there is none.
template <class Visit>
bool visit_config(const TensorBundleReader& reader, const Visit& visit) {
  const std::string name = std::string(checkpoint::kExtrasPrefix) + "config";
  if (!reader.contains(name)) return false;
  if (reader.info(name).dtype != "string" || !reader.info(name).shape.empty()) return false;
  constexpr int kDeepest = 64;
  std::string key;
  const auto at = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    if (event == nlohmann::json::parse_event_t::key) key = value.get<std::string>();
    if (event == nlohmann::json::parse_event_t::value) visit(key, value);
    return depth < kDeepest;
  };
  return !nlohmann::json::parse(reader.read_string(name), at, false).is_discarded();
}

// 'rnn_tanh' or 'rnn_relu' where the run's configuration names one cell and only that.
std::optional<RnnMode> mode_in_config(const TensorBundleReader& reader) {
  std::set<std::string> modes;
  const bool whole = visit_config(reader, [&](const std::string& key, const nlohmann::json& value) {
    const bool tells = key == "cell" || key == "mode" || key == "rnn_mode";
    if (!tells || !value.is_string()) return;
    const auto text = value.get<std::string>();
    if (text == "rnn_tanh" || text == "rnn_relu") modes.insert(text);
  });
  if (!whole || modes.size() != 1) return {};
  return parse_rnn_mode(*modes.begin());
}

// What the run's configuration says of one network with that layer_norm, and only that.
std::optional<double> epsilon_in_config(const TensorBundleReader& reader, LayerNorm norm) {
  std::set<std::string> norms;
  std::set<double> epsilons;
  const bool whole = visit_config(reader, [&](const std::string& key, const nlohmann::json& value) {
    if (key == "layer_norm" && value.is_string()) norms.insert(value.get<std::string>());
    if (key == "layer_norm_epsilon" && value.is_number()) epsilons.insert(value.get<double>());
  });
  const bool one = norms.size() == 1 && *norms.begin() == to_string(norm) && epsilons.size() <= 1;
  if (!whole || !one) return {};
  // A configuration leaves out what is at its default.
  return epsilons.empty() ? RnnSpec{}.layer_norm_epsilon : *epsilons.begin();
}

// No tensor shows it, and of all names only that of TensorFlow's cell tells it.
void name_epsilon(const TensorBundleReader& reader, const Candidate& group,
                  NetworkDescription& network, std::vector<std::string>& remarks) {
  if (!network.spec.normalizes() || is_basic(group)) return;
  if (const auto epsilon = epsilon_in_config(reader, network.spec.layer_norm)) {
    network.spec.layer_norm_epsilon = *epsilon;
    network.spec.validate();
    return;
  }
  remarks.push_back(message("the file does not tell the layer_norm_epsilon of ", group.cell_name(),
                            " under '", excerpt(group.scope),
                            "': ", network.spec.layer_norm_epsilon, " is the default"));
}

void name_modes(const TensorBundleReader& reader, NetworkDescription& network) {
  network.modes = {network.spec.mode};
  network.text = describe(network.spec);
  if (network.spec.mode != RnnMode::kRnnTanh) return;
  if (const std::optional<RnnMode> mode = mode_in_config(reader)) {
    network.modes = {*mode};
    network.spec.mode = *mode;
    network.text = describe(network.spec);
    return;
  }
  network.modes = {RnnMode::kRnnTanh, RnnMode::kRnnRelu};
  network.text = "rnn_tanh or rnn_relu" + network.text.substr(to_string(RnnMode::kRnnTanh).size());
}

bool is_raw_buffer(const TensorInfo& info) {
  return info.shape.size() == 1 && (info.name == kRawName || info.name.ends_with(kRawTail));
}

// An implicit build puts the canonical names inside the layer's scope, an explicit one around it.
std::string raw_variable_of(const TensorBundleReader& reader, const NetworkDescription& network,
                            std::int64_t size) {
  const std::string scope = network.scope.empty() ? "" : network.scope + "/";
  std::vector<std::string> fitting;
  for (const TensorInfo& info : reader.tensors()) {
    if (!is_raw_buffer(info) || !info.name.starts_with(scope) || info.shape[0] != size) continue;
    if (info.dtype != dtype_name(network.spec.dtype)) continue;
    if (info.name == scope + std::string(kRawName)) return info.name;
    fitting.push_back(info.name);
  }
  return fitting.size() == 1 ? fitting[0] : std::string();
}

// One bias a gate looks as the sum of two does, and none as a file that has lost some: a raw buffer
// of that size tells.
void settle_biases(const TensorBundleReader& reader, const Candidate& group,
                   NetworkDescription& network) {
  const RnnSpec two = network.spec;
  const auto fits = [&](const RnnSpec& spec) {
    network.spec = spec;
    return !raw_variable_of(reader, network, params_size(spec)).empty();
  };
  RnnSpec one = two, none = two;
  one.single_bias = true;
  none.use_bias = false;
  const char* const bias = two.mode == RnnMode::kGru             ? "gates/bias"
                           : two.layer_norm == LayerNorm::kGates ? "input/beta"
                                                                 : "bias";
  if (!group.find(group.cell_prefix(0) + bias) && fits(none)) return;
  if (fits(two) || fits(one)) return;
  network.spec = two;
}

}  // namespace

CheckpointContents describe_network(const TensorBundleReader& reader) {
  CheckpointContents contents;
  std::set<std::string> claimed;
  for (const Candidate& group : checkpoint::find_candidates(reader)) {
    try {
      NetworkDescription network{.scope = group.scope, .modes = {}, .spec = spec_of(group)};
      settle_biases(reader, group, network);
      const TfCanonicalFormat format(network.spec);
      check_against(group, format);
      network.raw_variable = raw_variable_of(reader, network, format.opaque_size());
      claimed.insert(network.raw_variable);
      name_epsilon(reader, group, network, contents.remarks);
      name_modes(reader, network);
      contents.networks.push_back(std::move(network));
    } catch (const ArgumentError& error) {
      contents.remarks.push_back(message("the tensors of ", group.cell_name(), " under '",
                                         excerpt(group.scope),
                                         "' form no network: ", error.what()));
    }
  }
  for (const TensorInfo& info : reader.tensors()) {
    if (!is_raw_buffer(info) || claimed.count(info.name)) continue;
    contents.remarks.push_back(message(excerpt(info.name), " is an opaque buffer of ",
                                       info.shape[0], " ", info.dtype,
                                       " without canonical tensors of its own: the file does not "
                                       "tell which network it belongs to"));
  }
  return contents;
}

}  // namespace openrnn
