#include "cli/report/series_report.h"

#include <fmt/core.h>

namespace openrnn::cli {

void print_series_score(const train::SeriesScore& score, const std::vector<std::string>& columns) {
  fmt::print("rmse_normalised {:.4f}\n", score.model_total);
  fmt::print("{:<24}  {:>12}  {:>18}", "column (rmse)", "model", "naive: last value");
  const std::string seasonal = fmt::format("naive: {} rows ago", score.season);
  fmt::print("{}\n", score.season > 0 ? fmt::format("  {:>20}", seasonal) : "");
  const auto row = [&](const std::string& name, double model, double last, double season) {
    fmt::print("{:<24}  {:>12.5g}  {:>18.5g}", name, model, last);
    fmt::print("{}\n", score.season > 0 ? fmt::format("  {:>20.5g}", season) : "");
  };
  for (std::size_t c = 0; c < columns.size(); ++c) {
    row(columns[c], score.model[c], score.last_value[c],
        score.season > 0 ? score.seasonal[c] : 0.0);
  }
  row("all, normalised", score.model_total, score.last_value_total, score.seasonal_total);
  const double naive = score.naive_total();
  if (naive > 0.0) {
    fmt::print("model / better naive forecast: {:.3f} ({})\n", score.model_total / naive,
               score.model_total < naive ? "the model is better" : "the naive forecast is better");
  }
}

}  // namespace openrnn::cli
