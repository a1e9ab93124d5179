// Forecasts beyond the last row.
#include <gtest/gtest.h>

#include <cmath>

#include "openrnn/train.h"
#include "support/expect_error.h"

namespace openrnn::train {
namespace {

SeriesTable rows(std::int64_t count) {
  SeriesTable table{.names = {"a", "b"}, .values = Array(DType::kFloat64, {count, 2})};
  for (std::int64_t i = 0; i < 2 * count; ++i) {
    table.values.as<double>()[static_cast<std::size_t>(i)] = std::cos(static_cast<double>(i * i));
  }
  return table;
}

const SeriesScaling kScaling{{{0.1, -0.3}, {0.7, 0.9}}, {{0.02, -0.05}, {1.1, 1.3}}};

struct Forecaster {
  Forecaster() : current(graph), model(config()) {}
  static ModelConfig config() {
    return {.network = {.num_units = 4, .training = {.seed = 3}}, .columns = 2, .outputs = 2};
  }
  Graph graph;
  Graph::AsDefault current;
  SequenceModel model;
};

SeriesOptions options_of(std::int64_t window, std::int64_t horizon) {
  SeriesOptions options;
  options.window = window;
  options.horizon = horizon;
  return options;
}

// Each step by hand, from the rows and the steps before.
TEST(ForecastSeries, GoesOnFromItsOwnForecasts) {
  Forecaster with;
  for (const auto& [window, horizon, count] :
       {std::array{5, 1, 5}, {5, 3, 7}, {5, 3, 30}, {1, 1, 1}, {2, 4, 9}}) {
    const SeriesTable table = rows(count);
    std::vector<double> all(table.values.as<double>().begin(), table.values.as<double>().end());
    const Array found =
        forecast_series(with.model, table, options_of(window, horizon), kScaling, 6);
    ASSERT_EQ(found.shape(), (Shape{6, 2}));
    for (int step = 0; step < 6; ++step) {
      const int last = static_cast<int>(all.size()) / 2 - horizon;
      Array x(DType::kFloat64, {window, 1, 2});
      for (int i = 0; i < 2 * window; ++i) {
        const auto c = static_cast<std::size_t>(i % 2);
        x.as<double>()[static_cast<std::size_t>(i)] =
            (all[static_cast<std::size_t>(2 * (last + 1 - window) + i)] - kScaling.values.mean[c]) /
            kScaling.values.deviation[c];
      }
      const Array outputs = with.model(x).outputs.to_host();
      for (std::size_t c = 0; c < 2; ++c) {
        const double change = element(outputs.view(), 2 * (window - 1) + static_cast<int>(c));
        const double expected = all[static_cast<std::size_t>(2 * last) + c] +
                                change * kScaling.changes.deviation[c] + kScaling.changes.mean[c];
        EXPECT_EQ(element(found.view(), 2 * step + static_cast<int>(c)), expected)
            << window << " " << horizon << " step " << step;
        all.push_back(expected);
      }
    }
  }
}

TEST(ForecastSeries, RefusesWhatDoesNotFit) {
  Forecaster with;
  const auto error = [&](std::int64_t count, std::int64_t steps, const SeriesScaling& scaling) {
    return error_of<ArgumentError>(
        [&] { forecast_series(with.model, rows(count), options_of(5, 3), scaling, steps); });
  };
  EXPECT_EQ(error(7, 1, kScaling), "");
  EXPECT_EQ(error(6, 1, kScaling),
            "[forecast_series] 6 rows, expected 7 or more: a window of 5 and the horizon of 3");
  for (const std::int64_t steps : {0, -1}) {
    EXPECT_EQ(error(7, steps, kScaling),
              "[forecast_series] steps " + std::to_string(steps) + ", expected 1 or more");
  }
  SeriesScaling endless = kScaling;
  endless.changes.mean[1] = HUGE_VAL;
  EXPECT_EQ(error(7, 1, endless),
            "[forecast_series] a forecast of inf for step 1, expected a finite one: the model's "
            "weights or the rows overflow");
  EXPECT_EQ(error(7, 1, {{{0.0}, {1.0}}, {{0.0}, {1.0}}}),
            "[forecast_series] 2 columns, expected 1 as the model was trained on");
}

}  // namespace
}  // namespace openrnn::train
