// The gradients of samples against gradients of one row's losses at a time.
#pragma once

#include "ops/check_gradient.h"
#include "support/expect_error.h"

namespace openrnn::testing {

/// Another device than the cpu, whose rows are not told apart.
inline bool on_other_device() { return default_device().engine() != nullptr; }

/// Ones where the losses of row b lie along `axis`, else zeros.
inline DeviceArray losses_of_row(const Tensor& target, std::size_t axis, std::int64_t b) {
  const Shape& shape = target.shape();
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  Array chosen(DType::kFloat64, shape);
  const std::span<double> values = chosen.as<double>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int64_t>(i) / inner % shape[axis] == b ? 1.0 : 0.0;
  }
  return DeviceArray::from_host(target.device(),
                                openrnn::cast(chosen.view(), target.dtype()).view());
}

/// Gradients and norms of every row of `target` along `axis` are those of its losses alone, up to
/// `tolerance` of the largest gradient.
inline void expect_samples(const GradientTape& tape, const Tensor& target,
                           const std::vector<Tensor>& sources, std::size_t axis = 0,
                           double tolerance = 1e-13) {
  const auto along = static_cast<std::int64_t>(axis);
  const std::vector<double> norms = tape.per_sample_norms(target, sources, along);
  const std::vector<DeviceArray> found = tape.per_sample_gradients(target, sources, along);
  const std::int64_t rows = target.shape()[axis];
  ASSERT_EQ(static_cast<std::int64_t>(norms.size()), rows);
  EXPECT_EQ(tape.per_sample_norms(target, sources, along), norms) << "asked twice";
  for (std::int64_t b = 0; b < rows; ++b) {
    const std::vector<DeviceArray> expected =
        tape.gradient(target, sources, losses_of_row(target, axis, b));
    double squares = 0.0;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      ASSERT_EQ(found[i].empty(), expected[i].empty()) << "source " << i;
      if (found[i].empty()) continue;
      Shape shape = sources[i].shape();
      shape.insert(shape.begin(), rows);
      ASSERT_EQ(found[i].shape(), shape) << "source " << i;
      ASSERT_EQ(found[i].dtype(), sources[i].dtype()) << "source " << i;
      const std::vector<double> all = values_of(found[i]), row = values_of(expected[i]);
      double largest = 1.0;
      for (const double value : row) largest = std::max(largest, std::abs(value));
      for (std::size_t k = 0; k < row.size(); ++k) {
        const double own = all[static_cast<std::size_t>(b) * row.size() + k];
        ASSERT_NEAR(own, row[k], tolerance * largest)
            << "row " << b << " of source " << i << ", element " << k;
        squares += row[k] * row[k];
      }
    }
    ASSERT_NEAR(norms[static_cast<std::size_t>(b)], std::sqrt(squares),
                tolerance * (1.0 + std::sqrt(squares)))
        << "norm of row " << b;
  }
}

/// The same of a function of sources, the first of which need not be shared.
inline void expect_samples(const std::function<Tensor(const std::vector<Tensor>&)>& target_of,
                           const std::vector<Tensor>& sources, std::size_t axis = 0,
                           double tolerance = 1e-13) {
  GradientTape tape;
  std::vector<Tensor> watched;
  for (const Tensor& source : sources) watched.push_back(tape.watch(source));
  const Tensor target = target_of(watched);
  tape.close();
  expect_samples(tape, target, watched, axis, tolerance);
}

/// What the norms of samples of such a function are refused with.
inline std::string refusal_of(const std::function<Tensor(const std::vector<Tensor>&)>& target_of,
                              const std::vector<Tensor>& sources, std::int64_t axis = 0) {
  GradientTape tape;
  std::vector<Tensor> watched;
  for (const Tensor& source : sources) watched.push_back(tape.watch(source));
  const Tensor target = target_of(watched);
  const std::string norms = error_of<UnsupportedError>(
      [&] { static_cast<void>(tape.per_sample_norms(target, watched, axis)); });
  const std::string gradients = error_of<UnsupportedError>(
      [&] { static_cast<void>(tape.per_sample_gradients(target, watched, axis)); });
  EXPECT_EQ(norms.empty(), gradients.empty());
  return norms;
}

}  // namespace openrnn::testing
