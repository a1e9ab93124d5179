// Arrays of float16, float32 or float64 in the stand-in GPU's memory, read and written as double.
#pragma once

#include <library_types.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "cudnn/stand_in/machine.h"

namespace openrnn::stand_in {

inline double half_to_double(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 0x3FF;
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == 31) return fraction ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

inline std::uint16_t double_to_half(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return 0x7E00;
  const double magnitude = std::abs(value);
  if (magnitude >= 65520.0) return sign | 0x7C00;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  // The last place of a half with this exponent; nearbyint rounds ties to even.
  const int place = std::max(exponent - 11, -24);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(magnitude, -place)), place);
  if (rounded < 0x1p-14) return sign | static_cast<std::uint16_t>(std::ldexp(rounded, 24));
  std::frexp(rounded, &exponent);
  const auto units = static_cast<std::uint16_t>(std::ldexp(rounded, 11 - exponent));
  return static_cast<std::uint16_t>(sign + ((exponent + 14) << 10) + (units - 1024));
}

/// A float32 operand of a product in TF32: ten bits of fraction, ties to even.
inline double as_tf32(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (!std::isfinite(value)) return value;
  const std::uint32_t odd = bits >> 13 & 1u;
  return static_cast<double>(std::bit_cast<float>((bits + 0xFFFu + odd) & 0xFFFFE000u));
}

inline double as_half(double value) { return half_to_double(double_to_half(value)); }

inline std::size_t bytes_of(cudaDataType type) {
  return type == CUDA_R_16F ? 2 : type == CUDA_R_32F ? 4 : 8;
}

/// `count` numbers of device memory. Throws: std::runtime_error when they are not in one block.
class Numbers {
 public:
  Numbers(cudaDataType type, std::uint64_t address, std::int64_t count)
      : type_(type),
        data_(count > 0 ? host_of(address, static_cast<std::size_t>(count) * bytes_of(type))
                        : nullptr) {}
  Numbers(cudaDataType type, const void* address, std::int64_t count)
      : Numbers(type, reinterpret_cast<std::uint64_t>(address), count) {}

  double get(std::int64_t i) const {
    if (type_ == CUDA_R_16F) return half_to_double(at<std::uint16_t>(i));
    if (type_ == CUDA_R_32F) return static_cast<double>(at<float>(i));
    return at<double>(i);
  }
  void set(std::int64_t i, double value) const {
    if (type_ == CUDA_R_16F) {
      at<std::uint16_t>(i) = double_to_half(value);
    } else if (type_ == CUDA_R_32F) {
      at<float>(i) = static_cast<float>(value);
    } else {
      at<double>(i) = value;
    }
  }

 private:
  template <class T>
  T& at(std::int64_t i) const {
    if (!data_) throw std::logic_error("a number was asked for where there are none");
    return static_cast<T*>(data_)[i];
  }
  cudaDataType type_;
  void* data_;
};

}  // namespace openrnn::stand_in
