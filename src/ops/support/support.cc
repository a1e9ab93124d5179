#include "ops/support/support.h"

#include <limits>

namespace openrnn::ops {
namespace {

std::string kind_of(const Tensor& tensor) {
  if (tensor.empty()) return "empty";
  return message(dtype_name(tensor.dtype()), " of shape ", to_string(tensor.shape()));
}

}  // namespace

void require_floating(std::string_view call, std::string_view name, const Tensor& tensor) {
  if (!tensor.empty() && is_floating(tensor.dtype())) return;
  throw ArgumentError(
      message("[", call, "] ", name, " is ", kind_of(tensor), ", expected a floating tensor"));
}

void require_same_kind(std::string_view call, std::string_view name, const Tensor& a,
                       const Tensor& b) {
  require_floating(call, name, b);
  if (a.dtype() != b.dtype()) {
    throw ArgumentError(message("[", call, "] ", name, " is ", dtype_name(b.dtype()), ", expected ",
                                dtype_name(a.dtype())));
  }
  if (&a.value().device() != &b.value().device()) {
    throw ArgumentError(message("[", call, "] ", name, " lies on ", b.value().device().name(),
                                ", expected ", a.value().device().name()));
  }
}

void require_same(std::string_view call, const Tensor& a, const Tensor& b) {
  require_floating(call, "a", a);
  require_same_kind(call, "b", a, b);
  if (a.shape() != b.shape()) {
    throw ArgumentError(message("[", call, "] b has shape ", to_string(b.shape()), ", expected ",
                                to_string(a.shape()), " as a"));
  }
}

void require_indices(std::string_view call, std::string_view name, const Tensor& indices,
                     std::int32_t least, std::int64_t end) {
  if (indices.empty() || indices.dtype() != DType::kInt32) {
    throw ArgumentError(
        message("[", call, "] ", name, " is ", kind_of(indices), ", expected an int32 tensor"));
  }
  const Array host = indices.to_host();
  const std::span<const std::int32_t> values = host.as<std::int32_t>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= least && values[i] < end) continue;
    const std::string low = least == std::numeric_limits<std::int32_t>::min()
                                ? ""
                                : message(" at least ", least, " and");
    throw ArgumentError(message("[", call, "] ", name, "[", i, "] is ", values[i], ", expected",
                                low, " below ", end));
  }
}

void bring_together(std::string_view call, std::span<Tensor> tensors) {
  const Tensor* place = nullptr;
  for (const Tensor& tensor : tensors) {
    if (tensor.empty()) continue;
    if (!place || (!place->placed() && tensor.placed())) place = &tensor;
    if (tensor.placed() && &tensor.device() != &place->device()) {
      throw ArgumentError(message("[", call, "] one input lies on ", place->device().name(),
                                  " and one on ", tensor.device().name(),
                                  ", expected one device: to() copies a tensor to another"));
    }
  }
  if (!place) return;
  const Device& device = place->device();
  for (Tensor& tensor : tensors) {
    if (!tensor.empty()) tensor = tensor.to(device);
  }
}

DeviceArray make(const DeviceArray& like, DType dtype, Shape shape) {
  return {like.device(), dtype, std::move(shape)};
}

DeviceArray make(const Tensor& like, DType dtype, Shape shape) {
  return make(like.value(), dtype, std::move(shape));
}

DeviceArray summed(const DeviceArray& x, SumArgs args) {
  DeviceArray result = make(x, args.out_dtype, {});
  args.dtype = x.dtype();
  args.size = x.size();
  args.x = x.data();
  args.out = result.mutable_data();
  x.device().sum_to(args);
  return result;
}

DType wide_dtype(DType dtype) {
  return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

std::int64_t span_size(const Shape& shape, std::size_t begin, std::size_t end) {
  std::int64_t size = 1;
  for (std::size_t i = begin; i < end; ++i) size *= shape[i];
  return size;
}

Matrix as_rows(std::string_view call, std::string_view name, const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  if (shape.empty()) {
    throw ArgumentError(
        message("[", call, "] ", name, " is a scalar, expected at least one dimension"));
  }
  return {span_size(shape, 0, shape.size() - 1), shape.back()};
}

Tensor record_one(std::string op, const std::vector<Tensor>& inputs, DeviceArray output,
                  OneBackward backward, GradientFunction gradient, RowFunction rows) {
  std::vector<DeviceArray> outputs;
  outputs.push_back(std::move(output));
  return record(
      std::move(op), inputs, std::move(outputs),
      [backward = std::move(backward)](const std::vector<DeviceArray>& gradients) {
        return backward(gradients[0]);
      },
      std::move(gradient), std::move(rows))[0];
}

Tensor record_composed(std::string op, const std::vector<Tensor>& inputs, DeviceArray output,
                       GradientFunction gradient, RowFunction rows) {
  std::vector<Tensor> constants;
  for (const Tensor& input : inputs) constants.push_back(input.detached());
  const std::vector<Tensor> results{Tensor(output)};
  const auto backward = [=](const std::vector<DeviceArray>& dy, const std::vector<bool>& wanted) {
    const std::vector<Tensor> given{Tensor(dy[0])};
    std::vector<DeviceArray> arrays;
    for (const Tensor& found : gradient({constants, results, given, wanted})) {
      arrays.push_back(found.empty() ? DeviceArray() : found.value());
    }
    return arrays;
  };
  return record_selective(std::move(op), inputs, {std::move(output)}, backward, gradient,
                          std::move(rows))[0];
}

}  // namespace openrnn::ops
