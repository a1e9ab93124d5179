#include <atomic>

#include "base/message.h"
#include "graph/tape/leaf_id.h"
#include "graph/tape/recording.h"

namespace openrnn {

namespace graph {

std::uint64_t next_id() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace graph

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
                           std::vector<DeviceArray> outputs, BackwardFunction backward,
                           GradientFunction gradient, RowFunction rows) {
  return graph::Recorder::record(std::move(op), inputs, std::move(outputs), std::move(backward), {},
                                 std::move(gradient), std::move(rows));
}

std::vector<Tensor> record_selective(std::string op, const std::vector<Tensor>& inputs,
                                     std::vector<DeviceArray> outputs, SelectiveBackward backward,
                                     GradientFunction gradient, RowFunction rows) {
  return graph::Recorder::record(std::move(op), inputs, std::move(outputs), {}, std::move(backward),
                                 std::move(gradient), std::move(rows));
}

}  // namespace openrnn
