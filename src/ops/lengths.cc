#include "base/message.h"
#include "openrnn/ops_rnn.h"

namespace openrnn::ops {

std::optional<std::vector<std::int32_t>> lengths_of(std::string_view call, const Tensor& lengths) {
  if (lengths.empty()) return std::nullopt;
  if (lengths.dtype() != DType::kInt32 || lengths.shape().size() != 1) {
    throw ArgumentError(message("[", call, "] sequence_lengths is ", dtype_name(lengths.dtype()),
                                " of shape ", to_string(lengths.shape()),
                                ", expected int32 of 1 dimension: one a row of the batch"));
  }
  const Array host = lengths.to_host();
  const std::span<const std::int32_t> values = host.as<std::int32_t>();
  return std::vector<std::int32_t>(values.begin(), values.end());
}

}  // namespace openrnn::ops
