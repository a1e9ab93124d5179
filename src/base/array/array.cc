#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "base/message.h"
#include "base/out_of_memory.h"
#include "openrnn/base.h"

namespace openrnn {

std::int64_t shape_size(const Shape& shape) {
  std::int64_t size = 1;
  bool overflow = false;
  for (const std::int64_t dim : shape) {
    if (dim < 0) {
      throw ArgumentError(message("[shape_size] shape is ", to_string(shape),
                                  ", expected dimensions of 0 or more"));
    }
    overflow |= __builtin_mul_overflow(size, dim, &size);
  }
  // A zero dimension makes any product zero, also one that overflowed before it.
  for (const std::int64_t dim : shape) {
    if (dim == 0) return 0;
  }
  if (overflow) {
    throw ArgumentError(
        message("[shape_size] shape is ", to_string(shape), ", expected fewer than 2^63 elements"));
  }
  return size;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += message(i ? ", " : "", shape[i]);
  }
  return text + "]";
}

namespace {

// From here on memory is new pages of the system, which are zero: to fill them again would take as
// long as to read a file into them.
constexpr std::size_t kFromSystem = std::size_t{1} << 22;

// The block begins somewhere in front, and its address is right in front.
void* allocate_from_system(std::size_t rounded) noexcept {
  constexpr std::size_t kMore = 2 * AlignedBuffer::kAlignment;
  void* const block = std::calloc(rounded + kMore, 1);
  if (!block) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const std::size_t before = kMore - static_cast<std::size_t>(address % AlignedBuffer::kAlignment);
  void* const data = static_cast<std::byte*>(block) + before;
  static_cast<void**>(data)[-1] = block;
  return data;
}

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) throw OutOfMemory(bytes);
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  data_ = bytes >= kFromSystem
              ? allocate_from_system(rounded)
              : ::operator new (rounded, std::align_val_t{kAlignment}, std::nothrow);
  if (!data_) throw OutOfMemory(bytes);
  if (bytes < kFromSystem) std::memset(data_, 0, rounded);
}

AlignedBuffer::AlignedBuffer(const AlignedBuffer& other) : AlignedBuffer(other.bytes_) {
  if (bytes_) std::memcpy(data_, other.data_, bytes_);
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

AlignedBuffer::~AlignedBuffer() {
  if (!data_) return;
  if (bytes_ >= kFromSystem) {
    std::free(static_cast<void**>(data_)[-1]);
  } else {
    ::operator delete (data_, std::align_val_t{kAlignment});
  }
}

Array::Array(DType dtype, Shape shape)
    : dtype_(dtype),
      shape_(std::move(shape)),
      buffer_(static_cast<std::size_t>(shape_size(shape_)) * dtype_size(dtype)) {}

Array::Array(const ConstArrayView& view) : Array(view.dtype, view.shape) {
  if (size_bytes()) std::memcpy(data(), view.data, size_bytes());
}

Array Array::reshaped(Shape shape) && {
  if (shape_size(shape) != size()) {
    throw ArgumentError(message("[reshaped] shape is ", to_string(shape), ", expected ", size(),
                                " elements as in ", to_string(shape_)));
  }
  shape_ = std::move(shape);
  return std::move(*this);
}

double element(const ConstArrayView& source, std::int64_t index) {
  const auto i = static_cast<std::size_t>(index);
  switch (source.dtype) {
    case DType::kFloat16:
      return static_cast<double>(to_float(source.as<Half>()[i]));
    case DType::kBfloat16:
      return static_cast<double>(to_float(source.as<Bfloat16>()[i]));
    case DType::kFloat32:
      return static_cast<double>(source.as<float>()[i]);
    default:
      return source.as<double>()[i];
  }
}

namespace {

template <class To, class From>
To convert(From value) {
  constexpr bool kWidens = std::is_same_v<From, Half> || std::is_same_v<From, Bfloat16>;
  if constexpr (std::is_same_v<From, To>) {
    return value;
  } else if constexpr (kWidens) {
    return convert<To>(to_float(value));
  } else if constexpr (std::is_same_v<To, Half>) {
    return to_half(value);
  } else if constexpr (std::is_same_v<To, Bfloat16>) {
    return to_bfloat16(value);
  } else {
    return static_cast<To>(value);
  }
}

template <class To, class From>
void convert_all(const ConstArrayView& source, Array& result) {
  const std::span<const From> from = source.as<From>();
  const std::span<To> to = result.as<To>();
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = convert<To>(from[i]);
}

template <class To>
void convert_to(const ConstArrayView& source, Array& result) {
  switch (source.dtype) {
    case DType::kFloat16:
      return convert_all<To, Half>(source, result);
    case DType::kBfloat16:
      return convert_all<To, Bfloat16>(source, result);
    case DType::kFloat32:
      return convert_all<To, float>(source, result);
    default:
      return convert_all<To, double>(source, result);
  }
}

}  // namespace

Array cast(const ConstArrayView& source, DType dtype) {
  if (!is_floating(source.dtype) || !is_floating(dtype)) {
    throw TypeError(message("[cast] from ", dtype_name(source.dtype), " to ", dtype_name(dtype),
                            ", expected floating dtypes"));
  }
  Array result(dtype, source.shape);
  switch (dtype) {
    case DType::kFloat16:
      convert_to<Half>(source, result);
      break;
    case DType::kBfloat16:
      convert_to<Bfloat16>(source, result);
      break;
    case DType::kFloat32:
      convert_to<float>(source, result);
      break;
    default:
      convert_to<double>(source, result);
      break;
  }
  return result;
}

}  // namespace openrnn
