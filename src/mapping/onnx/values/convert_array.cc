// Cast.
#include <cmath>

#include "base/message.h"
#include "mapping/onnx/values/arrays.h"

namespace openrnn::mapping {

namespace {

template <class Call>
auto with_type(DType dtype, const Call& call) {
  switch (dtype) {
    case DType::kFloat16:
      return call(Half{});
    case DType::kBfloat16:
      return call(Bfloat16{});
    case DType::kFloat32:
      return call(float{});
    case DType::kFloat64:
      return call(double{});
    case DType::kInt32:
      return call(std::int32_t{});
    case DType::kInt64:
      return call(std::int64_t{});
    case DType::kUInt8:
      return call(std::uint8_t{});
    case DType::kBool:
      break;
  }
  return call(bool{});
}

// Exact: floating numbers as double, integers as int64.
template <class T>
auto wide(T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>) {
    return static_cast<double>(to_float(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<double>(value);
  } else {
    return static_cast<std::int64_t>(value);
  }
}

template <class To, class From>
To number_as(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{0};
  } else if constexpr (std::is_same_v<To, Half>) {
    return to_half(static_cast<double>(value));
  } else if constexpr (std::is_same_v<To, Bfloat16>) {
    return to_bfloat16(static_cast<double>(value));
  } else if constexpr (std::is_floating_point_v<To> || std::is_integral_v<From>) {
    return static_cast<To>(value);
  } else {
    constexpr To low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
    if (std::isnan(value)) return To{0};
    if (value <= static_cast<From>(low)) return low;
    return value >= static_cast<From>(high) ? high : static_cast<To>(value);
  }
}

}  // namespace

Array converted(const Array& x, DType dtype, MemoryBudget* budget) {
  if (x.dtype() == dtype) {
    budget->take(x.size_bytes());
    return x;
  }
  Array out = new_array(dtype, x.shape(), budget);
  with_type(x.dtype(), [&](auto from) {
    with_type(dtype, [&](auto to) {
      const auto values = x.as<decltype(from)>();
      const auto results = out.as<decltype(to)>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        results[i] = number_as<decltype(to)>(wide(values[i]));
      }
    });
  });
  return out;
}

}  // namespace openrnn::mapping
