// Optimizer slots of PyTorch: 'optimizer.state.3.exp_avg', of the parameter with number 3.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/support/options.h"
#include "mapping/torch/names.h"
#include "mapping/torch/optimizer_values.h"
#include "mapping/torch/torch.h"

namespace openrnn::mapping {

namespace {

// Dictionaries and optimizers of one file, for each of which all tensors are looked at.
constexpr std::size_t kMostPlaces = 256;

/// 'PREFIXstate.NUMBER.SLOT' of the optimizer at the prefix.
struct TorchSlot {
  std::string_view prefix, slot;
  std::int64_t number = 0;
};

std::optional<TorchSlot> parse_torch_slot(std::string_view name) {
  constexpr std::string_view kState = "state.";
  const std::size_t last = name.rfind('.');
  if (last == std::string_view::npos || last == 0) return std::nullopt;
  const std::size_t before = name.rfind('.', last - 1);
  if (before == std::string_view::npos) return std::nullopt;
  const std::string_view prefix = name.substr(0, before + 1);
  if (!prefix.ends_with(kState)) return std::nullopt;
  const std::size_t end = prefix.size() - kState.size();
  if (end > 0 && prefix[end - 1] != '.') return std::nullopt;
  TorchSlot slot{prefix.substr(0, end), name.substr(last + 1)};
  const std::string_view digits = name.substr(before + 1, last - before - 1);
  const auto [stop, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), slot.number);
  if (error != std::errc() || stop != digits.data() + digits.size()) return std::nullopt;
  return slot;
}

// The numbers of an optimizer's parameters, of all groups; and their names where it has kept them.
struct TorchOptimizer {
  std::vector<std::int64_t> numbers;
  std::vector<std::string> names;
  int groups = 0;
};

TorchOptimizer optimizer_of(const std::vector<NamedValue>& values, const std::string& prefix) {
  TorchOptimizer optimizer;
  const std::string groups = prefix + "param_groups.";
  for (const NamedValue& value : values) {
    if (!value.name.starts_with(groups)) continue;
    if (value.name.ends_with(".params")) {
      ++optimizer.groups;
      const auto* const numbers = std::get_if<std::vector<std::int64_t>>(&value.value);
      if (numbers) std::ranges::copy(*numbers, std::back_inserter(optimizer.numbers));
    } else if (value.name.ends_with(".param_names")) {
      const auto* const names = std::get_if<std::vector<std::string>>(&value.value);
      if (names) std::ranges::copy(*names, std::back_inserter(optimizer.names));
    }
  }
  return optimizer;
}

using NumberedTensors = std::unordered_map<std::int64_t, const TensorInfo*>;
using NumberedSlots = std::vector<std::pair<TorchSlot, const TensorInfo*>>;

// Numbers 0, 1, .. of the tensors below a prefix, if those are the optimizer's parameters: as many,
// and every slot has the shape of its tensor.
std::optional<NumberedTensors> numbered_below(const ModelFile& file, std::string_view prefix,
                                              std::string_view optimizer_prefix, std::size_t count,
                                              const NumberedSlots& slots) {
  NumberedTensors numbered;
  for (const TensorInfo& info : file.tensors()) {
    if (!info.name.starts_with(prefix) || info.name.starts_with(optimizer_prefix)) continue;
    numbered.emplace(static_cast<std::int64_t>(numbered.size()), &info);
  }
  if (numbered.size() != count) return std::nullopt;
  for (const auto& [slot, info] : slots) {
    const auto found = numbered.find(slot.number);
    if (found == numbered.end() || found->second->shape != info->shape) return std::nullopt;
  }
  return numbered;
}

NumberedTensors numbered_by_names(const ModelFile& file, const TorchOptimizer& optimizer,
                                  std::string_view optimizer_prefix) {
  std::unordered_map<std::string_view, std::int64_t> numbers;
  for (std::size_t i = 0; i < optimizer.names.size(); ++i) {
    numbers.emplace(optimizer.names[i], optimizer.numbers[i]);
  }
  NumberedTensors numbered;
  for (const TensorInfo& info : file.tensors()) {
    if (info.name.starts_with(optimizer_prefix)) continue;
    // The optimizer names a parameter from the model on, the file from its own root on.
    std::string_view name = info.name;
    while (!numbers.contains(name) && name.find('.') != std::string_view::npos) {
      name.remove_prefix(name.find('.') + 1);
    }
    const auto found = numbers.find(name);
    if (found != numbers.end()) numbered.emplace(found->second, &info);
  }
  return numbered;
}

// The dictionaries that hold networks: 'model.' of 'model.rnn.weight_ih_l0', 'model.rnn.', all.
std::set<std::string> dictionaries_of(const MappedModel& model) {
  std::set<std::string> prefixes{""};
  for (const MappedNetwork& network : model.networks) {
    const std::string& name = network.tensors.front();
    for (std::size_t at = name.find('.'); at != std::string::npos; at = name.find('.', at + 1)) {
      prefixes.insert(name.substr(0, at + 1));
    }
  }
  return prefixes;
}

// PyTorch itself goes by the order of Module.parameters(), which is that of a state_dict without
// buffers. Nothing unless one dictionary of the file can be meant.
std::optional<NumberedTensors> tensors_by_number(const ModelFile& file, const MappedModel& model,
                                                 const std::string& prefix,
                                                 const NumberedSlots& slots) {
  const TorchOptimizer optimizer = optimizer_of(model.values, prefix);
  if (!optimizer.names.empty() && optimizer.names.size() == optimizer.numbers.size()) {
    return numbered_by_names(file, optimizer, prefix);
  }
  // These keep no order. Numbers of several groups go group by group, not as the modules do.
  if (file.kind() == FileKind::kSafetensors || file.kind() == FileKind::kSafetensorsIndex ||
      optimizer.groups > 1) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < optimizer.numbers.size(); ++i) {
    if (optimizer.numbers[i] != static_cast<std::int64_t>(i)) return std::nullopt;
  }
  const std::set<std::string> dictionaries = dictionaries_of(model);
  if (dictionaries.size() > kMostPlaces) return std::nullopt;
  std::optional<NumberedTensors> found;
  for (const std::string& dictionary : dictionaries) {
    std::optional<NumberedTensors> numbered =
        numbered_below(file, dictionary, prefix, optimizer.numbers.size(), slots);
    if (!numbered || (found && *found == *numbered)) continue;
    if (found) return std::nullopt;
    found = std::move(numbered);
  }
  return found;
}

