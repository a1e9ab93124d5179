// Line charts as SVG.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace openrnn::cli {

struct Curve {
  std::string name;
  std::string colour;  // as SVG takes it
  double width = 1.5;
  std::vector<std::pair<double, double>> points;  // x ascending
};

struct Chart {
  std::string title, x_label, y_label;
  std::vector<Curve> curves;
  /// Upper end of the y axis; values above are clipped. Unset: everything is shown.
  std::optional<double> y_most = {};
};

/// Values where ticks stand: at most `most`, multiples of 1, 2 or 5 times a power of ten, inside
/// [low, high].
std::vector<double> nice_ticks(double low, double high, int most);

/// The chart as an SVG file. A curve without points is left out; NaN and infinite points too.
std::string to_svg(const Chart& chart);

}  // namespace openrnn::cli
