// Errors of a forecaster on the held-out rows, and those of naive forecasts.
#include <algorithm>
#include <cmath>

#include "openrnn/train_model.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

constexpr std::int64_t kRows = 256;  // of one call

/// Sums of squared errors, one a column.
struct Errors {
  std::vector<double> model, last_value, seasonal;
};

void add_block(const SeriesWindows& data, const Array& outputs, std::int64_t begin,
               std::int64_t season, Errors& errors) {
  const std::int64_t rows = outputs.shape()[1], columns = data.columns();
  const std::int64_t last_step = (outputs.shape()[0] - 1) * rows * columns;
  const auto square = [](double x) { return x * x; };
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const auto k = static_cast<std::size_t>(c);
      const double truth = data.valid_truth(begin + r, c), last = data.valid_last(begin + r, c);
      const double change = element(outputs.view(), last_step + r * columns + c);
      const double forecast =
          last + change * data.scaling().changes.deviation[k] + data.scaling().changes.mean[k];
      errors.model[k] += square(forecast - truth);
      errors.last_value[k] += square(last - truth);
      if (season > 0) {
        errors.seasonal[k] += square(data.valid_seasonal(begin + r, c, season) - truth);
      }
    }
  }
}

/// Turns sums into roots of means; returns the root of the mean of all in normalised units.
double finish(std::vector<double>& sums, const SeriesWindows& data) {
  double total = 0.0;
  for (std::size_t c = 0; c < sums.size(); ++c) {
    const double mean = sums[c] / static_cast<double>(data.valid_count());
    total += mean / (data.scaling().values.deviation[c] * data.scaling().values.deviation[c]);
    sums[c] = std::sqrt(mean);
  }
  return std::sqrt(total / static_cast<double>(sums.size()));
}

}  // namespace

SeriesScore score_series(SequenceModel& model, const SeriesWindows& data) {
  const std::vector<double> zeros(static_cast<std::size_t>(data.columns()), 0.0);
  Errors errors{zeros, zeros, zeros};
  SeriesScore score;
  score.season = data.best_season();
  for (std::int64_t begin = 0; begin < data.valid_count(); begin += kRows) {
    const std::int64_t count = std::min(kRows, data.valid_count() - begin);
    const Array outputs = model(data.valid_inputs(begin, count)).outputs.to_host();
    add_block(data, outputs, begin, score.season, errors);
  }
  score.model_total = finish(errors.model, data);
  score.last_value_total = finish(errors.last_value, data);
  for (const double total : {score.model_total, score.last_value_total}) {
    if (std::isfinite(total)) continue;
    throw ArgumentError(message("score_series", "an error of ", total,
                                ", expected a finite one: the model's weights or the rows "
                                "overflow"));
  }
  score.model = errors.model;
  score.last_value = errors.last_value;
  if (score.season > 0) {
    score.seasonal_total = finish(errors.seasonal, data);
    score.seasonal = errors.seasonal;
  }
  return score;
}

}  // namespace openrnn::train
