// openrnn inspect: the tensors of a checkpoint, and the networks that they form.
#include <fmt/core.h>

#include <algorithm>

#include "cli/commands.h"
#include "openrnn/runtime.h"
#include "openrnn/train.h"

namespace openrnn::cli {

namespace {

/// The kind of arithmetic of the run's network on this machine; empty if it lacks it.
std::string kind_here(const Extras& extras) {
  RnnSpec spec;
  spec.num_units = spec.input_size = 1;
  spec.compute.math = parse_math(train::trained_arithmetic(extras).math);
  if (extras.contains("config")) {
    spec.dtype = train::run_config_from_json(extras.get_string("config")).model.dtype;
  }
  try {
    return std::string(math_kind(spec));
  } catch (const EngineError&) {
    return {};
  }
}

/// The arithmetic that a run was trained with, and how this machine would compute it.
void print_arithmetic(const TensorBundleReader& reader) {
  const Extras extras = read_extras(reader);
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

}  // namespace

int run(const InspectFlags& flags) {
  const TensorBundleReader reader = train::open_run(flags.checkpoint);
  if (!flags.fast) reader.verify();
  std::size_t width = 6;
  std::uint64_t bytes = 0;
  for (const TensorInfo& tensor : reader.tensors()) {
    width = std::max(width, tensor.name.size());
    bytes += tensor.bytes;
  }
  fmt::print("{:<{}}  {:<8}  {:<16}  {:>12}\n", "tensor", width, "dtype", "shape", "bytes");
  for (const TensorInfo& tensor : reader.tensors()) {
    fmt::print("{:<{}}  {:<8}  {:<16}  {:>12}\n", tensor.name, width, tensor.dtype,
               to_string(tensor.shape), tensor.bytes);
  }
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
  print_arithmetic(reader);
  return 0;
}

}  // namespace openrnn::cli
