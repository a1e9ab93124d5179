#include <algorithm>
#include <cmath>
#include <limits>

#include "base/message.h"
#include "openrnn/params.h"

namespace openrnn {
namespace {

template <class Next>
void fill(const ArrayView& values, Next next) {
  if (!is_floating(values.dtype)) {
    throw ArgumentError(message("[initializer] the values are ", dtype_name(values.dtype),
                                ", expected a floating dtype, or a constant"));
  }
  switch (values.dtype) {
    case DType::kFloat16:
      for (Half& v : values.as<Half>()) v = to_half(static_cast<double>(next()));
      return;
    case DType::kBfloat16:
      for (Bfloat16& v : values.as<Bfloat16>()) v = to_bfloat16(static_cast<double>(next()));
      return;
    case DType::kFloat32:
      for (float& v : values.as<float>()) v = static_cast<float>(next());
      return;
    default:
      for (double& v : values.as<double>()) v = next();
  }
}

template <class T>
void fill_integers(std::span<T> values, DType dtype, double value) {
  using Limits = std::numeric_limits<T>;
  // max + 1, which is exact in float64, where max of 64 bits is not.
  const double end = std::ldexp(1.0, Limits::digits);
  if (!(value >= static_cast<double>(Limits::min()) && value < end && value == std::trunc(value))) {
    throw ArgumentError(message("[constant_initializer] ", value, " is given for ",
                                dtype_name(dtype), ", expected a number that it holds"));
  }
  std::fill(values.begin(), values.end(), static_cast<T>(value));
}

// rows + cols of a matrix; a vector counts its size twice, as its only fan.
double fan_sum(const Shape& shape) {
  if (shape.empty()) return 2.0;
  if (shape.size() == 1) return 2.0 * static_cast<double>(shape[0]);
  return static_cast<double>(shape[shape.size() - 2] + shape.back());
}

double dot(const double* a, const double* b, std::size_t n) {
  double sum = 0.0;
  for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// `count` orthonormal vectors of length `n`, count <= n; projecting twice keeps them orthogonal to
// the last bits (Giraud et al. 2005).
std::vector<double> orthonormal(std::size_t count, std::size_t n, RandomStream& random) {
  std::vector<double> vectors(count * n);
  for (std::size_t v = 0; v < count; ++v) {
    double* current = vectors.data() + v * n;
    for (std::size_t i = 0; i < n; ++i) current[i] = random.normal();
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t u = 0; u < v; ++u) {
        const double* earlier = vectors.data() + u * n;
        const double along = dot(current, earlier, n);
        for (std::size_t i = 0; i < n; ++i) current[i] -= along * earlier[i];
      }
    }
    const double scale = 1.0 / std::sqrt(dot(current, current, n));
    for (std::size_t i = 0; i < n; ++i) current[i] *= scale;
  }
  return vectors;
}

}  // namespace

Initializer constant_initializer(double value) {
  return [value](ArrayView values, RandomStream&) {
    switch (values.dtype) {
      case DType::kInt32:
        return fill_integers(values.as<std::int32_t>(), values.dtype, value);
      case DType::kInt64:
        return fill_integers(values.as<std::int64_t>(), values.dtype, value);
      case DType::kUInt8:
        return fill_integers(values.as<std::uint8_t>(), values.dtype, value);
      case DType::kBool:
        return fill_integers(values.as<bool>(), values.dtype, value);
      default:
        fill(values, [&] { return value; });
    }
  };
}

Initializer glorot_uniform_initializer() {
  return [](ArrayView values, RandomStream& random) {
    const double limit = std::sqrt(6.0 / fan_sum(values.shape));
    fill(values, [&] { return random.uniform(-limit, limit); });
  };
}

Initializer glorot_normal_initializer() {
  return [](ArrayView values, RandomStream& random) {
    const double stddev = std::sqrt(2.0 / fan_sum(values.shape));
    fill(values, [&] { return stddev * random.normal(); });
  };
}

Initializer random_uniform_initializer(double low, double high) {
  return [=](ArrayView values, RandomStream& random) {
    fill(values, [&] { return random.uniform(low, high); });
  };
}

Initializer random_normal_initializer(double mean, double stddev) {
  return [=](ArrayView values, RandomStream& random) {
    fill(values, [&] { return mean + stddev * random.normal(); });
  };
}

Initializer orthogonal_initializer(double gain) {
  return [gain](ArrayView values, RandomStream& random) {
    const std::size_t total = static_cast<std::size_t>(values.size());
    if (total == 0) return;
    const auto cols = static_cast<std::size_t>(values.shape.back());
    const std::size_t rows = total / cols;
    const bool wide = rows <= cols;
    const std::vector<double> vectors =
        wide ? orthonormal(rows, cols, random) : orthonormal(cols, rows, random);
    std::size_t i = 0;
    fill(values, [&] {
      const std::size_t row = i / cols, col = i % cols;
      ++i;
      return gain * (wide ? vectors[row * cols + col] : vectors[col * rows + row]);
    });
  };
}

Array initialize_params(const ParamsLayout& layout, std::uint64_t seed, const Initializer& kernel,
                        const Initializer& bias) {
  const Initializer kernel_or_default = kernel ? kernel : glorot_uniform_initializer();
  const Initializer bias_or_default = bias ? bias : constant_initializer(0.0);
  const Initializer one = constant_initializer(1.0), zero = constant_initializer(0.0);
  const auto of = [&](const ParamRegion& region) -> const Initializer& {
    if (region.is_gain()) return one;
    if (region.role == ParamRole::kCellBias) return zero;
    return region.is_bias() ? bias_or_default : kernel_or_default;
  };
  Array params(layout.spec().dtype, {layout.size()});
  const std::size_t width = dtype_size(params.dtype());
  std::uint64_t stream = 0;
  for (const auto regions : {layout.weights(), layout.biases()}) {
    for (const ParamRegion& region : regions) {
      const Initializer& init = of(region);
      RandomStream random(seed, ++stream);
      auto* to =
          static_cast<std::byte*>(params.data()) + static_cast<std::size_t>(region.offset) * width;
      if (region.size()) init({to, params.dtype(), region.shape()}, random);
    }
  }
  return params;
}

}  // namespace openrnn
