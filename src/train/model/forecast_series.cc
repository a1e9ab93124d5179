// Forecasts beyond the last row of a table.
#include <cmath>

#include "openrnn/train_model.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

/// The rows so far, in the units of the file, and those that are forecast behind them.
class Rows {
 public:
  explicit Rows(const SeriesTable& table)
      : columns_(table.values.shape()[1]), known_(table.values.shape()[0]) {
    const auto values = table.values.as<double>();
    values_.assign(values.begin(), values.end());
  }
  std::int64_t columns() const { return columns_; }
  std::int64_t known() const { return known_; }
  std::int64_t size() const { return static_cast<std::int64_t>(values_.size()) / columns_; }
  double at(std::int64_t row, std::int64_t column) const {
    return values_[static_cast<std::size_t>(row * columns_ + column)];
  }
  void push(double value) { values_.push_back(value); }

  /// The normalised rows [begin, begin + count) as a batch of one.
  Array inputs(std::int64_t begin, std::int64_t count, const Normalisation& scaling) const {
    Array x(DType::kFloat64, {count, 1, columns_});
    const auto to = x.as<double>();
    for (std::int64_t r = 0; r < count; ++r) {
      for (std::int64_t c = 0; c < columns_; ++c) {
        const auto k = static_cast<std::size_t>(c);
        to[static_cast<std::size_t>(r * columns_ + c)] =
            (at(begin + r, c) - scaling.mean[k]) / scaling.deviation[k];
      }
    }
    return x;
  }

 private:
  std::vector<double> values_;
  std::int64_t columns_, known_;
};

void check(const SeriesTable& table, const SeriesOptions& options, const SeriesScaling& scaling,
           std::int64_t steps) {
  const std::int64_t rows = table.values.shape()[0], needed = options.window + options.horizon - 1;
  if (steps < 1) {
    throw ArgumentError(message("forecast_series", "steps ", steps, ", expected 1 or more"));
  }
  const auto columns = static_cast<std::int64_t>(scaling.values.mean.size());
  if (table.values.shape()[1] != columns) {
    throw ArgumentError(message("forecast_series", table.values.shape()[1], " columns, expected ",
                                columns, " as the model was trained on"));
  }
  if (rows < needed) {
    throw ArgumentError(message("forecast_series", rows, " rows, expected ", needed,
                                " or more: a window of ", options.window, " and the horizon of ",
                                options.horizon));
  }
}

}  // namespace

Array forecast_series(SequenceModel& model, const SeriesTable& table, const SeriesOptions& options,
                      const SeriesScaling& scaling, std::int64_t steps) {
  check(table, options, scaling, steps);
  Rows rows(table);
  const std::int64_t columns = rows.columns();
  Array forecasts(DType::kFloat64, {steps, columns});
  const auto to = forecasts.as<double>();
  for (std::int64_t k = 0; k < steps; ++k) {
    const std::int64_t last = rows.size() - options.horizon;  // of the window
    const Array outputs =
        model(rows.inputs(last + 1 - options.window, options.window, scaling.values))
            .outputs.to_host();
    const std::int64_t last_step = (outputs.shape()[0] - 1) * columns;
    for (std::int64_t c = 0; c < columns; ++c) {
      const auto i = static_cast<std::size_t>(c);
      const double change = element(outputs.view(), last_step + c);
      const double value =
          rows.at(last, c) + change * scaling.changes.deviation[i] + scaling.changes.mean[i];
      if (!std::isfinite(value)) {
        throw ArgumentError(message("forecast_series", "a forecast of ", value, " for step ", k + 1,
                                    ", expected a finite one: the model's weights or the rows "
                                    "overflow"));
      }
      to[static_cast<std::size_t>(k * columns + c)] = value;
    }
    for (std::int64_t c = 0; c < columns; ++c) {
      rows.push(to[static_cast<std::size_t>(k * columns + c)]);
    }
  }
  return forecasts;
}

}  // namespace openrnn::train
