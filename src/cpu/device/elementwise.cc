#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/power.h"
#include "cpu/device/loops.h"
#include "cpu/device/parallel.h"
#include "cpu/gemm/gemm.h"
#include "cpu/isa/arithmetic.h"
#include "cpu/isa/isa.h"
#include "cpu/kernels/kernels.h"
#include "cpu/memory/pool.h"

namespace openrnn::cpu::device {
namespace {

// What is stored in 16 bits is widened, computed and narrowed by blocks that stay in L1.
constexpr std::int64_t kNarrowBlock = 512;
using FloatBlock = std::array<float, kNarrowBlock>;

template <class T>
const StorageKernels& storage_kernels() {
  return kernels().storage[storage_of(kDTypeOf<T>)];
}

// Calls body(begin, count) for the blocks of [0, size).
template <class Body>
void narrow_blocks(std::int64_t size, std::int64_t cost, const Body& body) {
  parallel_ranges(size, kNarrowBlock, cost, [&body](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; at += kNarrowBlock) {
      body(at, std::min(kNarrowBlock, end - at));
    }
  });
}

template <class T, class F>
void map1(std::int64_t size, const void* x, void* y, const F& f) {
  if constexpr (kIs16Bits<T>) {
    const StorageKernels& storage = storage_kernels<T>();
    const auto* from = static_cast<const std::uint16_t*>(x);
    auto* to = static_cast<std::uint16_t*>(y);
    narrow_blocks(size, 1, [=, &storage](std::int64_t at, std::int64_t count) {
      FloatBlock block;
      storage.widen(from + at, block.data(), count);
      for (std::int64_t i = 0; i < count; ++i) block[i] = f(block[i]);
      storage.narrow(block.data(), to + at, count);
    });
  } else {
    const auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(y);
    parallel_ranges(size, 64, 1, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[i] = f(from[i]);
    });
  }
}

template <class T, class F>
void map2(std::int64_t size, const void* a, const void* b, void* c, const F& f) {
  if constexpr (kIs16Bits<T>) {
    const StorageKernels& storage = storage_kernels<T>();
    const auto* left = static_cast<const std::uint16_t*>(a);
    const auto* right = static_cast<const std::uint16_t*>(b);
    auto* to = static_cast<std::uint16_t*>(c);
    narrow_blocks(size, 1, [=, &storage](std::int64_t at, std::int64_t count) {
      FloatBlock first, second;
      storage.widen(left + at, first.data(), count);
      storage.widen(right + at, second.data(), count);
      for (std::int64_t i = 0; i < count; ++i) first[i] = f(first[i], second[i]);
      storage.narrow(first.data(), to + at, count);
    });
  } else {
    const auto* left = static_cast<const T*>(a);
    const auto* right = static_cast<const T*>(b);
    auto* to = static_cast<T*>(c);
    parallel_ranges(size, 64, 1, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[i] = f(left[i], right[i]);
    });
  }
}

// exp, tanh and sigmoid of the vector kernels.
template <class T>
void transcendental(Unary function, std::int64_t size, const void* x, void* y) {
  if constexpr (kIs16Bits<T>) {
    const StorageKernels& storage = storage_kernels<T>();
    const auto* from = static_cast<const std::uint16_t*>(x);
    auto* to = static_cast<std::uint16_t*>(y);
    narrow_blocks(size, 8, [=, &storage](std::int64_t at, std::int64_t count) {
      FloatBlock block;
      storage.widen(from + at, block.data(), count);
      apply(function, DType::kFloat32, block.data(), block.data(), count);
      storage.narrow(block.data(), to + at, count);
    });
  } else {
    apply(function, kDTypeOf<T>, x, y, size);
  }
}

double split(double x, int* exponent) { return std::frexp(x, exponent); }
double scaled(double x, int exponent) { return std::ldexp(x, exponent); }

// In double, so that a float is rounded once. Subnormal numbers count as 0.
template <class C>
C log_of(C v) {
  return static_cast<C>(portable_log(std::abs(v) < std::numeric_limits<C>::min() ? 0.0 : v));
}

