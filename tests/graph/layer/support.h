// What layers and graphs hold, as values that tests compare.
#pragma once

#include "openrnn/graph.h"

namespace openrnn::testing {

inline std::vector<std::string> names_of(const std::vector<Variable>& variables) {
  std::vector<std::string> names;
  for (const Variable& variable : variables) names.push_back(variable.name());
  return names;
}

/// A symbolic one is -1.
inline std::vector<double> numbers_of(const std::vector<Tensor>& losses) {
  std::vector<double> numbers;
  for (const Tensor& loss : losses) numbers.push_back(loss.is_symbolic() ? -1.0 : loss.item());
  return numbers;
}

inline Tensor number(double value) {
  return Tensor(Array::of<double>({}, std::vector{value}).view());
}

}  // namespace openrnn::testing
