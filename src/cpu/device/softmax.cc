#include <algorithm>
#include <array>
#include <vector>

#include "cpu/device/loops.h"
#include "cpu/device/parallel.h"
#include "cpu/gemm/gemm.h"
#include "cpu/isa/isa.h"

namespace openrnn::cpu::device {
namespace {

constexpr std::size_t kLanes = 16;

// In double over 16 lanes, lane by lane at the end: an order that the size alone decides.
template <class T>
double row_sum(const std::vector<T>& values) {
  std::array<double, kLanes> lanes{};
  const std::size_t whole = values.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += values[i + lane];
  }
  for (std::size_t i = whole; i < values.size(); ++i) lanes[i - whole] += values[i];
  double total = lanes[0];
  for (std::size_t lane = 1; lane < kLanes; ++lane) total += lanes[lane];
  return total;
}

// The order does not matter for a maximum; a NaN may be ignored, as the sum will show it.
template <class T>
T row_max(const std::vector<T>& values) {
  std::array<T, kLanes> lanes;
  lanes.fill(values[0]);
  const std::size_t whole = values.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = values[i + lane] > lanes[lane] ? values[i + lane] : lanes[lane];
    }
  }
  for (std::size_t i = whole; i < values.size(); ++i) {
    lanes[0] = values[i] > lanes[0] ? values[i] : lanes[0];
  }
  return *std::max_element(lanes.begin(), lanes.end());
}

// exp(logit - max) into `exps`; their sum. A NaN anywhere makes the sum NaN.
template <class T>
double exponentials(const T* logits, ComputeOf<T>& top, std::vector<ComputeOf<T>>& exps) {
  using C = ComputeOf<T>;
  for (std::size_t c = 0; c < exps.size(); ++c) exps[c] = widen(logits[c]);
  top = row_max(exps);
  for (C& value : exps) value -= top;
  apply(Unary::kExp, kDTypeOf<C>, exps.data(), exps.data(), static_cast<std::int64_t>(exps.size()));
  return row_sum(exps);
}

template <class T>
void cross_entropy_row(const CrossEntropyArgs& args, std::int64_t row,
                       std::vector<ComputeOf<T>>& exps) {
  using C = ComputeOf<T>;
  const T* logits = static_cast<const T*>(args.logits) + row * args.classes;
  C top;
  const double total = exponentials<T>(logits, top, exps);
  if (args.losses) {
    const std::int32_t label = args.labels[row];
    const double loss =
        label < 0 ? 0.0
                  : portable_log(total) -
                        (static_cast<double>(widen(logits[label])) - static_cast<double>(top));
    static_cast<C*>(args.losses)[row] = static_cast<C>(loss);
  }
  if (args.probabilities) {
    C* to = static_cast<C*>(args.probabilities) + row * args.classes;
    const C inverse = static_cast<C>(1.0 / total);
    for (std::size_t c = 0; c < exps.size(); ++c) to[c] = exps[c] * inverse;
  }
}

template <class T>
void gradient_row(const CrossEntropyGradientArgs& args, std::int64_t row) {
  using C = ComputeOf<T>;
  const C* from = static_cast<const C*>(args.probabilities) + row * args.classes;
  T* to = static_cast<T*>(args.logits_gradient) + row * args.classes;
  const std::int32_t label = args.labels[row];
  if (label < 0) return std::fill(to, to + args.classes, T{});
  const C factor = static_cast<const C*>(args.row_gradients)[row];
  for (std::int64_t c = 0; c < args.classes; ++c) to[c] = narrow<T>(from[c] * factor);
  to[label] = narrow<T>((from[label] - C{1}) * factor);
}

template <class T>
void softmax_gradient_row(std::int64_t cols, const T* y, const T* dy, T* dx) {
  using C = ComputeOf<T>;
  C dot{0};
  for (std::int64_t c = 0; c < cols; ++c) dot += widen(y[c]) * widen(dy[c]);
  for (std::int64_t c = 0; c < cols; ++c) dx[c] = narrow<T>(widen(y[c]) * (widen(dy[c]) - dot));
}

}  // namespace

void softmax_cross_entropy(const CrossEntropyArgs& args) {
  if (args.classes == 0) return;
  // An unknown instruction set is reported here, as no thread may throw below.
  kernels();
  with_floating("softmax_cross_entropy", args.dtype, [&](auto type) {
    using T = decltype(type);
    parallel_ranges(args.rows, 1, args.classes * 8, [&](std::int64_t begin, std::int64_t end) {
      std::vector<ComputeOf<T>> exps(static_cast<std::size_t>(args.classes));
      for (std::int64_t r = begin; r < end; ++r) cross_entropy_row<T>(args, r, exps);
    });
  });
}

void softmax_cross_entropy_gradient(const CrossEntropyGradientArgs& args) {
  with_floating("softmax_cross_entropy_gradient", args.dtype, [&](auto type) {
    using T = decltype(type);
    parallel_ranges(args.rows, 1, args.classes, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) gradient_row<T>(args, r);
    });
  });
}

void softmax_gradient(DType dtype, std::int64_t rows, std::int64_t cols, const void* y,
                      const void* dy, void* dx) {
  with_floating("softmax_gradient", dtype, [&](auto type) {
    using T = decltype(type);
    const auto* probabilities = static_cast<const T*>(y);
    const auto* upstream = static_cast<const T*>(dy);
    auto* to = static_cast<T*>(dx);
    parallel_ranges(rows, 1, cols * 4, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        softmax_gradient_row<T>(cols, probabilities + r * cols, upstream + r * cols, to + r * cols);
      }
    });
  });
}

}  // namespace openrnn::cpu::device
