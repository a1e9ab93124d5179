// Bodies of the templates of base.h.
#pragma once

#include <bit>
#include <utility>

namespace openrnn {

// By the bits alone: a subnormal number is kept also where the processor flushes them.
inline Bfloat16 to_bfloat16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  const std::uint32_t quiet = bits | 0x00400000u, up = bits + 0x7FFFu + ((bits >> 16) & 1u);
  return {static_cast<std::uint16_t>((nan ? quiet : up) >> 16)};
}

inline float to_float(Bfloat16 value) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

namespace detail {
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<Half> {
  static constexpr DType value = DType::kFloat16;
};
template <>
struct DTypeOf<Bfloat16> {
  static constexpr DType value = DType::kBfloat16;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kFloat64;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::kUInt8;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kBool;
};
[[noreturn]] OPENRNN_API void throw_dtype_mismatch(DType held, DType asked);
}  // namespace detail

/// The DType of a C++ element type.
template <class T>
inline constexpr DType kDTypeOf = detail::DTypeOf<T>::value;

template <class T>
std::span<const T> ConstArrayView::as() const {
  if (dtype != kDTypeOf<T>) detail::throw_dtype_mismatch(dtype, kDTypeOf<T>);
  return {static_cast<const T*>(data), static_cast<std::size_t>(size())};
}

template <class T>
std::span<T> ArrayView::as() const {
  if (dtype != kDTypeOf<T>) detail::throw_dtype_mismatch(dtype, kDTypeOf<T>);
  return {static_cast<T*>(data), static_cast<std::size_t>(size())};
}

template <class T>
Array Array::of(Shape shape, std::span<const T> values) {
  return Array(ConstArrayView{values.data(), kDTypeOf<T>, std::move(shape)});
}

}  // namespace openrnn
