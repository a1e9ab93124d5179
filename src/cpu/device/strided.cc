#include <cstring>

#include "cpu/device/loops.h"
#include "cpu/device/parallel.h"

namespace openrnn::cpu::device {
namespace {

// Calls f with an integer of that many bytes.
template <class F>
void with_element(std::size_t bytes, const F& f) {
  switch (bytes) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      return f(std::uint64_t{});
  }
}

template <class T>
void copy_line(std::int64_t size, const T* from, std::int64_t from_stride, T* to,
               std::int64_t to_stride) {
  if (from_stride == 1 && to_stride == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(size) * sizeof(T));
  } else {
    for (std::int64_t i = 0; i < size; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

// Where line `index` of all dimensions but the last begins.
std::int64_t line_begin(const Shape& shape, const std::vector<std::int64_t>& strides,
                        std::int64_t index) {
  std::int64_t at = 0;
  for (std::size_t d = shape.size() - 1; d-- > 0;) {
    at += index % shape[d] * strides[d];
    index /= shape[d];
  }
  return at;
}

}  // namespace

void compare(CompareOp op, DType dtype, std::int64_t size, const void* a, const void* b,
             std::uint8_t* mask) {
  with_floating("compare", dtype, [&](auto type) {
    using T = decltype(type);
    const auto* left = static_cast<const T*>(a);
    const auto* right = static_cast<const T*>(b);
    const auto fill = [=](const auto& holds) {
      parallel_ranges(size, 64, 1, [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) mask[i] = holds(widen(left[i]), widen(right[i]));
      });
    };
    switch (op) {
      case CompareOp::kEqual:
        return fill([](auto v, auto w) { return v == w; });
      case CompareOp::kLess:
        return fill([](auto v, auto w) { return v < w; });
      case CompareOp::kLessEqual:
        return fill([](auto v, auto w) { return v <= w; });
    }
  });
}

void select(const SelectArgs& args) {
  with_element(args.element, [&args](auto type) {
    using T = decltype(type);
    const auto* a = static_cast<const T*>(args.a);
    const auto* b = static_cast<const T*>(args.b);
    auto* out = static_cast<T*>(args.out);
    parallel_ranges(args.size, 64, 1, [=, mask = args.mask](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const T* const chosen = mask[i] ? a : b;
        out[i] = chosen ? chosen[i] : T{0};
      }
    });
  });
}

void copy_strided(const StridedCopy& given) {
  const StridedCopy copy = collapsed(given);
  if (shape_size(copy.shape) == 0) return;
  const std::int64_t inner = copy.shape.back();
  with_element(copy.element, [&](auto type) {
    using T = decltype(type);
    const auto* from = static_cast<const T*>(copy.from);
    auto* to = static_cast<T*>(copy.to);
    parallel_ranges(
        shape_size(copy.shape) / inner, 1, inner, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            copy_line(inner, from + line_begin(copy.shape, copy.from_strides, i),
                      copy.from_strides.back(), to + line_begin(copy.shape, copy.to_strides, i),
                      copy.to_strides.back());
          }
        });
  });
}

}  // namespace openrnn::cpu::device
