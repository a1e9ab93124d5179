#include "ops/tensor/integers.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "ops/symbolic/replay.h"
#include "ops/tensor/strides.h"

namespace openrnn::ops {
namespace {

// Calls f with the elements, of whatever dtype: floats as double.
template <class F>
auto with_elements(const Array& host, const F& f) {
  switch (host.dtype()) {
    case DType::kInt32:
      return f(host.as<std::int32_t>());
    case DType::kInt64:
      return f(host.as<std::int64_t>());
    case DType::kUInt8:
      return f(host.as<std::uint8_t>());
    case DType::kBool:
      return f(host.as<bool>());
    default: {
      const Array wide = openrnn::cast(host.view(), DType::kFloat64);
      return f(wide.as<double>());
    }
  }
}

// As a double that rounds to fewer bits as the value itself does: an integer of more than 53 bits
// is rounded to 52 of them, to an odd last one where bits are lost.
template <class T>
double to_odd(T value) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    constexpr std::int64_t kExact = std::int64_t{1} << 53, kLost = 0x7FF;
    if (value >= -kExact && value <= kExact) return static_cast<double>(value);
    return static_cast<double>((value & ~kLost) | ((value & kLost) != 0 ? kLost + 1 : 0));
  } else {
    return static_cast<double>(value);
  }
}

// A result of the host that goes where its operands lie.
Tensor of_operands(const std::vector<Tensor>& operands, const Array& host) {
  std::vector<Tensor> plain;
  const Device* device = &operands[0].value().device();
  for (const Tensor& operand : operands) {
    plain.push_back(operand.detached());
    if (operand.placed()) device = &operand.value().device();
  }
  return record("host", plain, {DeviceArray::from_host(*device, host.view())}, {})[0];
}

Array host_in(const Tensor& x, const Shape& shape) {
  return run_broadcast(x.value(), shape).to_host();
}

template <class T>
bool holds(CompareOp op, T v, T w) {
  return op == CompareOp::kEqual ? v == w : op == CompareOp::kLess ? v < w : v <= w;
}

using Combine = bool (*)(bool, bool);
Tensor logical(const char* call, const Tensor& a, const Tensor& b, Combine combine) {
  const Shape shape = broadcast_shape(call, a.shape(), b.shape());
  if (any_symbolic(a, b)) return defer_one(call, {DType::kBool, shape}, a, b);
  const Array left = run_broadcast(truth_of(call, a), shape).to_host();
  const Array right = run_broadcast(truth_of(call, b), shape).to_host();
  Array result(DType::kBool, shape);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    result.as<bool>()[at] = combine(left.as<bool>()[at], right.as<bool>()[at]);
  }
  return of_operands({a, b}, result);
}

/// Whether T holds the value, of which a fraction is cut off.
template <class T, class From>
bool fits(From value) {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<From, bool>) {
    return true;
  } else if constexpr (std::is_floating_point_v<From>) {
    // Every bound is a power of two, or one below: exact in double.
    constexpr double kEnd = sizeof(T) == 8 ? 0x1p63 : sizeof(T) == 4 ? 0x1p31 : 0x1p8;
    return std::trunc(value) >= (sizeof(T) == 1 ? 0.0 : -kEnd) && value < kEnd;
  } else {
    return std::in_range<T>(value);
  }
}

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

// The first of the largest, by `better`; the first NaN is larger than all.
template <class T, class Better>
Array best_places(std::span<const T> values, const Shape& shape, std::size_t axis,
                  const Better& better) {
  Shape left = shape;
  left.erase(left.begin() + static_cast<std::ptrdiff_t>(axis));
  const std::int64_t steps = shape[axis], inner = span_size(shape, axis + 1, shape.size());
  Array result(DType::kInt32, std::move(left));
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const T* const from = values.data() + i / inner * steps * inner + i % inner;
    std::int64_t best = 0;
    for (std::int64_t s = 1; s < steps && !is_nan(from[best * inner]); ++s) {
      const T value = from[s * inner];
      if (is_nan(value) || better(value, from[best * inner])) best = s;
    }
    result.as<std::int32_t>()[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(best);
  }
  return result;
}

