#include "mapping/json/text.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/message.h"
#include "mapping/support/biases.h"
#include "mapping/support/options.h"

namespace openrnn::mapping {

void append_number(float value, std::string_view format, std::string* out) {
  if (!std::isfinite(value)) {
    throw UnsupportedError(
        message("[save_networks] a weight is ", value, ", which ", format, " cannot hold"));
  }
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  out->append(text.data(), end);
}

namespace {

void append_level(const std::span<const float> values, std::span<const std::int64_t> shape,
                  std::string_view format, std::string* out) {
  if (shape.empty()) return append_number(values[0], format, out);
  const auto each = values.size() / static_cast<std::size_t>(std::max<std::int64_t>(shape[0], 1));
  *out += '[';
  for (std::size_t i = 0; i < static_cast<std::size_t>(shape[0]); ++i) {
    if (i > 0) *out += ", ";
    append_level(values.subspan(i * each, each), shape.subspan(1), format, out);
  }
  *out += ']';
}

}  // namespace

void append_lists(const Array& values, std::string_view format, std::string* out) {
  append_level(values.view().as<float>(), values.shape(), format, out);
}

MappedNetwork json_network(const MappedNetwork& given, std::string_view format, int per_gate) {
  constexpr std::string_view kHeld[] = {"use_bias", "single_bias", "forget_bias"};
  MappedNetwork network = given;
  network.spec = plainest(network.spec);
  require_held("save_networks", network.name, network.spec, format, kHeld);
  const auto refuse = [&](const std::string& what) {
    throw UnsupportedError(message("[save_networks] ", network_called(network.name), " is ", what,
                                   ", which ", format, " cannot hold"));
  };
  if (network.spec.direction == Direction::kBidirectional) refuse("bidirectional");
  if (network.spec.dtype != DType::kFloat32) refuse(std::string(dtype_name(network.spec.dtype)));
  if (network.spec.num_gates() == 1) refuse(std::string(to_string(network.spec.mode)));
  return with_biases(without_forget_bias(network), per_gate);
}

}  // namespace openrnn::mapping
