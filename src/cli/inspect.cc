// openrnn inspect: the tensors of a checkpoint, and the networks that they form; the tensors of a
// model file of another framework.
#include <fmt/core.h>

#include <filesystem>

#include "cli/commands.h"
#include "cli/report/inspected.h"
#include "cli/report/layer_text.h"
#include "openrnn/formats_model_file.h"
#include "openrnn/runtime.h"
#include "openrnn/train.h"
#include "train/run/network_options.h"
#include "train/run/text_of.h"

namespace openrnn::cli {

namespace {

/// Nothing of a checkpoint that is of no run.
std::optional<RnnSpec> network_of(const Extras& extras) {
  if (!extras.contains("config")) return std::nullopt;
  return train::run_config_from_json(extras.get_string("config")).model.network;
}

/// The kind of arithmetic of the run's network on this machine; empty if it lacks it.
std::string kind_here(const Extras& extras) {
  RnnSpec spec = network_of(extras).value_or(RnnSpec{.num_units = 1});
  spec.input_size = spec.num_units;  // which suits every input mode
  spec.compute.math = parse_math(train::trained_arithmetic(extras).math);
  try {
    return std::string(math_kind(spec));
  } catch (const EngineError&) {
    return {};
  } catch (const UnsupportedError&) {
    return {};  // on the device that OPENRNN_DEVICE names
  }
}

/// What no tensor of the checkpoint shows.
void add_options(const Extras& extras, Inspected& inspected) {
  const std::optional<RnnSpec> network = network_of(extras);
  if (!network) return;
  std::string text;
  for (const train::NetworkOption& option : train::network_options()) {
    if (option.always || !option.stands_in(*network)) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", option.name,
                        train::text_of(option.field->get(*network)));
  }
  if (!text.empty()) inspected.add("options", text);
}

/// The arithmetic that a run was trained with, and how this machine would compute it.
void add_arithmetic(const Extras& extras, Inspected& inspected) {
  if (!extras.contains("math_kind")) return;
  const train::TrainedArithmetic trained = train::trained_arithmetic(extras);
  inspected.add("arithmetic", fmt::format("math {}, trained as {}", trained.math, trained.kind));
  const std::string here = kind_here(extras);
  if (here.empty()) {
    inspected.add("note", fmt::format("this machine has no math {}; --math chooses another one",
                                      trained.math));
  } else if (here != trained.kind) {
    inspected.add("note", fmt::format("trained as {}, which this machine computes as {}: another "
                                      "order of sums",
                                      trained.kind, here));
  }
  if (trained.version != train::arithmetic_version()) {
    inspected.add("note", fmt::format("trained with sums of version {}, this library's are of "
                                      "version {}",
                                      trained.version, train::arithmetic_version()));
  }
}

[[noreturn]] void refuse(const std::string& path, const std::string& found) {
  throw ArgumentError(
      "[inspect] '" + path + "' " + found +
      ", expected a model file, the output folder of a run or a checkpoint's prefix");
}

/// A model file of another framework, if the path is one. Checkpoints may be those of runs, of
/// which there is more to tell. Throws: ArgumentError saying what the path is, if it is neither.
std::optional<FoundFile> model_file_at(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path at(path);
  if (std::filesystem::exists(at / "saved_model.pb", ignored)) return identify_file(path);
  const bool is_folder = std::filesystem::is_directory(at, ignored);
  const bool is_prefix = std::filesystem::exists(path + ".index", ignored);
  if (!is_folder && !std::filesystem::is_regular_file(at, ignored)) {
    if (!is_prefix && !std::filesystem::exists(at, ignored)) refuse(path, "does not exist");
    return std::nullopt;
  }
  FoundFile found = identify_file(path);
  if (found.kind == FileKind::kTfCheckpoint) return std::nullopt;
  if (found.kind != FileKind::kUnknown) return found;
  if (is_prefix) return std::nullopt;
  refuse(path, "is " + (found.what == "a file" ? "a file of no known kind" : found.what));
}

// What a file leaves open is a note: its tensors are listed all the same.
void add_networks(const InspectFlags& flags, Inspected& inspected) {
  try {
    MappedModel model = load_networks(flags.checkpoint, flags.hints);
    inspected.kind = model.what;
    if (model.verified) inspected.checksums = Checksums::kRight;
    for (const MappedNetwork& network : model.networks) {
      Inspected::Network shown{.name = network.name,
                               .spec = network.spec,
                               .parameters = network.params.size(),
                               .slots = {},
                               .tensors = network.tensors,
                               .has_state = network.initial_h || network.initial_c};
      for (const auto& [slot, values] : network.slots) shown.slots.push_back(slot);
      inspected.networks.push_back(std::move(shown));
    }
    if (!model.layers.empty()) {
      const auto values = check_layers(model.layers, model.outputs, find_spec_in(model));
      for (const MappedLayer& layer : model.layers) {
        inspected.layers.push_back(
            {layer.name, layer.kind, text_of_layer(layer, values.at(layer.name)), layer.tensors});
      }
    }
    inspected.not_understood = std::move(model.not_understood);
    for (const std::string& note : model.notes) inspected.add("note", note);
    if (inspected.networks.empty()) inspected.add("note", "no recurrent network among them");
  } catch (const ArgumentError& error) {
    inspected.add("note", error.what());
  } catch (const UnsupportedError& error) {
    inspected.add("note", error.what());
  }
}

Inspected inspect_model_file(const InspectFlags& flags, const FoundFile& found) {
  const std::string& path = flags.checkpoint;
  const bool fast = flags.fast;
  const ModelFile file(path);
  if (!fast) file.verify();
  Inspected inspected{.path = path,
                      .kind = found.what,
                      .checksums = !file.has_checksums() ? Checksums::kNone
                                   : fast                ? Checksums::kNotVerified
                                                         : Checksums::kRight,
                      .tensors = file.tensors(),
                      .values = file.values(),
                      .remarks = {}};
  add_networks(flags, inspected);
  return inspected;
}

Inspected inspect_checkpoint(const InspectFlags& flags) {
  const bool fast = flags.fast;
  const TensorBundleReader reader = train::open_run(flags.checkpoint);
  if (!fast) reader.verify();
  Inspected inspected{.path = reader.prefix(),
                      .kind = "a checkpoint",
                      .checksums = fast ? Checksums::kNotVerified : Checksums::kRight,
                      .tensors = reader.tensors(),
                      .values = {},
                      .remarks = {}};
  const CheckpointContents contents = describe_network(reader);
  if (contents.networks.empty() && (contents.remarks.empty() || flags.hints.network)) {
    // No names of ours: those of TensorFlow's cells and Keras's layers. Or what a hint says.
    add_networks(flags, inspected);
  } else {
    for (const NetworkDescription& network : contents.networks) {
      inspected.remarks.push_back({"network", network.scope, network.text});
    }
    for (const std::string& remark : contents.remarks) inspected.add("note", remark);
  }
  const Extras extras = read_extras(reader);
  add_options(extras, inspected);
  add_arithmetic(extras, inspected);
  return inspected;
}

}  // namespace

int run(const InspectFlags& flags) {
  const std::optional<FoundFile> found = model_file_at(flags.checkpoint);
  const Inspected inspected = found ? inspect_model_file(flags, *found) : inspect_checkpoint(flags);
  if (flags.json) {
    print_json(inspected);
  } else {
    print_text(inspected);
  }
  return 0;
}

}  // namespace openrnn::cli
