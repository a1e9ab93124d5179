#include "mapping/onnx/values/arrays.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/message.h"

namespace openrnn::mapping {

namespace {

// What a step costs besides its elements.
constexpr std::uint64_t kBytesOfStep = 256;

Shape strides_of(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

// Copies element `first` + sum of index * stride to each place of the result.
void copy_by_strides(const Array& x, std::int64_t first, const Shape& strides, Array* out) {
  const auto bytes = dtype_size(x.dtype());
  const auto* from = static_cast<const char*>(x.data());
  auto* to = static_cast<char*>(out->data());
  const Shape& shape = out->shape();
  std::vector<std::int64_t> at(shape.size(), 0);
  std::int64_t place = first;
  for (std::int64_t i = 0, size = out->size(); i < size; ++i, to += bytes) {
    std::memcpy(to, from + static_cast<std::size_t>(place) * bytes, bytes);
    for (std::size_t d = shape.size(); d-- > 0;) {
      place += strides[d];
      if (++at[d] < shape[d]) break;
      place -= strides[d] * shape[d];
      at[d] = 0;
    }
  }
}

[[noreturn]] void fail_shapes(const char* call, const Shape& a, const Shape& b) {
  throw ArgumentError(message("[", call, "] shapes are ", to_string(a), " and ", to_string(b),
                              ", expected ones that fit"));
}

// The product of sizes [begin, end).
std::size_t product(const Shape& shape, std::size_t begin, std::size_t end) {
  std::size_t size = 1;
  for (std::size_t i = begin; i < end; ++i) size *= static_cast<std::size_t>(shape[i]);
  return size;
}

}  // namespace

void MemoryBudget::take(std::uint64_t bytes) {
  if (bytes > left || left - bytes < kBytesOfStep) {
    throw UnsupportedError(
        "[onnx] expressions of constants make more elements than the file can account for");
  }
  left -= bytes + kBytesOfStep;
}

Array new_array(DType dtype, Shape shape, MemoryBudget* budget) {
  constexpr std::uint64_t kLongestElement = 8;
  const auto size = static_cast<std::uint64_t>(shape_size(shape));
  if (size > std::numeric_limits<std::uint64_t>::max() / kLongestElement) {
    throw ArgumentError(
        message("[onnx] a shape is ", to_string(shape), ", expected a smaller one"));
  }
  budget->take(size * dtype_size(dtype));
  return {dtype, std::move(shape)};
}

std::size_t axis_of(std::int64_t axis, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  if (axis >= -size && axis < size) return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
  throw ArgumentError(message("[onnx] the axis is ", axis, ", expected one of ", rank));
}

Array transposed(const Array& x, const std::vector<std::int64_t>& perm, MemoryBudget* budget) {
  const std::size_t rank = x.shape().size();
  std::vector<std::int64_t> sorted = perm, all(rank);
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all) {
    throw ArgumentError(message("[Transpose] perm is ", to_string(perm),
                                ", expected a permutation of ", rank, " axes"));
  }
  const Shape strides = strides_of(x.shape());
  Shape shape(rank), moved(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    shape[i] = x.shape()[static_cast<std::size_t>(perm[i])];
    moved[i] = strides[static_cast<std::size_t>(perm[i])];
  }
  Array out = new_array(x.dtype(), std::move(shape), budget);
  copy_by_strides(x, 0, moved, &out);
  return out;
}

Shape broadcast_shape(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) fail_shapes("broadcast", a, b);
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

Array expanded(const Array& x, const Shape& shape, MemoryBudget* budget) {
  const Shape full = broadcast_shape(x.shape(), shape);
  Array out = new_array(x.dtype(), full, budget);
  if (out.size() == 0) return out;
  const Shape own = strides_of(x.shape());
  const std::size_t more = full.size() - own.size();
  Shape strides(full.size(), 0);
  for (std::size_t i = 0; i < own.size(); ++i) {
    strides[more + i] = x.shape()[i] == 1 ? 0 : own[i];
  }
  copy_by_strides(x, 0, strides, &out);
  return out;
}

Array sliced(const Array& x, std::size_t axis, const SliceOf& range, MemoryBudget* budget) {
  if (range.step == 0) throw ArgumentError("[Slice] a step is 0, expected another one");
  const std::int64_t size = x.shape()[axis], step = range.step;
  // Beyond the ends is at the ends; -1 itself is before the first element when walking back.
  const std::int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? size : size - 1;
  const auto clamped = [&](std::int64_t at) {
    if (at < 0) at = at < -size ? std::numeric_limits<std::int64_t>::min() : at + size;
    return std::clamp(at, lowest, highest);
  };
  const std::int64_t start = std::min(clamped(range.start), highest), end = clamped(range.end);
  const std::int64_t away = step > 0 ? end - start : start - end;
  const std::uint64_t stride =
      step > 0 ? static_cast<std::uint64_t>(step) : -static_cast<std::uint64_t>(step);
  Shape shape = x.shape();
  shape[axis] =
      away <= 0 ? 0
                : static_cast<std::int64_t>((static_cast<std::uint64_t>(away) - 1) / stride) + 1;
  Array out = new_array(x.dtype(), std::move(shape), budget);
  if (out.size() == 0) return out;
  Shape strides = strides_of(x.shape());
  const std::int64_t first = start * strides[axis];
  // Of one element the stride is not used, and could overflow.
  strides[axis] = out.shape()[axis] == 1 ? 0 : strides[axis] * step;
  copy_by_strides(x, first, strides, &out);
  return out;
}

Array concatenated(const std::vector<const Array*>& parts, std::size_t axis, MemoryBudget* budget) {
  const Array& first = *parts.at(0);
  Shape shape = first.shape();
  shape[axis] = 0;
  for (const Array* part : parts) {
    Shape other = part->shape();
    if (part->dtype() != first.dtype() || other.size() != shape.size()) {
      fail_shapes("Concat", first.shape(), other);
    }
    const std::int64_t size = std::exchange(other[axis], shape[axis]);
    if (other != shape || __builtin_add_overflow(shape[axis], size, &shape[axis])) {
      fail_shapes("Concat", first.shape(), part->shape());
    }
  }
  Array out = new_array(first.dtype(), shape, budget);
  if (out.size() == 0) return out;
  const std::size_t rows = product(shape, 0, axis);
  auto* to = static_cast<char*>(out.data());
  for (std::size_t row = 0; row < rows; ++row) {
    for (const Array* part : parts) {
      const std::size_t bytes = part->size_bytes() / rows;
      if (bytes) std::memcpy(to, static_cast<const char*>(part->data()) + row * bytes, bytes);
      to += bytes;
    }
  }
  return out;
}

Array gathered(const Array& x, const Array& indices, std::size_t axis, MemoryBudget* budget) {
  const std::vector<std::int64_t> at = integers_of(indices);
  Shape shape(x.shape().begin(), x.shape().begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
  shape.insert(shape.end(), x.shape().begin() + static_cast<std::ptrdiff_t>(axis) + 1,
               x.shape().end());
  Array out = new_array(x.dtype(), std::move(shape), budget);
  const std::int64_t size = x.shape()[axis];
  const std::size_t rows = product(x.shape(), 0, axis);
  const std::size_t bytes = product(x.shape(), axis + 1, x.shape().size()) * dtype_size(x.dtype());
  auto* to = static_cast<char*>(out.data());
  for (const std::int64_t index : at) {
    if (index >= -size && index < size) continue;
    throw ArgumentError(
        message("[Gather] an index is ", index, ", expected one of ", size, " elements"));
  }
  if (out.size() == 0) return out;
  for (std::size_t row = 0; row < rows; ++row) {
    const char* from =
        static_cast<const char*>(x.data()) + row * static_cast<std::size_t>(size) * bytes;
    for (const std::int64_t index : at) {
      std::memcpy(to, from + static_cast<std::size_t>(index < 0 ? index + size : index) * bytes,
                  bytes);
      to += bytes;
    }
  }
  return out;
}

Array filled(const Array& value, const Shape& shape, MemoryBudget* budget) {
  if (value.size() != 1) {
    throw ArgumentError(
        message("[ConstantOfShape] value is ", to_string(value.shape()), ", expected one element"));
  }
  Array out = new_array(value.dtype(), shape, budget);
  copy_by_strides(value, 0, Shape(shape.size(), 0), &out);
  return out;
}

std::vector<std::int64_t> integers_of(const Array& x) {
  if (x.dtype() == DType::kInt64) {
    const auto values = x.as<std::int64_t>();
    return {values.begin(), values.end()};
  }
  if (x.dtype() != DType::kInt32) {
    throw ArgumentError(message("[onnx] indices or sizes are ", dtype_name(x.dtype()),
                                ", expected int64 or int32"));
  }
  const auto values = x.as<std::int32_t>();
  return {values.begin(), values.end()};
}

Array int64_array(Shape shape, const std::vector<std::int64_t>& values) {
  return Array::of<std::int64_t>(std::move(shape), values);
}

}  // namespace openrnn::mapping