template <class T>
void unary_as(UnaryOp op, std::int64_t size, const void* x, void* y) {
  using C = ComputeOf<T>;
  switch (op) {
    case UnaryOp::kRelu:
      // The comparison keeps NaN, so that an invalid value is not hidden.
      return map1<T>(size, x, y, [](C v) { return v < C{0} ? C{0} : v; });
    case UnaryOp::kNegate:
      return map1<T>(size, x, y, [](C v) { return -v; });
    case UnaryOp::kSquare:
      return map1<T>(size, x, y, [](C v) { return v * v; });
    case UnaryOp::kAbs:
      return map1<T>(size, x, y, [](C v) { return v < C{0} ? -v : v; });
    case UnaryOp::kSqrt:
      return map1<T>(size, x, y, [](C v) { return std::sqrt(v); });
    case UnaryOp::kTanh:
      return transcendental<T>(Unary::kTanh, size, x, y);
    case UnaryOp::kSigmoid:
      return transcendental<T>(Unary::kSigmoid, size, x, y);
    case UnaryOp::kExp:
      return transcendental<T>(Unary::kExp, size, x, y);
    case UnaryOp::kLog:
      return map1<T>(size, x, y, [](C v) { return log_of(v); });
    case UnaryOp::kSoftplus:
      return map1<T>(size, x, y, [](C v) { return static_cast<C>(softplus_of(v, split, scaled)); });
  }
}

// dy times the sigmoid of x, which 16 bits do not round in between.
template <class T>
void softplus_gradient(std::int64_t size, const void* x, const void* dy, void* dx) {
  using C = ComputeOf<T>;
  const auto slopes = MemoryPool::process().allocate(static_cast<std::size_t>(size) * sizeof(C));
  convert(size, kDTypeOf<T>, x, kDTypeOf<C>, slopes.get());
  apply(Unary::kSigmoid, kDTypeOf<C>, slopes.get(), slopes.get(), size);
  const auto* from = static_cast<const T*>(dy);
  auto* to = static_cast<T*>(dx);
  parallel_ranges(size, 64, 1, [&](std::int64_t begin, std::int64_t end) {
    const auto* slope = static_cast<const C*>(slopes.get());
    for (std::int64_t i = begin; i < end; ++i) to[i] = narrow<T>(widen(from[i]) * slope[i]);
  });
}

template <class T>
void unary_gradient_as(UnaryOp op, std::int64_t size, const void* x, const void* y, const void* dy,
                       void* dx) {
  using C = ComputeOf<T>;
  switch (op) {
    case UnaryOp::kRelu:
      return map2<T>(size, y, dy, dx, [](C v, C d) { return v > C{0} ? d : C{0}; });
    case UnaryOp::kNegate:
      return map1<T>(size, dy, dx, [](C d) { return -d; });
    case UnaryOp::kSquare:
      return map2<T>(size, x, dy, dx, [](C v, C d) { return (v + v) * d; });
    case UnaryOp::kAbs:
      return map2<T>(size, x, dy, dx, [](C v, C d) { return v > C{0} ? d : v < C{0} ? -d : C{0}; });
    case UnaryOp::kSqrt:
      return map2<T>(size, y, dy, dx, [](C v, C d) { return d / (v + v); });
    case UnaryOp::kTanh:
      return map2<T>(size, y, dy, dx, [](C v, C d) { return d * (C{1} - v * v); });
    case UnaryOp::kSigmoid:
      return map2<T>(size, y, dy, dx, [](C v, C d) { return d * (v * (C{1} - v)); });
    case UnaryOp::kExp:
      return map2<T>(size, y, dy, dx, [](C v, C d) { return d * v; });
    case UnaryOp::kLog:
      return map2<T>(size, x, dy, dx, [](C v, C d) { return d / v; });
    case UnaryOp::kSoftplus:
      return softplus_gradient<T>(size, x, dy, dx);
  }
}

template <class T>
void binary_as(BinaryOp op, std::int64_t size, const void* a, const void* b, void* c) {
  using C = ComputeOf<T>;
  switch (op) {
    case BinaryOp::kAdd:
      return map2<T>(size, a, b, c, [](C v, C w) { return v + w; });
    case BinaryOp::kSubtract:
      return map2<T>(size, a, b, c, [](C v, C w) { return v - w; });
    case BinaryOp::kMultiply:
      return map2<T>(size, a, b, c, [](C v, C w) { return v * w; });
    case BinaryOp::kDivide:
      return map2<T>(size, a, b, c, [](C v, C w) { return v / w; });
    case BinaryOp::kMaximum:
      return map2<T>(size, a, b, c, [](C v, C w) { return v >= w || std::isnan(v) ? v : w; });
    case BinaryOp::kMinimum:
      return map2<T>(size, a, b, c, [](C v, C w) { return v <= w || std::isnan(v) ? v : w; });
    case BinaryOp::kPower:
      return map2<T>(size, a, b, c,
                     [](C v, C w) { return static_cast<C>(power_of(v, w, split, scaled)); });
  }
}

