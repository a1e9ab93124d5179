// Windows over a table of numbers.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/excerpt.h"
#include "openrnn/train_data.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

/// Mean and deviation of f(0), ..., f(count - 1); a constant has deviation 1, so that dividing by
/// it gives 0 and not NaN.
template <class F>
std::pair<double, double> moments(std::int64_t count, F f) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < count; ++i) sum += f(i);
  const double mean = sum / static_cast<double>(count);
  double squares = 0.0;
  for (std::int64_t i = 0; i < count; ++i) squares += (f(i) - mean) * (f(i) - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(count));
  return {mean, deviation > 0.0 ? deviation : 1.0};
}

template <class... Parts>
[[noreturn]] void refuse_windows(const Parts&... parts) {
  throw ArgumentError(message("SeriesWindows", parts...));
}

std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed, std::int64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  RandomStream random(seed, static_cast<std::uint64_t>(epoch));
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(i))]);
  }
  return order;
}

}  // namespace

SeriesWindows::SeriesWindows(const SeriesTable& table, const SeriesOptions& options,
                             const std::optional<SeriesScaling>& scaling)
    : options_(options), names_(table.names), values_(table.values) {
  if (options.window < 1 || options.horizon < 1 || options.batch < 1) {
    refuse_windows("window ", options.window, ", horizon ", options.horizon, " and batch ",
                   options.batch, ", expected at least 1 of each");
  }
  if (!(options.valid_fraction > 0.0 && options.valid_fraction < 1.0)) {
    refuse_windows("valid_fraction ", options.valid_fraction,
                   ", expected more than 0 and less than 1");
  }
  rows_ = values_.shape()[0];
  columns_ = values_.shape()[1];
  const std::int64_t needed = options.window + options.horizon;
  if (rows_ < needed) {
    refuse_windows(rows_, " rows, expected at least ", needed, " for windows of ", options.window,
                   " and a horizon of ", options.horizon);
  }
  if (scaling) {
    use(*scaling);
    return;
  }
  valid_count_ = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(static_cast<double>(rows_) * options.valid_fraction));
  train_rows_ = rows_ - valid_count_;
  train_count_ = train_rows_ - needed + 1;
  if (train_count_ < 1) {
    refuse_windows(rows_, " rows, of which ", train_rows_, " train, expected at least ", needed,
                   " of those for windows of ", options.window, " and a horizon of ",
                   options.horizon);
  }
  normalise();
}

void SeriesWindows::use(const SeriesScaling& scaling) {
  const auto columns = static_cast<std::size_t>(columns_);
  if (scaling.values.mean.size() != columns) {
    refuse_windows(columns, " columns, expected ", scaling.values.mean.size(), " as the model has");
  }
  for (const Normalisation& each : {scaling.values, scaling.changes}) {
    if (each.mean.size() != columns || each.deviation.size() != columns) {
      refuse_windows("a scaling of ", each.mean.size(), " means and ", each.deviation.size(),
                     " deviations, expected ", columns, " of each");
    }
    for (std::size_t c = 0; c < columns; ++c) require_scale(c, each.mean[c], each.deviation[c]);
  }
  scaling_ = scaling;
  train_rows_ = options_.window + options_.horizon - 1;
  valid_count_ = rows_ - train_rows_;
}

void SeriesWindows::require_scale(std::size_t column, double mean, double deviation) const {
  if (std::isfinite(mean) && std::isfinite(deviation) && deviation > 0.0) return;
  refuse_windows("column '",
                 column < names_.size() ? excerpt(names_[column]) : std::to_string(column + 1),
                 "' with a mean of ", mean, " and a deviation of ", deviation,
                 ", expected values whose squares do not overflow");
}

double SeriesWindows::value(std::int64_t row, std::int64_t column) const {
  return values_.as<double>()[static_cast<std::size_t>(row * columns_ + column)];
}

void SeriesWindows::normalise() {
  const std::int64_t horizon = options_.horizon;
  for (std::int64_t c = 0; c < columns_; ++c) {
    const auto [mean, deviation] =
        moments(train_rows_, [&](std::int64_t row) { return value(row, c); });
    require_scale(static_cast<std::size_t>(c), mean, deviation);
    scaling_.values.mean.push_back(mean);
    scaling_.values.deviation.push_back(deviation);
    const auto change = moments(train_rows_ - horizon, [&](std::int64_t row) {
      return value(row + horizon, c) - value(row, c);
    });
    require_scale(static_cast<std::size_t>(c), change.first, change.second);
    scaling_.changes.mean.push_back(change.first);
    scaling_.changes.deviation.push_back(change.second);
  }
}

