// openrnn convert: networks of a model file as one of another kind, and how far both are apart.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/excerpt.h"
#include "cli/commands.h"
#include "cli/model/difference.h"
#include "cli/model/whole.h"

namespace openrnn::cli {
namespace {

// What was written is read as what was read.
MappingHints hints_for(const MappedNetwork& network, MappingHints hints) {
  if (network.spec.mode == RnnMode::kGru) {
    hints.reset_after = network.spec.reset_after;
  } else if (network.spec.candidate_activation().kind == CellActivationKind::kRelu) {
    hints.mode = RnnMode::kRnnRelu;
  } else {
    hints.mode = RnnMode::kRnnTanh;
  }
  return hints;
}

bool same_sizes(const RnnSpec& a, const RnnSpec& b) {
  return a.num_gates() == b.num_gates() && a.num_layers == b.num_layers &&
         a.direction == b.direction && a.input_size == b.input_size && a.num_units == b.num_units &&
         a.num_proj == b.num_proj;
}

// By its name, as a writer may sort tensors by theirs; a format may also change the name.
const MappedNetwork& matching(const MappedModel& model, const MappedNetwork& given,
                              std::size_t number) {
  for (const MappedNetwork& network : model.networks) {
    if (network.name == given.name) return network;
  }
  return model.networks[number];
}

/// What was written, read again: once for each set of hints, as a file may hold plain networks of
/// both activations.
class Written {
 public:
  Written(const ConvertFlags& flags, std::size_t count) : flags_(flags), count_(count) {}

  /// The file is read.
  const MappedModel& model() const { return models_.begin()->second; }

  const MappedNetwork& network(const MappedNetwork& given, std::size_t number) {
    const MappingHints hints = hints_for(given, flags_.hints);
    const auto [at, is_new] = models_.try_emplace({hints.mode, hints.reset_after});
    MappedModel& model = at->second;
    if (is_new) model = load_networks(flags_.out, hints);
    if (model.networks.size() != count_) {
      throw StateError(fmt::format("[convert] {} has {} networks after it was written, expected {}",
                                   flags_.out, model.networks.size(), count_));
    }
    const MappedNetwork& network = matching(model, given, number);
    if (same_sizes(network.spec, given.spec)) return network;
    throw StateError(fmt::format("[convert] {} has a {} after it was written, expected a {}",
                                 flags_.out, describe(network.spec), describe(given.spec)));
  }

 private:
  const ConvertFlags& flags_;
  std::size_t count_;
  std::map<std::pair<std::optional<RnnMode>, std::optional<bool>>, MappedModel> models_;
};

void report_difference(const MappedNetwork& before, const MappedNetwork& after) {
  const Difference difference = difference_of(before, after);
  fmt::print("network{}: {}, largest difference {:.3g} of {} values\n",
             before.name.empty() ? "" : " " + excerpt(before.name), describe(after.spec),
             difference.largest, difference.values);
}

void report_slots(const MappedNetwork& before, const MappedNetwork& after) {
  for (const auto& [slot, values] : before.slots) {
    if (after.slots.contains(slot)) continue;
    fmt::print("left out: optimizer slot {}, for which such a file has no place\n", excerpt(slot));
  }
}

void report_values(const MappedModel& before, const MappedModel& after) {
  // Those of Keras say what its layers are.
  constexpr FileKind kOfKeras[] = {FileKind::kKerasH5, FileKind::kKerasWeights,
                                   FileKind::kKerasArchive};
  if (std::ranges::find(kOfKeras, before.kind) != std::end(kOfKeras)) return;
  std::vector<std::string> lost;
  for (const NamedValue& value : before.values) {
    const bool kept =
        std::ranges::find(after.values, value.name, &NamedValue::name) != after.values.end();
    // Names that a file has only where it needs them are of no use to anybody else.
    if (!kept && !value.name.ends_with(".param_names")) lost.push_back(value.name);
  }
  if (lost.empty()) return;
  fmt::print("left out: {} {}: {}\n", lost.size(), lost.size() == 1 ? "value" : "values",
             listed_excerpts(lost));
}

// Of layers around the networks: how far both are apart, or that they are left out.
void report_layers(const ConvertFlags& flags, const MappedModel& before, ModelFormat format) {
  if (!is_whole(before)) return;
  if (format == ModelFormat::kKerasWeights) {
    fmt::print("model: {} layers, of which such a file has the weights alone\n",
               before.layers.size());
    return;
  }
  if (holds_layers(format)) {
    const MappedModel after = load_networks(flags.out, flags.hints);
    const WholeDifference difference = whole_difference(before, after);
    fmt::print("model: {} layers, largest difference {:.3g} of {} values\n", after.layers.size(),
               difference.largest, difference.values);
    return;
  }
  std::vector<std::string> names;
  for (const MappedLayer& layer : before.layers) {
    if (layer.kind == "input" || layer.kind == "recurrent") continue;
    names.push_back(fmt::format("{} ({})", layer.name, layer.kind));
  }
  fmt::print("left out: {} layers around the networks, for which such a file has no place: {}\n",
             names.size(), listed_excerpts(names));
}

}  // namespace

int run(const ConvertFlags& flags) {
  require_model("in", flags.in);
  std::error_code ignored;
  if (std::filesystem::equivalent(flags.in, flags.out, ignored)) {
    throw ArgumentError("[convert] out '" + flags.out +
                        "' is the file that is read, expected another: what is of no network "
                        "would be lost");
  }
  const ModelFormat format =
      flags.to.empty() ? model_format_of(flags.out) : parse_model_format(flags.to);
  const MappedModel before = load_networks(flags.in, flags.hints);
  if (before.networks.empty()) {
    throw ArgumentError("[convert] '" + flags.in + "' has no recurrent network, expected one" +
                        (before.notes.empty() ? "" : ": " + before.notes.front()));
  }
  save_networks(flags.out, before, format);
  Written written(flags, before.networks.size());
  for (std::size_t i = 0; i < before.networks.size(); ++i) {
    const MappedNetwork& after = written.network(before.networks[i], i);
    report_difference(before.networks[i], after);
    report_slots(before.networks[i], after);
  }
  report_values(before, written.model());
  report_layers(flags, before, format);
  if (!before.not_understood.empty()) {
    fmt::print("left out: {} tensors of no network: {}\n", before.not_understood.size(),
               listed_excerpts(before.not_understood));
  }
  for (const std::string& note : before.notes) fmt::print("note: {}\n", note);
  fmt::print("{} to {}, {}\n", before.what, flags.out, to_string(format));
  return 0;
}

}  // namespace openrnn::cli
