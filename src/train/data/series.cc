// Windows over a table of numbers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/excerpt.h"
#include "openrnn/train_data.h"
#include "train/data/memory_rows.h"
#include "train/data/row_sums.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

template <class... Parts>
[[noreturn]] void refuse_windows(const Parts&... parts) {
  throw ArgumentError(message("SeriesWindows", parts...));
}

template <class T>
std::vector<T> shuffled(std::int64_t count, std::uint64_t seed, std::int64_t epoch) {
  std::vector<T> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), T{0});
  RandomStream random(seed, static_cast<std::uint64_t>(epoch));
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(i))]);
  }
  return order;
}

}  // namespace

SeriesWindows::SeriesWindows(const SeriesTable& table, const SeriesOptions& options,
                             const std::optional<SeriesScaling>& scaling)
    : SeriesWindows(
          SeriesFile{table.names, table.ignored, std::make_shared<MemoryRows>(table.values), {}},
          options, scaling) {}

SeriesWindows::SeriesWindows(const SeriesFile& file, const SeriesOptions& options,
                             const std::optional<SeriesScaling>& scaling, ScalingOf scaling_of)
    : options_(options), names_(file.names), data_(file.rows) {
  if (options.window < 1 || options.horizon < 1 || options.batch < 1) {
    refuse_windows("window ", options.window, ", horizon ", options.horizon, " and batch ",
                   options.batch, ", expected at least 1 of each");
  }
  if (!(options.valid_fraction > 0.0 && options.valid_fraction < 1.0)) {
    refuse_windows("valid_fraction ", options.valid_fraction,
                   ", expected more than 0 and less than 1");
  }
  rows_ = data_->rows();
  columns_ = data_->columns();
  row_.resize(static_cast<std::size_t>(columns_));
  const std::int64_t needed = options.window + options.horizon;
  if (rows_ < needed) {
    refuse_windows(rows_, " rows, expected at least ", needed, " for windows of ", options.window,
                   " and a horizon of ", options.horizon);
  }
  if (scaling) {
    require_scaling(*scaling);
    scaling_ = *scaling;
  }
  if (scaling && scaling_of == ScalingOf::kModel) {
    train_rows_ = needed - 1;
    valid_count_ = rows_ - train_rows_;
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
  if (!scaling) normalise();
}

void SeriesWindows::require_scaling(const SeriesScaling& scaling) const {
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
}

void SeriesWindows::require_scale(std::size_t column, double mean, double deviation) const {
  if (std::isfinite(mean) && std::isfinite(deviation) && deviation > 0.0) return;
  refuse_windows("column '",
                 column < names_.size() ? excerpt(names_[column]) : std::to_string(column + 1),
                 "' with a mean of ", mean, " and a deviation of ", deviation,
                 ", expected values whose squares do not overflow");
}

double SeriesWindows::value(std::int64_t row, std::int64_t column) const {
  data_->read(row, 1, row_.data());
  return row_[static_cast<std::size_t>(column)];
}

void SeriesWindows::normalise() {
  const std::int64_t horizon = options_.horizon;
  const auto columns = static_cast<std::size_t>(columns_);
  Moments values(columns_), changes(columns_);
  // Two passes over the rows serve all columns.
  const auto pass = [&](void (Moments::*add)(std::size_t, double)) {
    each_row(*data_, 0, horizon, 0, [&](const double* row) {
      for (std::size_t c = 0; c < columns; ++c) (values.*add)(c, row[c]);
    });
    each_row(*data_, horizon, train_rows_, horizon, [&](const double* row) {
      const double* const before = row - horizon * columns_;
      for (std::size_t c = 0; c < columns; ++c) {
        (values.*add)(c, row[c]);
        (changes.*add)(c, row[c] - before[c]);
      }
    });
  };
  pass(&Moments::add);
  values.end_sums(train_rows_);
  changes.end_sums(train_rows_ - horizon);
  pass(&Moments::add_square);
  values.end_squares(train_rows_);
  changes.end_squares(train_rows_ - horizon);
  for (std::size_t c = 0; c < columns; ++c) {
    require_scale(c, values.mean[c], values.deviation[c]);
    require_scale(c, changes.mean[c], changes.deviation[c]);
  }
  scaling_ = {{values.mean, values.deviation}, {changes.mean, changes.deviation}};
}

std::int64_t SeriesWindows::windows() const noexcept {
  return (train_count_ + options_.batch - 1) / options_.batch;
}

// Each window's rows are read once.
void SeriesWindows::gather(const std::vector<std::int64_t>& first_rows, Array& x, Array* y) const {
  const auto batch = static_cast<std::int64_t>(first_rows.size());
  const std::int64_t window = options_.window, begin = options_.to_sequence ? 0 : window - 1;
  x = Array(DType::kFloat64, {window, batch, columns_});
  if (y) {
    Shape shape{batch, columns_};
    if (options_.to_sequence) shape.insert(shape.begin(), window);
    *y = Array(DType::kFloat64, shape);
  }
  const std::int64_t rows = window + (y ? options_.horizon : 0);
  std::vector<double> values(static_cast<std::size_t>(rows * columns_));
  const auto at = [&](std::int64_t row, std::int64_t c) {
    return values[static_cast<std::size_t>(row * columns_ + c)];
  };
  for (std::int64_t b = 0; b < batch; ++b) {
    data_->read(first_rows[static_cast<std::size_t>(b)], rows, values.data());
    for (std::int64_t t = 0; t < window; ++t) {
      for (std::int64_t c = 0; c < columns_; ++c) {
        const auto k = static_cast<std::size_t>(c);
        x.as<double>()[static_cast<std::size_t>((t * batch + b) * columns_ + c)] =
            (at(t, c) - scaling_.values.mean[k]) / scaling_.values.deviation[k];
        if (!y || t < begin) continue;
        const double change = at(t + options_.horizon, c) - at(t, c);
        y->as<double>()[static_cast<std::size_t>(((t - begin) * batch + b) * columns_ + c)] =
            (change - scaling_.changes.mean[k]) / scaling_.changes.deviation[k];
      }
    }
  }
}

std::int64_t SeriesWindows::rows(const DataPosition& position) const {
  if (position.window < 0 || position.window >= windows()) {
    throw ArgumentError(message("SeriesWindows::window", "window ", position.window,
                                ", expected 0 to ", windows() - 1));
  }
  return std::min(options_.batch, train_count_ - position.window * options_.batch);
}

/// The first row of the window at that place of an epoch's order.
std::int64_t SeriesWindows::row_of(std::int64_t epoch, std::int64_t place) const {
  const bool small = train_count_ <= std::int64_t{std::numeric_limits<std::uint32_t>::max()};
  if (epoch != epoch_) {
    order_ = {};
    large_order_ = {};
    if (small) {
      order_ = shuffled<std::uint32_t>(train_count_, options_.seed, epoch);
    } else {
      large_order_ = shuffled<std::int64_t>(train_count_, options_.seed, epoch);
    }
    epoch_ = epoch;
  }
  const auto at = static_cast<std::size_t>(place);
  return small ? order_[at] : large_order_[at];
}

Window SeriesWindows::window(const DataPosition& position) const {
  const std::int64_t count = rows(position), begin = position.window * options_.batch;
  std::vector<std::int64_t> first_rows;
  for (std::int64_t i = begin; i < begin + count; ++i) {
    first_rows.push_back(row_of(position.epoch, i));
  }
  Window window{{}, {}, true};
  gather(first_rows, window.x, &window.y);
  return window;
}

Array SeriesWindows::valid_inputs(std::int64_t begin, std::int64_t count) const {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = begin; i < begin + count; ++i) rows.push_back(train_count_ + i);
  Array inputs;
  gather(rows, inputs, nullptr);
  return inputs;
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
  if (!season_) season_ = find_season();
  return *season_;
}

