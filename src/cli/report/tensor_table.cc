#include "cli/report/tensor_table.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/excerpt.h"

namespace openrnn::cli {

namespace {

std::string text_of_one(std::monostate) { return "none"; }
std::string text_of_one(bool value) { return value ? "true" : "false"; }
std::string text_of_one(std::int64_t value) { return fmt::format("{}", value); }
std::string text_of_one(double value) { return fmt::format("{}", value); }
std::string text_of_one(const std::string& value) { return "'" + excerpt(value) + "'"; }

template <class T>
std::string text_of_one(const std::vector<T>& values) {
  constexpr std::size_t kMost = 8;
  std::string text = "[";
  for (std::size_t i = 0; i < values.size() && i < kMost; ++i) {
    text += (i ? ", " : "") + text_of_one(values[i]);
  }
  if (values.size() > kMost) text += fmt::format(", ... ({} values)", values.size());
  return text + "]";
}

}  // namespace

std::uint64_t print_tensor_table(const std::vector<TensorInfo>& tensors) {
  std::size_t width = 6;
  std::uint64_t bytes = 0;
  for (const TensorInfo& tensor : tensors) {
    width = std::max(width, tensor.name.size());
    bytes += tensor.bytes;
  }
  fmt::print("{:<{}}  {:<8}  {:<16}  {:>12}\n", "tensor", width, "dtype", "shape", "bytes");
  for (const TensorInfo& tensor : tensors) {
    fmt::print("{:<{}}  {:<8}  {:<16}  {:>12}\n", tensor.name, width, tensor.dtype,
               to_string(tensor.shape), tensor.bytes);
  }
  return bytes;
}

std::string text_of_value(const PlainValue& value) {
  return std::visit([](const auto& held) { return text_of_one(held); }, value);
}

}  // namespace openrnn::cli
