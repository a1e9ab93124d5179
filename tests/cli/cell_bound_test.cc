// The bound of check-cells, against the same formula from the canonical matrices.
#include "cli/report/cell_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "openrnn/params.h"

namespace openrnn::cli {
namespace {

struct Case {
  RnnMode mode;
  DType dtype;
  double epsilon;
  std::int64_t embedding;
};

constexpr std::int64_t kLayers = 2, kUnits = 5, kSymbols = 4;

double norm_of(const Array& array) {
  double squares = 0.0;
  for (std::int64_t i = 0; i < array.size(); ++i) {
    squares += std::pow(element(array.view(), i), 2);
  }
  return std::sqrt(squares);
}

double largest(const Array& array) {
  double most = 0.0;
  for (std::int64_t i = 0; i < array.size(); ++i) {
    most = std::max(most, std::abs(element(array.view(), i)));
  }
  return most;
}

Array numbers(DType dtype, Shape shape, double first, double step) {
  Array values(DType::kFloat64, std::move(shape));
  for (double& value : values.as<double>()) {
    value = first;
    first = std::fmod(first + step, 1.0) - 0.25;
  }
  return cast(values.view(), dtype);
}

// Row r of a matrix.
Array row_of(const Array& matrix, std::int64_t r) {
  const std::int64_t cols = matrix.shape()[1];
  Array row(DType::kFloat64, {cols});
  for (std::int64_t c = 0; c < cols; ++c) {
    row.as<double>()[static_cast<std::size_t>(c)] = element(matrix.view(), r * cols + c);
  }
  return row;
}

Array column_of(const Array& matrix, std::int64_t c) {
  const std::int64_t rows = matrix.shape()[0], cols = matrix.shape()[1];
  Array column(DType::kFloat64, {rows});
  for (std::int64_t r = 0; r < rows; ++r) {
    column.as<double>()[static_cast<std::size_t>(r)] = element(matrix.view(), r * cols + c);
  }
  return column;
}

class CellBounds : public testing::TestWithParam<Case> {
 protected:
  train::ModelConfig config() const {
    train::ModelConfig config;
    config.network = {.mode = GetParam().mode,
                      .num_layers = kLayers,
                      .num_units = kUnits,
                      .dtype = GetParam().dtype};
    config.vocabulary = config.outputs = kSymbols;
    config.embedding = GetParam().embedding;
    return config;
  }
  /// As the layers and the comments of the header say.
  double expected(const train::SequenceModel& model, const std::vector<Array>& old_h,
                  const std::vector<Array>& new_h, double most) const {
    const double epsilon = GetParam().epsilon;
    const CanonicalParams all = params_to_canonical(ParamsLayout(model.rnn().spec()),
                                                    model.rnn().kernel().to_host().view());
    const std::size_t gates = all.weights.size() / (2 * kLayers);
    double input = 1.0, error = 0.0;
    if (model.embedding()) {
      const Array table = model.embedding()->embeddings().to_host();
      input = 0.0;
      for (std::int64_t r = 0; r < kSymbols; ++r)
        input = std::max(input, norm_of(row_of(table, r)));
    }
    for (std::size_t l = 0; l < kLayers; ++l) {
      double row = 0.0, bias = 0.0;
      for (std::size_t g = 0; g < gates; ++g) {
        const std::size_t w = l * 2 * gates + g, r = w + gates;
        for (std::int64_t u = 0; u < kUnits; ++u) {
          row = std::max(row, std::hypot(norm_of(row_of(all.weights[w], u)),
                                         norm_of(row_of(all.weights[r], u))));
          bias = std::max(bias, std::abs(element(all.biases[w].view(), u)) +
                                    std::abs(element(all.biases[r].view(), u)));
        }
      }
      const double width = static_cast<double>(all.weights[l * 2 * gates].shape()[1] + kUnits);
      const double product =
          row * std::hypot(l == 0 ? input : norm_of(new_h[l - 1]), norm_of(old_h[l])) + bias;
      const double a = epsilon * (0.5 * std::sqrt(width) + 4.0) * product + row * error;
      const double rounding = 8.0 * epsilon * (1.0 + most);
      error = GetParam().mode == RnnMode::kLstm  ? a * (0.25 * most + 1.5) + rounding
              : GetParam().mode == RnnMode::kGru ? a * (2.5 + 0.25 * product) + rounding
                                                 : a + rounding;
    }
    double dense = 0.0;
    const Array kernel = model.dense().kernel().to_host();
    for (std::int64_t c = 0; c < kSymbols; ++c)
      dense = std::max(dense, norm_of(column_of(kernel, c)));
    const double last = epsilon * (0.5 * std::sqrt(double(kUnits)) + 4.0) *
                        (dense * norm_of(new_h.back()) + largest(model.dense().bias().to_host()));
    return 2.0 * (last + dense * error);
  }
};

TEST_P(CellBounds, IsTheFormula) {
  Graph graph;
  const Graph::AsDefault current(graph);
  train::SequenceModel model(config());
  const DType dtype = GetParam().dtype;
  double first = 0.375;
  for (const Variable& variable : model.variables()) {
    variable.assign(numbers(dtype, variable.shape(), first += 0.0625, 0.4375).view());
  }
  const CellBound bound(model);
  const auto state = [&](double from) {
    std::vector<Tensor> parts;
    const std::size_t count = GetParam().mode == RnnMode::kLstm ? 2 : 1;
    for (std::size_t i = 0; i < count; ++i) {
      parts.emplace_back(
          numbers(dtype, {kLayers, 1, kUnits}, from + (i ? 0.5 : 0.0), 0.3125).view());
    }
    return parts;
  };
  const auto rows = [](const std::vector<Tensor>& parts) {
    const Array h = parts[0].to_host();
    const Array matrix = cast(h.view(), DType::kFloat64).reshaped({kLayers, kUnits});
    return std::vector{row_of(matrix, 0), row_of(matrix, 1)};
  };
  const auto most = [](const std::vector<std::vector<Tensor>>& states) {
    double all = 0.0;
    for (const auto& parts : states) {
      for (const Tensor& part : parts) all = std::max(all, largest(part.to_host()));
    }
    return all;
  };
  const std::vector<Tensor> before = state(0.125), after = state(-0.1875);
  const double found = bound.of_step(before, after);
  EXPECT_NEAR(found, expected(model, rows(before), rows(after), most({before, after})),
              1e-9 * found);
  const double from_zeros = bound.of_step({}, after);
  const std::vector<Array> zeros(kLayers, Array(DType::kFloat64, {kUnits}));
  EXPECT_NEAR(from_zeros, expected(model, zeros, rows(after), most({after})), 1e-9 * from_zeros);
}

INSTANTIATE_TEST_SUITE_P(Modes, CellBounds,
                         testing::Values(Case{RnnMode::kLstm, DType::kFloat32, 0x1p-23, 3},
                                         Case{RnnMode::kGru, DType::kFloat64, 0x1p-52, 3},
                                         Case{RnnMode::kRnnTanh, DType::kFloat16, 0x1p-10, 0},
                                         Case{RnnMode::kRnnRelu, DType::kBfloat16, 0x1p-7, 3}));

}  // namespace
}  // namespace openrnn::cli
