// Cuts a loop over elements among the threads, and dtypes into types.
#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>

#include "openrnn/base.h"

namespace openrnn::cpu {

/// Calls body(begin, end) on parts of [0, size) that begin at multiples of `grain`, on one thread
/// when size * cost is below kAloneElements, else on the more threads the more there is to do.
/// `cost` is what one index costs, in elements. Subnormal numbers are flushed inside. The body must
/// not throw.
void parallel_ranges(std::int64_t size, std::int64_t grain, std::int64_t cost,
                     const std::function<void(std::int64_t begin, std::int64_t end)>& body);

/// Stored in 16 bits, computed in float.
template <class T>
inline constexpr bool kIs16Bits = std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>;

/// What T is computed in: float for what is stored in 16 bits, else T.
template <class T>
using ComputeOf = std::conditional_t<kIs16Bits<T>, float, T>;

inline float widen(Half value) { return to_float(value); }
inline float widen(Bfloat16 value) { return to_float(value); }
inline float widen(float value) { return value; }
inline double widen(double value) { return value; }

template <class T>
T narrow(ComputeOf<T> value) {
  if constexpr (std::is_same_v<T, Half>) {
    return to_half(value);
  } else if constexpr (std::is_same_v<T, Bfloat16>) {
    return to_bfloat16(value);
  } else {
    return value;
  }
}

/// Throws: TypeError naming the call.
[[noreturn]] void refuse_dtype(const char* call, DType dtype);

/// Calls f with a Half, a Bfloat16, a float or a double. Throws: TypeError for another dtype.
template <class F>
void with_floating(const char* call, DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat16:
      return f(Half{});
    case DType::kBfloat16:
      return f(Bfloat16{});
    case DType::kFloat32:
      return f(float{});
    case DType::kFloat64:
      return f(double{});
    default:
      refuse_dtype(call, dtype);
  }
}

}  // namespace openrnn::cpu
