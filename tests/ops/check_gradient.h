// Compares a gradient with central differences in float64.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "openrnn/ops.h"

namespace openrnn::testing {

/// Uniform in [low, high), from the seed alone.
inline Tensor random_tensor(const Shape& shape, std::uint64_t seed, double low = -1.0,
                            double high = 1.0, DType dtype = DType::kFloat64) {
  Array values(DType::kFloat64, shape);
  RandomStream random(seed);
  for (double& value : values.as<double>()) value = random.uniform(low, high);
  return Tensor(openrnn::cast(values.view(), dtype).view());
}

inline Tensor int_tensor(const Shape& shape, const std::vector<std::int32_t>& values) {
  return Tensor(ConstArrayView{values.data(), DType::kInt32, shape});
}

inline std::vector<double> values_of(const DeviceArray& array) {
  const Array host = array.to_host();
  std::vector<double> values;
  for (std::int64_t i = 0; i < host.size(); ++i) values.push_back(element(host.view(), i));
  return values;
}

inline std::vector<double> values_of(const Tensor& tensor) { return values_of(tensor.value()); }

/// A number that depends on every element of every output with a weight of its own.
inline Tensor weighted_sum(const std::vector<Tensor>& outputs) {
  std::vector<Tensor> sums;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].value().size() == 0) continue;
    const Tensor weights = random_tensor(outputs[i].shape(), 77 + i);
    sums.push_back(ops::reduce_sum(ops::multiply(outputs[i], weights)));
  }
  return ops::add_n(sums);
}

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// Every element of every input, delta 1e-4; the difference is at most `tolerance`, absolutely and
/// relatively.
inline void check_gradient(const Function& function, const std::vector<Tensor>& inputs,
                           double tolerance = 1e-7) {
  GradientTape tape;
  std::vector<Tensor> watched;
  for (const Tensor& input : inputs) watched.push_back(tape.watch(input));
  const Tensor loss = weighted_sum(function(watched));
  tape.close();
  const std::vector<DeviceArray> gradients = tape.gradient(loss, watched);
  const std::vector<DeviceArray> again = tape.gradient(loss, watched);
  constexpr double kDelta = 1e-4;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_FALSE(gradients[i].empty()) << "input " << i;
    ASSERT_EQ(gradients[i].shape(), inputs[i].shape()) << "input " << i;
    const std::vector<double> gradient = values_of(gradients[i]);
    ASSERT_EQ(gradient, values_of(again[i])) << "input " << i << ", asked twice";
    for (std::int64_t k = 0; k < inputs[i].value().size(); ++k) {
      const auto moved = [&](double by) {
        std::vector<Tensor> at = inputs;
        Array host = inputs[i].to_host();
        host.as<double>()[static_cast<std::size_t>(k)] += by;
        at[i] = Tensor(host.view());
        return weighted_sum(function(at)).item();
      };
      const double slope = (moved(kDelta) - moved(-kDelta)) / (2 * kDelta);
      const double given = gradient[static_cast<std::size_t>(k)];
      ASSERT_LE(std::abs(given - slope), tolerance * (1 + std::abs(slope)))
          << "input " << i << ", element " << k << ": " << given << ", difference quotient "
          << slope;
    }
  }
}

/// Each input alone has the gradient that it has beside the others.
inline void check_each_alone(const Function& function, const std::vector<Tensor>& inputs) {
  GradientTape together;
  std::vector<Tensor> watched;
  for (const Tensor& input : inputs) watched.push_back(together.watch(input));
  const std::vector<DeviceArray> wanted =
      together.gradient(weighted_sum(function(watched)), watched);
  together.close();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    GradientTape tape;
    std::vector<Tensor> given = inputs;
    given[i] = tape.watch(inputs[i]);
    const Tensor loss = weighted_sum(function(given));
    const DeviceArray gradient = tape.gradient(loss, std::vector{given[i]})[0];
    ASSERT_FALSE(gradient.empty()) << "input " << i;
    ASSERT_EQ(values_of(gradient), values_of(wanted[i])) << "input " << i;
  }
}

/// The message of the error of type E that `call` throws.
template <class E, class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another type of error: ") + error.what();
  }
  return "no error";
}

}  // namespace openrnn::testing
