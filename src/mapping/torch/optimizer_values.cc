#include "mapping/torch/optimizer_values.h"

#include <algorithm>
#include <cmath>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/support/values.h"
#include "mapping/torch/checkpoint.h"

namespace openrnn::mapping {

namespace {

// The one element of an array of any dtype but bool.
double number_in(const Array& one) {
  switch (one.dtype()) {
    case DType::kInt64:
      return static_cast<double>(one.as<std::int64_t>()[0]);
    case DType::kInt32:
      return one.as<std::int32_t>()[0];
    case DType::kUInt8:
      return one.as<std::uint8_t>()[0];
    default:
      return element(one.view(), 0);
  }
}

// A tensor of one number, or a value where the file is of a PyTorch before 1.12.
std::optional<double> step_at(const ModelFile& file, const MappedModel& model,
                              const std::string& name) {
  if (file.contains(name)) {
    const TensorInfo& info = file.info(name);
    if (!info.shape.empty() || info.dtype == "bool") return std::nullopt;
    try {
      return number_in(file.read(name));
    } catch (const UnsupportedError&) {
      return std::nullopt;
    }
  }
  if (const auto* const whole = find_value<std::int64_t>(model.values, name)) {
    return static_cast<double>(*whole);
  }
  const auto* const real = find_value<double>(model.values, name);
  return real ? std::optional<double>(*real) : std::nullopt;
}

PlainValue whole_if_it_is(double step) {
  constexpr double kMostWhole = 9007199254740992.0;  // 2^53
  if (std::trunc(step) == step && std::abs(step) <= kMostWhole) {
    return static_cast<std::int64_t>(step);
  }
  return step;
}

void add_step(const ModelFile& file, const std::string& prefix,
              const std::vector<std::int64_t>& with_slots, MappedModel* model,
              std::vector<std::string>* taken) {
  std::optional<double> step;
  std::vector<std::string> names;
  for (const std::int64_t number : with_slots) {
    const std::string name = message(prefix, "state.", number, ".", kTorchStep);
    const std::optional<double> found = step_at(file, *model, name);
    if (!found) return;
    if (step && *step != *found) {
      model->notes.push_back(message("the optimizer at '", excerpt(prefix), "' has made ", *step,
                                     " steps with one parameter and ", *found,
                                     " with another, of which no value is made"));
      return;
    }
    step = found;
    if (file.contains(name)) names.push_back(name);
  }
  if (!step) return;
  model->values.push_back({prefix + std::string(kTorchStep), whole_if_it_is(*step)});
  taken->insert(taken->end(), names.begin(), names.end());
}

// The group of each parameter by its number.
std::unordered_map<std::int64_t, std::int64_t> groups_in(const std::vector<NamedValue>& values,
                                                         const std::string& prefix) {
  std::unordered_map<std::int64_t, std::int64_t> groups;
  for (std::int64_t group = 0;; ++group) {
    const auto* const numbers = find_value<std::vector<std::int64_t>>(
        values, message(prefix, "param_groups.", group, ".params"));
    if (!numbers) return groups;
    for (const std::int64_t number : *numbers) groups.emplace(number, group);
  }
}

}  // namespace

void add_optimizer_values(const ModelFile& file, const std::string& prefix,
                          const std::unordered_map<std::string_view, std::int64_t>& numbers,
                          MappedModel* model, std::vector<std::string>* taken) {
  const std::unordered_map<std::int64_t, std::int64_t> groups = groups_in(model->values, prefix);
  std::vector<std::int64_t> with_slots, group_of;
  for (const MappedNetwork& network : model->networks) {
    for (const std::string& tensor : network.tensors) {
      const auto number = numbers.find(tensor);
      const auto group = number == numbers.end() ? groups.end() : groups.find(number->second);
      group_of.push_back(group == groups.end() ? -1 : group->second);
      if (number != numbers.end() && !network.slots.empty()) with_slots.push_back(number->second);
    }
  }
  if (with_slots.empty()) return;
  add_step(file, prefix, with_slots, model, taken);
  const bool plain = std::ranges::all_of(group_of, [](std::int64_t group) { return group == 0; });
  if (!plain) model->values.push_back({prefix + std::string(kTorchGroups), group_of});
}

}  // namespace openrnn::mapping
