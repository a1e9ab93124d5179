#include <algorithm>
#include <atomic>

#include "base/message.h"
#include "graph/leaf_id.h"
#include "graph/recording.h"

namespace openrnn {

namespace graph {

std::uint64_t next_id() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace graph

namespace {

bool is_placed(const Tensor& tensor) { return !tensor.empty() && tensor.placed(); }

}  // namespace

double Tensor::item() const {
  if (empty() || value().size() != 1) {
    throw ArgumentError(message("[item] the tensor has shape ",
                                empty() ? std::string("of nothing") : to_string(shape()),
                                ", expected exactly one element"));
  }
  const Array host = value_.to_host();
  switch (host.dtype()) {
    case DType::kInt32:
      return static_cast<double>(host.as<std::int32_t>()[0]);
    case DType::kInt64:
      return static_cast<double>(host.as<std::int64_t>()[0]);
    case DType::kUInt8:
      return static_cast<double>(host.as<std::uint8_t>()[0]);
    case DType::kBool:
      return host.as<bool>()[0] ? 1.0 : 0.0;
    default:
      return element(host.view(), 0);
  }
}

bool recording(const std::vector<Tensor>& inputs) {
  if (!graph::OpenTapes::of_this_thread()->any()) return false;
  for (const Tensor& input : inputs) {
    if (input.tracked()) return true;
  }
  return false;
}

std::vector<Tensor> record(std::string op, const std::vector<Tensor>& inputs,
                           std::vector<DeviceArray> outputs, BackwardFunction backward) {
  std::vector<Tensor> tensors;
  tensors.reserve(outputs.size());
  const bool placed = inputs.empty() || std::any_of(inputs.begin(), inputs.end(), is_placed);
  for (DeviceArray& output : outputs) {
    tensors.emplace_back(std::move(output));
    tensors.back().placed_ = placed;
  }
  if (!recording(inputs)) return tensors;
  auto node = std::make_shared<Node>();
  node->id = graph::next_id();
  node->op = std::move(op);
  node->num_outputs = tensors.size();
  node->backward = std::move(backward);
  for (const Tensor& input : inputs) {
    const std::shared_ptr<const Node> from = input.node();
    node->inputs.push_back({from ? from->id : 0, input.output_index_,
                            input.wants_gradient_ ? input.leaf_id_ : std::uint64_t{0}});
  }
  const std::shared_ptr<const Node> shared = std::move(node);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].node_ = shared;
    tensors[i].output_index_ = i;
  }
  graph::OpenTapes::of_this_thread()->record(shared);
  return tensors;
}

}  // namespace openrnn