/// For each slot of an optimizer: the tensor of a parameter, and where its slot's values are.
using SlotTensors = std::map<std::string, std::unordered_map<std::string, const TensorInfo*>>;

// Sets network.slots[slot] if each of its parameters has one of its shape, in one floating dtype.
bool set_slot(const ModelFile& file, const std::string& slot,
              const std::unordered_map<std::string, const TensorInfo*>& of, MappedNetwork& network,
              std::vector<std::string>* taken) {
  const std::vector<TorchParameter> parameters = torch_parameters(network.spec);
  std::vector<const TensorInfo*> infos;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto found = of.find(network.tensors[i]);
    if (found == of.end() || found->second->shape != parameters[i].shape) return false;
    if (!infos.empty() && infos[0]->dtype != found->second->dtype) return false;
    infos.push_back(found->second);
  }
  std::optional<Array> values;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Array part = file.read(infos[i]->name);
    if (!is_floating(part.dtype())) return false;
    if (!values) values.emplace(part.dtype(), Shape{network.params.size()});
    std::memcpy(static_cast<std::byte*>(values->data()) +
                    static_cast<std::size_t>(parameters[i].offset) * dtype_size(part.dtype()),
                part.data(), part.size_bytes());
  }
  network.slots.emplace(slot, std::move(*values));
  for (const TensorInfo* info : infos) taken->push_back(info->name);
  return true;
}

}  // namespace

void add_torch_slots(const ModelFile& file, MappedModel* model) {
  std::map<std::string, NumberedSlots> optimizers;
  for (const TensorInfo& info : file.tensors()) {
    const std::optional<TorchSlot> slot = parse_torch_slot(info.name);
    // Counts of steps are scalars.
    if (slot && !info.shape.empty()) {
      optimizers[std::string(slot->prefix)].emplace_back(*slot, &info);
    }
  }
  if (model->networks.empty() || optimizers.size() > kMostPlaces) return;
  std::vector<std::string> taken;
  for (const auto& [prefix, tensors] : optimizers) {
    const std::optional<NumberedTensors> numbered =
        tensors_by_number(file, *model, prefix, tensors);
    if (!numbered) {
      model->notes.push_back(message("of the optimizer's values at '", excerpt(prefix),
                                     "state' the file does not tell which parameters they are of"));
      continue;
    }
    SlotTensors slots;
    for (const auto& [slot, info] : tensors) {
      const auto found = numbered->find(slot.number);
      if (found != numbered->end()) slots[std::string(slot.slot)][found->second->name] = info;
    }
    for (MappedNetwork& network : model->networks) {
      for (const auto& [slot, of] : slots) set_slot(file, slot, of, network, &taken);
    }
    std::unordered_map<std::string_view, std::int64_t> numbers;
    for (const auto& [number, info] : *numbered) numbers.emplace(info->name, number);
    add_optimizer_values(file, prefix, numbers, model, &taken);
  }
  const std::unordered_set<std::string_view> gone(taken.begin(), taken.end());
  std::erase_if(model->not_understood,
                [&](const std::string& name) { return gone.contains(name); });
}

}  // namespace openrnn::mapping
