// Copies with strides, comparisons and choices.
#include "cudnn/kernels/number.h"
#include "cudnn/kernels/thread.h"

namespace openrnn::gpu {

/// Calls f with an integer of that many bytes.
template <class F>
__device__ inline void with_element(std::int32_t bytes, const F& f) {
  if (bytes == 1) {
    f(std::uint8_t{});
  } else if (bytes == 2) {
    f(std::uint16_t{});
  } else if (bytes == 4) {
    f(std::uint32_t{});
  } else {
    f(std::uint64_t{});
  }
}

template <class C>
__device__ inline bool compared(Compare op, C v, C w) {
  switch (op) {
    case Compare::kEqual:
      return v == w;
    case Compare::kLess:
      return v < w;
    default:
      return v <= w;
  }
}

}  // namespace openrnn::gpu

using namespace openrnn::gpu;

extern "C" __global__ void openrnn_compare(CompareArguments arguments) {
  with_number(arguments.number, [=](auto type) {
    using T = decltype(type);
    const T* a = static_cast<const T*>(arguments.a);
    const T* b = static_cast<const T*>(arguments.b);
    each_element(arguments.size, [=](std::int64_t i) {
      arguments.mask[i] = compared(arguments.op, widen(a[i]), widen(b[i])) ? 1 : 0;
    });
  });
}

extern "C" __global__ void openrnn_select(SelectArguments arguments) {
  with_element(arguments.bytes, [=](auto type) {
    using T = decltype(type);
    const T* a = static_cast<const T*>(arguments.a);
    const T* b = static_cast<const T*>(arguments.b);
    T* out = static_cast<T*>(arguments.out);
    each_element(arguments.size, [=](std::int64_t i) {
      const T* chosen = arguments.mask[i] ? a : b;
      out[i] = chosen ? chosen[i] : T(0);
    });
  });
}

extern "C" __global__ void openrnn_strided(StridedArguments arguments) {
  with_element(arguments.bytes, [=](auto type) {
    using T = decltype(type);
    const T* from = static_cast<const T*>(arguments.from);
    T* to = static_cast<T*>(arguments.to);
    each_element(arguments.size, [=](std::int64_t i) {
      std::int64_t rest = i, source = 0, target = 0;
      for (int d = arguments.rank - 1; d >= 0; --d) {
        const std::int64_t at = rest % arguments.shape[d];
        rest /= arguments.shape[d];
        source += at * arguments.from_strides[d];
        target += at * arguments.to_strides[d];
      }
      to[target] = from[source];
    });
  });
}
