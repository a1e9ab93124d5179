// openrnn inspect: the tensors of a checkpoint, and the networks that they form; the tensors of a
// model file of another framework.
#include <fmt/core.h>

#include <filesystem>

#include "base/excerpt.h"
#include "cli/commands.h"
#include "cli/report/tensor_table.h"
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
void print_options(const Extras& extras) {
  const std::optional<RnnSpec> network = network_of(extras);
  if (!network) return;
  std::string text;
  for (const train::NetworkOption& option : train::network_options()) {
    if (option.always || !option.stands_in(*network)) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", option.name,
                        train::text_of(option.field->get(*network)));
  }
  if (!text.empty()) fmt::print("options: {}\n", text);
}

/// The arithmetic that a run was trained with, and how this machine would compute it.
void print_arithmetic(const Extras& extras) {
  if (!extras.contains("math_kind")) return;
  const train::TrainedArithmetic trained = train::trained_arithmetic(extras);
  fmt::print("arithmetic: math {}, trained as {}\n", trained.math, trained.kind);
  const std::string here = kind_here(extras);
  if (here.empty()) {
    fmt::print("note: this machine has no math {}; --math chooses another one\n", trained.math);
  } else if (here != trained.kind) {
    fmt::print("note: trained as {}, which this machine computes as {}: another order of sums\n",
               trained.kind, here);
  }
  if (trained.version != train::arithmetic_version()) {
    fmt::print("note: trained with sums of version {}, this library's are of version {}\n",
               trained.version, train::arithmetic_version());
  }
}

/// A model file of another framework, if the path is one.
std::optional<FoundFile> model_file_at(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  FoundFile found = identify_file(path);
  if (found.kind == FileKind::kUnknown) return std::nullopt;
  return found;
}

int inspect_model_file(const std::string& path, const FoundFile& found, bool fast) {
  const ModelFile file(path);
  if (!fast) file.verify();
  const std::uint64_t bytes = print_tensor_table(file.tensors());
  fmt::print("{} tensors, {} bytes in {}, {}, {}\n", file.tensors().size(), bytes, path, found.what,
             !file.has_checksums() ? "which has no checksums"
             : fast                ? "not verified"
                                   : "every checksum is right");
  for (const NamedValue& value : file.values()) {
    fmt::print("{}: {}\n", excerpt(value.name), text_of_value(value.value));
  }
  return 0;
}

}  // namespace

int run(const InspectFlags& flags) {
  if (const std::optional<FoundFile> found = model_file_at(flags.checkpoint)) {
    return inspect_model_file(flags.checkpoint, *found, flags.fast);
  }
  const TensorBundleReader reader = train::open_run(flags.checkpoint);
  if (!flags.fast) reader.verify();
  const std::uint64_t bytes = print_tensor_table(reader.tensors());
  fmt::print("{} tensors, {} bytes in {}, {}\n", reader.tensors().size(), bytes, reader.prefix(),
             flags.fast ? "not verified" : "every checksum is right");

  const CheckpointContents contents = describe_network(reader);
  for (const NetworkDescription& network : contents.networks) {
    fmt::print("network{}{}: {}\n", network.scope.empty() ? "" : " in ", network.scope,
               network.text);
  }
  for (const std::string& remark : contents.remarks) fmt::print("note: {}\n", remark);
  if (contents.networks.empty() && contents.remarks.empty()) {
    fmt::print("no recurrent network among them\n");
  }
  const Extras extras = read_extras(reader);
  print_options(extras);
  print_arithmetic(extras);
  return 0;
}

}  // namespace openrnn::cli
