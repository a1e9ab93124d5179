// Elementwise operations. Division and roots are rounded as IEEE 754 says; nothing is fused that is
// not written as fused.
#include "cudnn/kernels/math.h"
#include "cudnn/kernels/thread.h"

namespace openrnn::gpu {

template <class T, class F>
__device__ inline void map1(std::int64_t size, const void* x, void* y, const F& f) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  each_element(size, [=](std::int64_t i) { to[i] = narrow<T>(f(widen(from[i]))); });
}

template <class T, class F>
__device__ inline void map2(std::int64_t size, const void* a, const void* b, void* c, const F& f) {
  const T* left = static_cast<const T*>(a);
  const T* right = static_cast<const T*>(b);
  T* to = static_cast<T*>(c);
  each_element(size,
               [=](std::int64_t i) { to[i] = narrow<T>(f(widen(left[i]), widen(right[i]))); });
}

template <class C>
__device__ inline C unary_of(Unary op, C v) {
  switch (op) {
    case Unary::kRelu:
      // The comparison keeps NaN, so that an invalid value is not hidden.
      return v < C(0) ? C(0) : v;
    case Unary::kTanh:
      return tanh_of(v);
    case Unary::kSigmoid:
      return sigmoid_of(v);
    case Unary::kExp:
      return exp_of(v);
    case Unary::kNegate:
      return -v;
    case Unary::kSquare:
      return v * v;
    case Unary::kSqrt:
      return root(v);
    case Unary::kLog:
      return log_of_any(v);
    case Unary::kSoftplus:
      return flushed<C>(softplus_of(static_cast<double>(v), Split(), Scaled()));
    default:
      return v < C(0) ? -v : v;
  }
}

// The argument of the gradient: the input or the output of the operation.
__device__ inline bool reads_input(Unary op) {
  return op == Unary::kSquare || op == Unary::kAbs || op == Unary::kLog || op == Unary::kSoftplus;
}

template <class C>
__device__ inline C unary_gradient_of(Unary op, C v, C d) {
  switch (op) {
    case Unary::kRelu:
      return v > C(0) ? d : C(0);
    case Unary::kTanh:
      return d * (C(1) - v * v);
    case Unary::kSigmoid:
      return d * (v * (C(1) - v));
    case Unary::kExp:
      return d * v;
    case Unary::kNegate:
      return -d;
    case Unary::kSquare:
      return (v + v) * d;
    case Unary::kSqrt:
      return d / (v + v);
    case Unary::kLog:
      return d / v;
    case Unary::kSoftplus:
      return d * sigmoid_of(v);
    default:
      return v > C(0) ? d : v < C(0) ? -d : C(0);
  }
}

template <class C>
__device__ inline C binary_of(Binary op, C v, C w) {
  switch (op) {
    case Binary::kAdd:
      return v + w;
    case Binary::kSubtract:
      return v - w;
    case Binary::kMultiply:
      return v * w;
    case Binary::kMaximum:
      return v >= w || std::isnan(v) ? v : w;
    case Binary::kMinimum:
      return v <= w || std::isnan(v) ? v : w;
    case Binary::kPower:
      return flushed<C>(
          power_of(static_cast<double>(v), static_cast<double>(w), Split(), Scaled()));
    default:
      return v / w;
  }
}

}  // namespace openrnn::gpu

using namespace openrnn::gpu;

extern "C" __global__ void openrnn_unary(UnaryArguments arguments) {
  with_number(arguments.number, [=](auto type) {
    map1<decltype(type)>(arguments.size, arguments.x, arguments.y,
                         [=](auto v) { return unary_of(arguments.op, v); });
  });
}

extern "C" __global__ void openrnn_unary_gradient(UnaryGradientArguments arguments) {
  const Unary op = arguments.op;
  // The operand that an operation does not read may be null.
  const void* operand = op == Unary::kNegate ? arguments.dy
                        : reads_input(op)    ? arguments.x
                                             : arguments.y;
  with_number(arguments.number, [=](auto type) {
    map2<decltype(type)>(arguments.size, operand, arguments.dy, arguments.dx,
                         [=](auto v, auto d) { return unary_gradient_of(op, v, d); });
  });
}

extern "C" __global__ void openrnn_binary(BinaryArguments arguments) {
  with_number(arguments.number, [=](auto type) {
    map2<decltype(type)>(arguments.size, arguments.a, arguments.b, arguments.c,
                         [=](auto v, auto w) { return binary_of(arguments.op, v, w); });
  });
}

extern "C" __global__ void openrnn_scale(ScaleArguments arguments) {
  with_number(arguments.number, [=](auto type) {
    using C = ComputeOf<decltype(type)>;
    const C by = static_cast<C>(arguments.factor);
    map1<decltype(type)>(arguments.size, arguments.x, arguments.y, [=](C v) { return by * v; });
  });
}

extern "C" __global__ void openrnn_clip(ClipArguments arguments) {
  with_number(arguments.number, [=](auto type) {
    using T = decltype(type);
    using C = ComputeOf<T>;
    const C low = widen(Convert<T, double>::of(arguments.low));
    const C high = widen(Convert<T, double>::of(arguments.high));
    // The comparisons keep NaN, as those of relu.
    if (!arguments.dy) {
      map1<T>(arguments.size, arguments.x, arguments.out, [=](C v) {
        return v < low ? low : v > high ? high : v;
      });
    } else {
      map2<T>(arguments.size, arguments.x, arguments.dy, arguments.out,
              [=](C v, C d) { return v < low || v > high ? C(0) : d; });
    }
  });
}

extern "C" __global__ void openrnn_fill(FillArguments arguments) {
  double value = arguments.factor;
  if (arguments.scalar) {
    with_number(arguments.scalar_number, [&](auto type) {
      value *= static_cast<double>(widen(*static_cast<const decltype(type)*>(arguments.scalar)));
    });
  }
  with_number(arguments.number, [=](auto type) {
    using T = decltype(type);
    const T filling = Convert<T, double>::of(value);
    T* to = static_cast<T*>(arguments.y);
    each_element(arguments.size, [=](std::int64_t i) { to[i] = filling; });
  });
}

extern "C" __global__ void openrnn_convert(ConvertArguments arguments) {
  with_number(arguments.from_number, [=](auto source) {
    with_number(arguments.to_number, [=](auto target) {
      using From = decltype(source);
      using To = decltype(target);
      const From* from = static_cast<const From*>(arguments.from);
      To* to = static_cast<To*>(arguments.to);
      each_element(arguments.size, [=](std::int64_t i) { to[i] = Convert<To, From>::of(from[i]); });
    });
  });
}