std::int64_t SeriesWindows::windows() const noexcept {
  return (train_count_ + options_.batch - 1) / options_.batch;
}

Array SeriesWindows::gather_inputs(const std::vector<std::int64_t>& first_rows) const {
  const auto batch = static_cast<std::int64_t>(first_rows.size());
  Array x(DType::kFloat64, {options_.window, batch, columns_});
  auto out = x.as<double>();
  std::size_t at = 0;
  for (std::int64_t t = 0; t < options_.window; ++t) {
    for (const std::int64_t first : first_rows) {
      for (std::int64_t c = 0; c < columns_; ++c) {
        const auto k = static_cast<std::size_t>(c);
        out[at++] = (value(first + t, c) - scaling_.values.mean[k]) / scaling_.values.deviation[k];
      }
    }
  }
  return x;
}

Array SeriesWindows::gather_changes(const std::vector<std::int64_t>& first_rows) const {
  const auto batch = static_cast<std::int64_t>(first_rows.size());
  const std::int64_t begin = options_.to_sequence ? 0 : options_.window - 1;
  Shape shape{batch, columns_};
  if (options_.to_sequence) shape.insert(shape.begin(), options_.window);
  Array y(DType::kFloat64, shape);
  auto out = y.as<double>();
  std::size_t at = 0;
  for (std::int64_t t = begin; t < options_.window; ++t) {
    for (const std::int64_t first : first_rows) {
      for (std::int64_t c = 0; c < columns_; ++c) {
        const auto k = static_cast<std::size_t>(c);
        const double change = value(first + t + options_.horizon, c) - value(first + t, c);
        out[at++] = (change - scaling_.changes.mean[k]) / scaling_.changes.deviation[k];
      }
    }
  }
  return y;
}

std::int64_t SeriesWindows::rows(const DataPosition& position) const {
  if (position.window < 0 || position.window >= windows()) {
    throw ArgumentError(message("SeriesWindows::window", "window ", position.window,
                                ", expected 0 to ", windows() - 1));
  }
  return std::min(options_.batch, train_count_ - position.window * options_.batch);
}

Window SeriesWindows::window(const DataPosition& position) const {
  const std::int64_t count = rows(position);
  const std::vector<std::int64_t> order = shuffled(train_count_, options_.seed, position.epoch);
  const std::int64_t begin = position.window * options_.batch;
  const std::vector<std::int64_t> first_rows(order.begin() + begin, order.begin() + begin + count);
  return {gather_inputs(first_rows), gather_changes(first_rows), true};
}

Array SeriesWindows::valid_inputs(std::int64_t begin, std::int64_t count) const {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = begin; i < begin + count; ++i) rows.push_back(train_count_ + i);
  return gather_inputs(rows);
}

double SeriesWindows::valid_last(std::int64_t index, std::int64_t column) const {
  return value(train_rows_ + index - options_.horizon, column);
}

double SeriesWindows::valid_truth(std::int64_t index, std::int64_t column) const {
  return value(train_rows_ + index, column);
}

double SeriesWindows::valid_seasonal(std::int64_t index, std::int64_t column,
                                     std::int64_t season) const {
  return value(train_rows_ + index - season, column);
}

std::int64_t SeriesWindows::best_season() const {
  if (train_count_ == 0) return 0;
  std::int64_t best = 0;
  double least = 0.0;
  // A season must occur twice in the training rows to be more than chance, and be long enough that
  // its last value is known when the forecast is made.
  const std::int64_t longest = std::min(options_.window, train_rows_ / 3);
  for (std::int64_t season = std::max<std::int64_t>(2, options_.horizon); season <= longest;
       ++season) {
    double error = 0.0;
    for (std::int64_t c = 0; c < columns_; ++c) {
      const double unit = scaling_.values.deviation[static_cast<std::size_t>(c)];
      for (std::int64_t row = longest; row < train_rows_; ++row) {
        const double miss = (value(row, c) - value(row - season, c)) / unit;
        error += miss * miss;
      }
    }
    if (best == 0 || error < least) {
      best = season;
      least = error;
    }
  }
  return best;
}

}  // namespace openrnn::train
