// Passes over all rows of a table, and sums of its columns.
#pragma once

#include <algorithm>
#include <cmath>

#include "openrnn/train_data.h"

namespace openrnn::train {

// Rows that are read at once where all are read in turn.
inline constexpr std::int64_t kRowsAtOnce = 1024;

/// Calls `use(values)` for the rows [first, last) in turn; values[-n * columns] is in the row n
/// rows before it, up to `before`.
template <class Use>
void each_row(const SeriesRows& data, std::int64_t first, std::int64_t last, std::int64_t before,
              Use&& use) {
  const std::int64_t at_once = std::max(kRowsAtOnce, before);
  std::vector<double> values;
  for (std::int64_t begin = first; begin < last; begin += at_once) {
    const std::int64_t count = std::min(at_once, last - begin);
    values.resize(static_cast<std::size_t>((before + count) * data.columns()));
    data.read(begin - before, before + count, values.data());
    for (std::int64_t i = 0; i < count; ++i) {
      use(values.data() + (before + i) * data.columns());
    }
  }
}

/// Of each column: the mean and deviation of the values that are added, in two rounds. A constant
/// has deviation 1, so that dividing by it gives 0 and not NaN.
struct Moments {
  explicit Moments(std::int64_t columns)
      : sum(static_cast<std::size_t>(columns)), mean(sum), squares(sum), deviation(sum) {}
  void add(std::size_t c, double value) { sum[c] += value; }
  void add_square(std::size_t c, double value) {
    squares[c] += (value - mean[c]) * (value - mean[c]);
  }
  void end_sums(std::int64_t count) {
    for (std::size_t c = 0; c < sum.size(); ++c) mean[c] = sum[c] / static_cast<double>(count);
  }
  void end_squares(std::int64_t count) {
    for (std::size_t c = 0; c < sum.size(); ++c) {
      const double found = std::sqrt(squares[c] / static_cast<double>(count));
      deviation[c] = found > 0.0 ? found : 1.0;
    }
  }
  std::vector<double> sum, mean, squares, deviation;
};

}  // namespace openrnn::train
