#include <cstring>
#include <filesystem>
#include <map>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/support/options.h"
#include "mapping/support/values.h"
#include "mapping/torch/checkpoint.h"
#include "mapping/torch/names.h"
#include "mapping/torch/torch.h"

namespace openrnn::mapping {

namespace {

/// Why tensors with the names of a network are none.
struct NoNetwork {
  std::string why;
};

/// Tensors of one module, by their names inside it: 'weight_ih_l0'.
struct TorchGroup {
  std::string prefix;  // 'encoder.rnn.', empty for none
  bool is_cell = false;
  std::map<std::string, const TensorInfo*, std::less<>> tensors;

  /// In a cell nothing is numbered.
  const TensorInfo* find(std::string_view parameter) const {
    const auto found =
        tensors.find(is_cell ? parameter.substr(0, parameter.find("_l")) : parameter);
    return found == tensors.end() ? nullptr : found->second;
  }
  const TensorInfo& matrix(std::string_view parameter) const {
    const TensorInfo* const info = find(parameter);
    if (!info) throw NoNetwork{message("it has no ", parameter)};
    if (info->shape.size() == 2 && info->shape[0] > 0 && info->shape[1] > 0) return *info;
    throw NoNetwork{message(parameter, " has shape ", to_string(info->shape),
                            ", expected two sizes of at least 1")};
  }
  std::string name() const { return prefix.substr(0, prefix.empty() ? 0 : prefix.size() - 1); }
};

// In the order of the first tensor of each. A module and a cell may have one prefix.
std::vector<TorchGroup> groups_of(const ModelFile& file, std::vector<std::string>* others) {
  std::vector<TorchGroup> groups;
  std::map<std::pair<std::string_view, bool>, std::size_t> numbers;
  for (const TensorInfo& info : file.tensors()) {
    const std::optional<TorchName> name = parse_torch_name(info.name);
    if (!name) {
      others->push_back(info.name);
      continue;
    }
    const auto [at, is_new] = numbers.try_emplace({name->prefix, name->is_cell}, groups.size());
    if (is_new) groups.push_back({std::string(name->prefix), name->is_cell, {}});
    groups[at->second].tensors.emplace(name->parameter, &info);
  }
  return groups;
}

// From the number of rows and columns; nothing of a cell but the mode of a plain one is left open.
RnnSpec spec_of(const TorchGroup& group, std::optional<RnnMode> plain) {
  const TensorInfo& input = group.matrix("weight_ih_l0");
  const TensorInfo& recurrent = group.matrix("weight_hh_l0");
  const bool projects = group.find("weight_hr_l0") != nullptr;
  RnnSpec spec;
  spec.input_size = input.shape[1];
  spec.num_units = projects ? group.matrix("weight_hr_l0").shape[1] : recurrent.shape[1];
  spec.num_proj = projects ? recurrent.shape[1] : 0;
  const std::int64_t gates = recurrent.shape[0] / spec.num_units;
  if (gates * spec.num_units != recurrent.shape[0] || (gates != 1 && gates != 3 && gates != 4)) {
    throw NoNetwork{message("weight_hh has shape ", to_string(recurrent.shape),
                            ", expected 1, 3 or 4 gates of ", spec.num_units, " rows")};
  }
  spec.mode = gates == 4   ? RnnMode::kLstm
              : gates == 3 ? RnnMode::kGru
                           : plain.value_or(RnnMode::kRnnTanh);
  const auto has = [&](std::int64_t layer, const char* suffix) {
    return group.find(message("weight_ih_l", layer, suffix)) != nullptr;
  };
  while (!group.is_cell && has(spec.num_layers, "")) ++spec.num_layers;
  if (!group.is_cell && has(0, "_reverse")) spec.direction = Direction::kBidirectional;
  spec.use_bias = group.find("bias_ih_l0") != nullptr;
  const std::string& dtype = input.dtype;
  for (const DType one : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    if (dtype == dtype_name(one)) {
      spec.dtype = one;
      return spec;
    }
  }
  throw NoNetwork{message("weight_ih is ", excerpt(dtype), ", expected floating point")};
}

// Every parameter is there, with its shape, and nothing else is.
std::vector<TorchParameter> matched_parameters(const TorchGroup& group, const RnnSpec& spec) {
  try {
    spec.validate();
  } catch (const ArgumentError& error) {
    throw NoNetwork{error.what()};
  }
  std::vector<TorchParameter> parameters = torch_parameters(spec);
  for (const TorchParameter& parameter : parameters) {
    const TensorInfo* const info = group.find(parameter.name);
    if (!info) throw NoNetwork{message("it has no ", parameter.name)};
    if (info->shape == parameter.shape && info->dtype == dtype_name(spec.dtype)) continue;
    throw NoNetwork{message(parameter.name, " is ", excerpt(info->dtype), " ",
                            to_string(info->shape), ", expected ", dtype_name(spec.dtype), " ",
                            to_string(parameter.shape))};
  }
  if (group.tensors.size() == parameters.size()) return parameters;
  throw NoNetwork{message("it has ", group.tensors.size(), " tensors, expected the ",
                          parameters.size(), " of ", describe(spec))};
}

MappedNetwork read_network(const ModelFile& file, const TorchGroup& group, const RnnSpec& spec,
                           const std::vector<TorchParameter>& parameters) {
  MappedNetwork network{
      .name = group.name(), .spec = spec, .params = Array(spec.dtype, {params_size(spec)})};
  auto* const to = static_cast<std::byte*>(network.params.data());
  for (const TorchParameter& parameter : parameters) {
    const std::string& name = group.find(parameter.name)->name;
    const std::size_t first = static_cast<std::size_t>(parameter.offset) * dtype_size(spec.dtype);
    const auto size = static_cast<std::size_t>(file.info(name).bytes);
    // Straight to its place: no second copy of a large tensor.
    file.read_into(name, {to + first, size});
    network.tensors.push_back(name);
  }
  return network;
}

// A module of TorchScript says it; a state_dict does not.
std::optional<RnnMode> mode_in_file(const ModelFile& file, const TorchGroup& group) {
  for (const NamedValue& value : file.values()) {
    if (value.name != group.prefix + "mode") continue;
    const auto* const word = std::get_if<std::string>(&value.value);
    if (word && *word == "RNN_TANH") return RnnMode::kRnnTanh;
    if (word && *word == "RNN_RELU") return RnnMode::kRnnRelu;
  }
  return std::nullopt;
}

std::optional<RnnMode> plain_mode(const ModelFile& file, const TorchGroup& group,
                                  const MappingHints& hints) {
  const std::optional<RnnMode> said = mode_in_file(file, group);
  const bool hinted = hints.mode == RnnMode::kRnnTanh || hints.mode == RnnMode::kRnnRelu;
  return said ? said : hinted ? hints.mode : std::nullopt;
}

// A file may name one storage again and again: what it asks for is bounded by what it holds.
void require_bounded(const ModelFile& file) {
  if (file.kind() == FileKind::kSafetensors || file.kind() == FileKind::kSafetensorsIndex) return;
  constexpr std::uint64_t kTimes = 16, kAtLeast = 1 << 20;
  std::uint64_t bytes = 0;
  for (const TensorInfo& info : file.tensors()) {
    if (!parse_torch_name(info.name)) continue;
    if (__builtin_add_overflow(bytes, info.bytes, &bytes)) bytes = UINT64_MAX;
    if (bytes == UINT64_MAX) break;
  }
  const std::uint64_t size = std::filesystem::file_size(file.path());
  if (bytes <= kAtLeast || bytes / kTimes <= size) return;
  throw FormatError(file.path(), 0,
                    message("its recurrent weights have ", bytes, " bytes, expected at most ",
                            kTimes, " times the file's ", size));
}

// Where a checkpoint of ours names the dictionary of the weights, that is no part of their names.
void leave_out_model_key(MappedModel* model) {
  const auto* const key = find_value<std::string>(model->values, kTorchModelKey);
  if (!key) return;
  for (MappedNetwork& network : model->networks) {
    if (network.name == *key) network.name.clear();
    if (network.name.starts_with(*key + ".")) network.name.erase(0, key->size() + 1);
  }
  std::erase_if(model->values,
                [](const NamedValue& value) { return value.name == kTorchModelKey; });
}

}  // namespace

MappedModel map_torch(const ModelFile& file, const MappingHints& hints) {
  require_bounded(file);
  MappedModel model{.kind = file.kind(), .values = typed_values(file.values())};
  for (const TorchGroup& group : groups_of(file, &model.not_understood)) {
    try {
      const std::optional<RnnMode> plain = plain_mode(file, group, hints);
      const RnnSpec spec = spec_of(group, plain);
      const std::vector<TorchParameter> parameters = matched_parameters(group, spec);
      if (spec.num_gates() == 1 && !plain) {
        throw ArgumentError(message("[load_networks] ", network_called(group.name()), " in ",
                                    file.path(), " is a plain one, of which PyTorch's files do ",
                                    "not say tanh or relu, expected the hint mode: rnn_tanh or ",
                                    "rnn_relu"));
      }
      model.networks.push_back(read_network(file, group, spec, parameters));
    } catch (const NoNetwork& reason) {
      for (const auto& [name, info] : group.tensors) model.not_understood.push_back(info->name);
      model.notes.push_back(message("no network was made from '", excerpt(group.prefix),
                                    group.tensors.begin()->first, "' and the like: ", reason.why));
    }
  }
  add_torch_slots(file, &model);
  leave_out_model_key(&model);
  return model;
}

}  // namespace openrnn::mapping