template <class To, class From>
To converted(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<To, Half>) {
    return to_half(widen(value));
  } else if constexpr (std::is_same_v<To, Bfloat16>) {
    return to_bfloat16(widen(value));
  } else {
    return static_cast<To>(widen(value));
  }
}

}  // namespace

void unary(UnaryOp op, DType dtype, std::int64_t size, const void* x, void* y) {
  with_floating("unary", dtype, [&](auto type) { unary_as<decltype(type)>(op, size, x, y); });
}

void unary_gradient(UnaryOp op, DType dtype, std::int64_t size, const void* x, const void* y,
                    const void* dy, void* dx) {
  with_floating("unary_gradient", dtype,
                [&](auto type) { unary_gradient_as<decltype(type)>(op, size, x, y, dy, dx); });
}

void binary(BinaryOp op, DType dtype, std::int64_t size, const void* a, const void* b, void* c) {
  with_floating("binary", dtype, [&](auto type) { binary_as<decltype(type)>(op, size, a, b, c); });
}

void scale(DType dtype, std::int64_t size, double factor, const void* x, void* y) {
  with_floating("scale", dtype, [&](auto type) {
    using T = decltype(type);
    using C = ComputeOf<T>;
    const C by = static_cast<C>(factor);
    map1<T>(size, x, y, [by](C v) { return by * v; });
  });
}

void clip(const ClipArgs& args) {
  with_floating("clip", args.dtype, [&args](auto type) {
    using T = decltype(type);
    using C = ComputeOf<T>;
    const C low = converted<C>(converted<T>(args.low)),
            high = converted<C>(converted<T>(args.high));
    // The comparisons keep NaN, as those of relu.
    if (!args.dy) {
      return map1<T>(args.size, args.x, args.out, [=](C v) {
        return v < low ? low : v > high ? high : v;
      });
    }
    map2<T>(args.size, args.x, args.dy, args.out,
            [=](C v, C d) { return v < low || v > high ? C{0} : d; });
  });
}

void fill(DType dtype, std::int64_t size, double factor, DType scalar_dtype, const void* scalar,
          void* y) {
  const double value = scalar ? factor * element({scalar, scalar_dtype, {1}}, 0) : factor;
  with_floating("fill", dtype, [&](auto type) {
    using T = decltype(type);
    const T filling = converted<T>(value);
    auto* to = static_cast<T*>(y);
    parallel_ranges(size, 64, 1, [=](std::int64_t begin, std::int64_t end) {
      std::fill(to + begin, to + end, filling);
    });
  });
}

void accumulate(DType dtype, std::int64_t size, const void* x, void* y) {
  binary(BinaryOp::kAdd, dtype, size, y, x, y);
}

void convert(std::int64_t size, DType from_dtype, const void* from, DType to_dtype, void* to) {
  with_floating("convert", from_dtype, [&](auto source_type) {
    with_floating("convert", to_dtype, [&](auto target_type) {
      using From = decltype(source_type);
      using To = decltype(target_type);
      const auto* source = static_cast<const From*>(from);
      auto* target = static_cast<To*>(to);
      parallel_ranges(size, 64, 1, [=](std::int64_t begin, std::int64_t end) {
        const std::int64_t count = end - begin;
        if constexpr (kIs16Bits<From> && std::is_same_v<To, float>) {
          storage_kernels<From>().widen(static_cast<const std::uint16_t*>(from) + begin,
                                        target + begin, count);
        } else if constexpr (std::is_same_v<From, float> && kIs16Bits<To>) {
          storage_kernels<To>().narrow(static_cast<const float*>(from) + begin,
                                       static_cast<std::uint16_t*>(to) + begin, count);
        } else {
          for (std::int64_t i = begin; i < end; ++i) target[i] = converted<To>(source[i]);
        }
      });
    });
  });
}

}  // namespace openrnn::cpu::device
