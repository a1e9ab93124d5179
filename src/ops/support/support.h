// What the operations share: checks, results and records.
#pragma once

#include <array>
#include <span>

#include "base/message.h"
#include "openrnn/graph.h"

namespace openrnn::ops {

/// Throws: ArgumentError unless the tensor has a value of a floating dtype.
void require_floating(std::string_view call, std::string_view name, const Tensor& tensor);
/// Throws: ArgumentError unless both are floating, of one dtype, shape and device.
void require_same(std::string_view call, const Tensor& a, const Tensor& b);
/// Throws: ArgumentError unless b has the dtype and device of a.
void require_same_kind(std::string_view call, std::string_view name, const Tensor& a,
                       const Tensor& b);
/// Throws: ArgumentError unless the tensor is int32 with elements in [least, end); names the
/// position and the value of the first other one. Reads them on the host: pass the original tensor,
/// not a copy on a device.
void require_indices(std::string_view call, std::string_view name, const Tensor& indices,
                     std::int32_t least, std::int64_t end);

/// Whether tensors with values, of which empty ones have none, lie on different devices.
template <class... Tensors>
bool apart(const Tensor& first, const Tensors&... others) {
  const Device* found = nullptr;
  const auto differs = [&found](const Tensor& tensor) {
    if (tensor.empty()) return false;
    const Device* const device = &tensor.value().device();
    if (!found) found = device;
    return device != found;
  };
  return differs(first) || (differs(others) || ...);
}
/// Copies unplaced ones to the device of the others, or of the first one. Throws: ArgumentError
/// naming both devices when two are placed on different ones.
void bring_together(std::string_view call, std::span<Tensor> tensors);
template <class... Tensors>
std::array<Tensor, sizeof...(Tensors)> together(std::string_view call, const Tensors&... tensors) {
  std::array<Tensor, sizeof...(Tensors)> all{tensors...};
  bring_together(call, all);
  return all;
}

/// A new array on the device of `like`, not cleared.
DeviceArray make(const Tensor& like, DType dtype, Shape shape);
DeviceArray make(const DeviceArray& like, DType dtype, Shape shape);
/// The sum of all elements as a scalar on their device; dtype, size and pointers are filled in.
DeviceArray summed(const DeviceArray& x, SumArgs args);
/// float64 for float64, else float32: the dtype of sums and losses.
DType wide_dtype(DType dtype);

/// The product of the dimensions in [begin, end).
std::int64_t span_size(const Shape& shape, std::size_t begin, std::size_t end);
/// Rows and the last dimension. Throws: ArgumentError for a scalar.
struct Matrix {
  std::int64_t rows = 0, cols = 0;
};
Matrix as_rows(std::string_view call, std::string_view name, const Tensor& tensor);

/// record for an operation with one output.
using OneBackward = std::function<std::vector<DeviceArray>(const DeviceArray& gradient)>;
Tensor record_one(std::string op, const std::vector<Tensor>& inputs, DeviceArray output,
                  OneBackward backward, GradientFunction gradient = {}, RowFunction rows = {});
/// record for an operation whose gradient, on arrays too, is made of operations. It keeps all
/// inputs and the output.
Tensor record_composed(std::string op, const std::vector<Tensor>& inputs, DeviceArray output,
                       GradientFunction gradient, RowFunction rows = {});

}  // namespace openrnn::ops
