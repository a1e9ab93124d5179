#include "cli/report/text_plot.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace openrnn::cli {
namespace {

// Columns of a value, unless it needs more; of a space and the axis behind it.
constexpr std::size_t kLabel = 9, kAxis = 2;

struct Bounds {
  std::int64_t first = 0, last = 0;
  double low = 0.0, high = 0.0;
};

Bounds bounds_of(const std::vector<TextCurve>& curves) {
  Bounds bounds;
  bool any = false;
  for (const TextCurve& curve : curves) {
    for (std::size_t i = 0; i < curve.values.size(); ++i) {
      const std::int64_t x = curve.first + static_cast<std::int64_t>(i);
      const double y = curve.values[i];
      bounds.first = any ? std::min(bounds.first, x) : x;
      bounds.last = any ? std::max(bounds.last, x) : x;
      bounds.low = any ? std::min(bounds.low, y) : y;
      bounds.high = any ? std::max(bounds.high, y) : y;
      any = true;
    }
  }
  return bounds;
}

std::size_t place(double part, std::size_t cells) {
  return static_cast<std::size_t>(std::lround(part * static_cast<double>(cells - 1)));
}

}  // namespace

int terminal_width() {
  constexpr int kDefault = 80;
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return kDefault;
  return size.ws_col >= 2 * (kLabel + kAxis) ? size.ws_col : kDefault;
}

std::string text_plot(const std::vector<TextCurve>& curves, std::int64_t divider, int width,
                      int height) {
  const Bounds bounds = bounds_of(curves);
  const auto lines = static_cast<std::size_t>(std::max(height, 2));
  std::vector<std::string> labels(lines);
  labels.front() = fmt::format("{:.4g}", bounds.high);
  labels.back() = fmt::format("{:.4g}", bounds.low);
  const std::size_t side = std::max({kLabel, labels.front().size(), labels.back().size()});
  const std::size_t columns =
      std::max(static_cast<std::size_t>(width), side + kAxis + 2) - side - kAxis;
  std::vector<std::string> grid(lines, std::string(columns, ' '));
  const auto column_of = [&](std::int64_t x) {
    const auto span = static_cast<double>(std::max<std::int64_t>(bounds.last - bounds.first, 1));
    return place(static_cast<double>(x - bounds.first) / span, columns);
  };
  if (divider >= bounds.first && divider <= bounds.last) {
    for (std::string& line : grid) line[column_of(divider)] = '|';
  }
  for (const TextCurve& curve : curves) {
    for (std::size_t i = 0; i < curve.values.size(); ++i) {
      const double span = bounds.high - bounds.low;
      const double part = span > 0.0 ? (bounds.high - curve.values[i]) / span : 0.5;
      grid[place(part, lines)][column_of(curve.first + static_cast<std::int64_t>(i))] = curve.mark;
    }
  }
  std::string text;
  for (std::size_t i = 0; i < lines; ++i) {
    std::string line = fmt::format("{:>{}} |{}", labels[i], side, grid[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace openrnn::cli
