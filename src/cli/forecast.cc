// openrnn forecast: the rows that follow a series.
#include <fmt/core.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/report/text_plot.h"
#include "openrnn/train.h"

namespace openrnn::cli {
namespace {

constexpr std::size_t kLabel = 8, kCell = 14;

std::string cell(const std::string& text) {
  if (text.size() < kCell) return text;
  std::size_t end = kCell - 3;
  // Not inside a character of UTF-8.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "..";
}

/// Row 1 is the one after the last of the file. As many columns of the series side by side as fit.
void print_table(const std::vector<std::string>& names, const Array& forecasts, std::size_t width) {
  const auto values = forecasts.as<double>();
  const std::size_t columns = names.size(),
                    at_once = std::max<std::size_t>((width - kLabel) / kCell, 1);
  for (std::size_t begin = 0; begin < columns; begin += at_once) {
    const std::size_t end = std::min(begin + at_once, columns);
    if (begin > 0) fmt::print("\n");
    fmt::print("{:>{}}", "row", kLabel);
    for (std::size_t c = begin; c < end; ++c) fmt::print("{:>{}}", cell(names[c]), kCell);
    fmt::print("\n");
    for (std::size_t row = 0; row * columns < values.size(); ++row) {
      fmt::print("{:>{}}", fmt::format("+{}", row + 1), kLabel);
      for (std::size_t c = begin; c < end; ++c) {
        fmt::print("{:>{}.6g}", values[row * columns + c], kCell);
      }
      fmt::print("\n");
    }
  }
}

/// The last rows of the file and the forecast behind them, a plot for each column.
void print_plots(const train::SeriesTable& table, const Array& forecasts, int width) {
  constexpr int kHeight = 12;
  const std::int64_t rows = table.values.shape()[0], steps = forecasts.shape()[0],
                     columns = forecasts.shape()[1];
  const std::int64_t shown = std::min(rows, std::max<std::int64_t>(2 * steps, width / 2));
  for (std::int64_t c = 0; c < columns; ++c) {
    TextCurve past{.mark = '.', .first = -shown + 1}, next{.mark = '*', .first = 1};
    for (std::int64_t r = rows - shown; r < rows; ++r) {
      past.values.push_back(element(table.values.view(), r * columns + c));
    }
    for (std::int64_t k = 0; k < steps; ++k) {
      next.values.push_back(element(forecasts.view(), k * columns + c));
    }
    fmt::print("\n{}: the last {} rows (.) and the forecast (*)\n",
               table.names[static_cast<std::size_t>(c)], shown);
    fmt::print("{}", text_plot({past, next}, 0, width, kHeight));
  }
}

}  // namespace

int run(const ForecastFlags& flags) {
  use_threads(flags.threads);
  use_device(flags.device);
  require_file("--input", flags.input);
  train::TrainedModel trained(flags.run, choice_of(flags.arithmetic));
  const train::RunConfig& config = trained.config();
  if (config.task != "series") {
    throw ArgumentError("[forecast] a run of the task '" + config.task + "', expected series");
  }
  const train::SeriesTable table = train::load_series(flags.input, config.columns);
  const train::SeriesOptions options = train::series_options(config);
  const Array forecasts =
      train::forecast_series(trained.model(), table, options, train::load_scaling(trained.extras()),
                             flags.horizon.value_or(options.horizon));
  const int width = terminal_width();
  print_table(config.columns, forecasts, static_cast<std::size_t>(width));
  if (flags.plot) print_plots(table, forecasts, width);
  fmt::print("checkpoint {}\n", trained.prefix());
  return 0;
}

}  // namespace openrnn::cli
