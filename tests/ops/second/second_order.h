// Gradients of gradients against central differences of gradients.
#pragma once

#include "ops/check_gradient.h"

namespace openrnn::testing {

using Tensors = std::vector<Tensor>;

/// A number that is not linear in any output.
inline Tensor squared_sum(const Tensors& outputs) {
  Tensors squares;
  for (const Tensor& output : outputs) squares.push_back(ops::square(output));
  return weighted_sum(squares);
}

/// The function that computes the gradients of squared_sum(function(..)), those that there are.
inline Function gradient_of(const Function& function) {
  return [function](const Tensors& inputs) {
    const GradientTape inner;
    Tensors watched;
    for (const Tensor& input : inputs) watched.push_back(inner.watch(input));
    const Tensor loss = squared_sum(function(watched));
    Tensors found;
    for (const Tensor& gradient : inner.gradients({loss}, watched)) {
      if (!gradient.empty()) found.push_back(gradient);
    }
    return found;
  };
}

/// Its values are those of the arrays, bit for bit, and its gradient is right.
inline void check_second(const Function& function, const Tensors& inputs, double tolerance = 1e-6) {
  Tensors plain;
  {
    GradientTape tape;
    Tensors watched;
    for (const Tensor& input : inputs) watched.push_back(tape.watch(input));
    const Tensor loss = squared_sum(function(watched));
    for (const DeviceArray& gradient : tape.gradient(loss, watched)) {
      if (!gradient.empty()) plain.emplace_back(gradient);
    }
  }
  {
    const GradientTape outer;
    const Tensors recorded = gradient_of(function)(inputs);
    ASSERT_EQ(recorded.size(), plain.size());
    for (std::size_t i = 0; i < plain.size(); ++i) {
      ASSERT_EQ(values_of(recorded[i]), values_of(plain[i])) << "gradient " << i;
      ASSERT_EQ(recorded[i].shape(), plain[i].shape());
    }
  }
  check_gradient(gradient_of(function), inputs, tolerance);
}

/// Also the third derivative.
inline void check_third(const Function& function, const Tensors& inputs, double tolerance = 1e-5) {
  check_second(function, inputs);
  check_gradient(gradient_of(gradient_of(function)), inputs, tolerance);
}

/// Each input alone has the gradient, as a tensor, that it has beside the others.
inline void check_second_of_each_alone(const Function& function, const Tensors& inputs) {
  const GradientTape outer;
  const Tensors wanted = gradient_of(function)(inputs);
  ASSERT_EQ(wanted.size(), inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const GradientTape inner;
    Tensors given = inputs;
    given[i] = inner.watch(inputs[i]);
    const Tensor found = inner.gradients({squared_sum(function(given))}, Tensors{given[i]})[0];
    ASSERT_FALSE(found.empty()) << "input " << i;
    ASSERT_EQ(values_of(found), values_of(wanted[i])) << "input " << i;
  }
}

}  // namespace openrnn::testing