std::int64_t SeriesWindows::find_season() const {
  // A season must occur twice in the training rows to be more than chance, and be long enough that
  // its last value is known when the forecast is made.
  const std::int64_t longest = train_count_ == 0 ? 0 : std::min(options_.window, train_rows_ / 3);
  const std::int64_t shortest = std::max<std::int64_t>(2, options_.horizon);
  if (longest < shortest) return 0;
  const auto columns = static_cast<std::size_t>(columns_);
  // By season and column, in one pass over the rows.
  std::vector<double> errors(static_cast<std::size_t>(longest - shortest + 1) * columns);
  each_row(*data_, longest, train_rows_, longest, [&](const double* row) {
    double* error = errors.data();
    for (std::int64_t season = shortest; season <= longest; ++season) {
      for (std::size_t c = 0; c < columns; ++c) {
        const double before = (row - season * columns_)[c];
        const double miss = (row[c] - before) / scaling_.values.deviation[c];
        *error++ += miss * miss;
      }
    }
  });
  std::int64_t best = 0;
  double least = 0.0;
  for (std::int64_t season = shortest; season <= longest; ++season) {
    const double* const own = errors.data() + (season - shortest) * columns_;
    const double error = std::accumulate(own, own + columns, 0.0);
    if (best == 0 || error < least) {
      best = season;
      least = error;
    }
  }
  return best;
}

}  // namespace openrnn::train
