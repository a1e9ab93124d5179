#include "mapping/torch/checkpoint.h"

#include <algorithm>
#include <set>

#include "base/message.h"
#include "mapping/support/values.h"

namespace openrnn::mapping {

namespace {

constexpr std::string_view kGroupsList = "param_groups.", kState = "state.";

// Where the values of one optimizer begin; nothing if there are several.
std::optional<std::string> optimizer_prefix(const std::vector<NamedValue>& values) {
  std::set<std::string> prefixes;
  for (const NamedValue& value : values) {
    const std::size_t at = value.name.find(kGroupsList);
    if (at == 0 || (at != std::string::npos && value.name[at - 1] == '.')) {
      prefixes.insert(value.name.substr(0, at));
    }
  }
  if (prefixes.empty()) return "optimizer.";
  if (prefixes.size() > 1) return std::nullopt;
  return *prefixes.begin();
}

std::vector<TorchSlotView> slots_of(const TorchTensors& tensors) {
  std::vector<TorchSlotView> slots;
  std::size_t number = 0;
  for (const MappedNetwork& network : tensors.networks) {
    for (const TorchParameter& parameter : torch_parameters(network.spec)) {
      for (const auto& [slot, values] : network.slots) {
        const auto at = static_cast<std::size_t>(parameter.offset) * dtype_size(values.dtype());
        slots.push_back(
            {number,
             slot,
             {static_cast<const std::byte*>(values.data()) + at, values.dtype(), parameter.shape}});
      }
      ++number;
    }
  }
  return slots;
}

std::optional<Array> step_in(const std::vector<NamedValue>& values, const std::string& prefix) {
  const std::string name = prefix + std::string(kTorchStep);
  std::optional<double> step;
  if (const auto* const whole = find_value<std::int64_t>(values, name)) {
    step = static_cast<double>(*whole);
  } else if (const auto* const real = find_value<double>(values, name)) {
    step = *real;
  }
  if (!step) return std::nullopt;
  // As PyTorch has it.
  Array array(DType::kFloat32, {});
  array.as<float>()[0] = static_cast<float>(*step);
  return array;
}

// What PyTorch's Adam has where nothing else is said: a group without them cannot be stepped.
std::vector<NamedValue> default_options(bool counts_steps) {
  if (!counts_steps) {
    return {{"lr", 1e-3},          {"momentum", 0.0},         {"dampening", 0.0},
            {"weight_decay", 0.0}, {"nesterov", false},       {"maximize", false},
            {"foreach", {}},       {"differentiable", false}, {"fused", {}}};
  }
  return {{"lr", 1e-3},
          {"betas", std::vector<double>{0.9, 0.999}},
          {"eps", 1e-8},
          {"weight_decay", 0.0},
          {"amsgrad", false},
          {"maximize", false},
          {"foreach", {}},
          {"capturable", false},
          {"differentiable", false},
          {"fused", {}}};
}

std::vector<NamedValue> options_of_group(const std::vector<NamedValue>& values,
                                         const std::string& prefix, std::int64_t group) {
  const std::string place = message(prefix, kGroupsList, group, ".");
  std::vector<NamedValue> options;
  for (const NamedValue& value : values) {
    if (!value.name.starts_with(place)) continue;
    const std::string option = value.name.substr(place.size());
    // Those of the file that was read: numbers are others now.
    if (option == "params" || option == "param_names") continue;
    options.push_back({option, value.value});
  }
  return options;
}

// Every parameter is in the group that it was in; nothing where that is not known.
std::optional<std::vector<TorchOptimizerState::Group>> groups_of_parameters(
    const std::vector<NamedValue>& values, const std::string& prefix, std::size_t parameters,
    bool counts_steps) {
  const auto* const known =
      find_value<std::vector<std::int64_t>>(values, prefix + std::string(kTorchGroups));
  std::vector<std::int64_t> of(parameters, 0);
  if (known) {
    if (known->size() != parameters) return std::nullopt;
    of = *known;
  }
  std::vector<TorchOptimizerState::Group> groups;
  for (const std::int64_t group : std::set<std::int64_t>(of.begin(), of.end())) {
    if (group < 0) continue;  // the optimizer has not got it
    TorchOptimizerState::Group out{.parameters = {},
                                   .options = options_of_group(values, prefix, group)};
    if (out.options.empty()) out.options = default_options(counts_steps);
    for (std::size_t i = 0; i < parameters; ++i) {
      if (of[i] == group) out.parameters.push_back(static_cast<std::int64_t>(i));
    }
    groups.push_back(std::move(out));
  }
  return groups;
}

std::optional<TorchOptimizerState> optimizer_of(const TorchTensors& tensors,
                                                const std::vector<NamedValue>& values,
                                                const std::optional<std::string>& prefix) {
  TorchOptimizerState state{.slots = slots_of(tensors)};
  if (state.slots.empty() || !prefix) return std::nullopt;
  state.prefix = prefix->empty() ? "optimizer." : *prefix;
  state.step = step_in(values, *prefix);
  const bool counts_steps = std::ranges::any_of(
      state.slots, [](const TorchSlotView& slot) { return slot.slot != "momentum_buffer"; });
  if (counts_steps && !state.step) return std::nullopt;
  auto groups = groups_of_parameters(values, *prefix, tensors.views.size(), counts_steps);
  if (!groups) return std::nullopt;
  state.groups = std::move(*groups);
  return state;
}

bool is_of_optimizer(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  return name == kTorchStep || name == kTorchGroups || name.starts_with(kGroupsList) ||
         name.starts_with(kState);
}

}  // namespace

TorchCheckpoint torch_checkpoint_of(const MappedModel& model, std::string_view format) {
  TorchCheckpoint checkpoint{.tensors = torch_tensors_of(model, format)};
  const std::optional<std::string> prefix = optimizer_prefix(model.values);
  checkpoint.optimizer = optimizer_of(checkpoint.tensors, model.values, prefix);
  for (const NamedValue& value : model.values) {
    if (prefix && is_of_optimizer(value.name, *prefix)) continue;
    checkpoint.values.push_back(value);
  }
  return checkpoint;
}

FlatCheckpoint flat_checkpoint(const TorchCheckpoint& checkpoint) {
  FlatCheckpoint flat{.views = checkpoint.tensors.views, .values = checkpoint.values};
  if (!checkpoint.optimizer) return flat;
  const TorchOptimizerState& state = *checkpoint.optimizer;
  std::set<std::size_t> with_step;
  for (const TorchSlotView& slot : state.slots) {
    const std::string place = message(state.prefix, kState, slot.number, ".");
    flat.views.push_back({place + slot.slot, slot.values});
    if (state.step && with_step.insert(slot.number).second) {
      flat.views.push_back({message(place, kTorchStep), state.step->view()});
    }
  }
  for (std::size_t i = 0; i < state.groups.size(); ++i) {
    const std::string place = message(state.prefix, kGroupsList, i, ".");
    for (const NamedValue& option : state.groups[i].options) {
      flat.values.push_back({place + option.name, option.value});
    }
    std::vector<std::string> names;
    for (const std::int64_t number : state.groups[i].parameters) {
      names.push_back(checkpoint.tensors.views[static_cast<std::size_t>(number)].name);
    }
    flat.values.push_back({place + "params", state.groups[i].parameters});
    flat.values.push_back({place + "param_names", std::move(names)});
  }
  return flat;
}

}  // namespace openrnn::mapping
