// openrnn inspect: the tensors of a checkpoint, and the networks that they make up.
#include <fmt/core.h>

#include <algorithm>

#include "cli/commands.h"
#include "openrnn/train.h"

namespace openrnn::cli {

int run(const InspectFlags& flags) {
  const TensorBundleReader reader(train::resolve_run(flags.checkpoint));
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
  fmt::print("{} tensors, {} bytes in {}\n", reader.tensors().size(), bytes, reader.prefix());

  const CheckpointContents contents = describe_network(reader);
  for (const NetworkDescription& network : contents.networks) {
    fmt::print("network{}{}: {}\n", network.scope.empty() ? "" : " in ", network.scope,
               network.text);
  }
  for (const std::string& remark : contents.remarks) fmt::print("note: {}\n", remark);
  if (contents.networks.empty() && contents.remarks.empty()) {
    fmt::print("no recurrent network among them\n");
  }
  return 0;
}

}  // namespace openrnn::cli