template <class Better>
Tensor best(const char* call, const Tensor& x, std::int64_t axis, const Better& better) {
  if (x.empty()) throw ArgumentError(message("[", call, "] x is empty, expected a tensor"));
  const std::size_t along = axis_of(call, axis, x.shape().size());
  if (x.is_symbolic()) {
    std::vector<bool> chosen(x.shape().size(), false);
    chosen[along] = true;
    return defer_one(call, {DType::kInt32, reduced_shape(x.shape(), chosen, false)}, x, axis);
  }
  if (x.shape()[along] == 0) {
    throw ArgumentError(message("[", call, "] x has shape ", to_string(x.shape()),
                                ", expected at least one element along axis ", axis));
  }
  const Array found = with_elements(x.to_host(), [&](auto values) {
    using T = std::remove_cv_t<typename decltype(values)::element_type>;
    return best_places<T>(values, x.shape(), along, better);
  });
  return Tensor(found.view());
}

}  // namespace

Tensor compare_integers(const char* call, CompareOp op, const Tensor& a, const Tensor& b) {
  const Shape shape = broadcast_shape(call, a.shape(), b.shape());
  const Array left = host_in(a, shape), right = host_in(b, shape);
  Array result(DType::kBool, shape);
  with_elements(left, [&](auto v) {
    using T = std::remove_cv_t<typename decltype(v)::element_type>;
    const auto w = right.as<T>();
    for (std::size_t i = 0; i < v.size(); ++i) result.as<bool>()[i] = holds<T>(op, v[i], w[i]);
  });
  return of_operands({a, b}, result);
}

DeviceArray truth_of(const char* call, const Tensor& x) {
  if (x.empty()) throw ArgumentError(message("[", call, "] a tensor is empty, expected values"));
  if (x.dtype() == DType::kBool) return x.value();
  Array result(DType::kBool, x.shape());
  with_elements(x.to_host(), [&](auto values) {
    for (std::size_t i = 0; i < values.size(); ++i) result.as<bool>()[i] = values[i] != 0;
  });
  return DeviceArray::from_host(x.value().device(), result.view());
}

Tensor logical_not(const Tensor& a) {
  if (a.is_symbolic()) return defer_one("logical_not", {DType::kBool, a.shape()}, a);
  const Array given = truth_of("logical_not", a).to_host();
  Array result(DType::kBool, given.shape());
  for (std::size_t i = 0; i < given.as<bool>().size(); ++i) {
    result.as<bool>()[i] = !given.as<bool>()[i];
  }
  return of_operands({a}, result);
}
Tensor logical_and(const Tensor& a, const Tensor& b) {
  return logical("logical_and", a, b, [](bool v, bool w) { return v && w; });
}
Tensor logical_or(const Tensor& a, const Tensor& b) {
  return logical("logical_or", a, b, [](bool v, bool w) { return v || w; });
}

Tensor argmax(const Tensor& x, std::int64_t axis) {
  return best("argmax", x, axis, [](auto v, auto w) { return v > w; });
}
Tensor argmin(const Tensor& x, std::int64_t axis) {
  return best("argmin", x, axis, [](auto v, auto w) { return v < w; });
}

Tensor cast_on_host(const Tensor& x, DType dtype) {
  Array result(dtype, x.shape());
  with_elements(x.to_host(), [&](auto values) {
    const auto fill = [&]<class T>(T) {
      const std::span<T> to = result.as<T>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (!fits<T>(values[i])) {
          throw ArgumentError(message("[cast] element ", i, " is ", values[i],
                                      ", expected one that ", dtype_name(dtype), " holds"));
        }
        to[i] =
            std::is_same_v<T, bool> ? static_cast<T>(values[i] != 0) : static_cast<T>(values[i]);
      }
    };
    switch (dtype) {
      case DType::kInt32:
        return fill(std::int32_t{});
      case DType::kInt64:
        return fill(std::int64_t{});
      case DType::kUInt8:
        return fill(std::uint8_t{});
      case DType::kBool:
        return fill(bool{});
      default: {
        Array wide(DType::kFloat64, x.shape());
        const bool narrows = dtype != DType::kFloat64;
        for (std::size_t i = 0; i < values.size(); ++i) {
          wide.as<double>()[i] = narrows ? to_odd(values[i]) : static_cast<double>(values[i]);
        }
        result = openrnn::cast(wide.view(), dtype);
      }
    }
  });
  return of_operands({x}, result);
}

}  // namespace openrnn::ops
