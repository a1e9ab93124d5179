// The table of a forecaster's errors and those of naive forecasts.
#pragma once

#include "openrnn/train.h"

namespace openrnn::cli {

/// First line 'rmse_normalised N'; then one line a column, in the units of the file.
void print_series_score(const train::SeriesScore& score, const std::vector<std::string>& columns);

}  // namespace openrnn::cli
