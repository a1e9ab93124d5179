#include "cli/report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace openrnn::cli {
namespace {

constexpr double kWidth = 860, kHeight = 480;
constexpr double kLeft = 70, kRight = 24, kTop = 48, kBottom = 56;
constexpr std::size_t kMostPoints = 2000;  // more than the pixels

struct Range {
  double low = 0.0, high = 1.0;
  double place(double value) const { return (value - low) / (high - low); }
};

struct Frame {
  Range x, y;
  double px(double value) const { return kLeft + x.place(value) * (kWidth - kLeft - kRight); }
  double py(double value) const {
    return kHeight - kBottom - y.place(value) * (kHeight - kTop - kBottom);
  }
};

bool usable(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

/// A margin so that no curve lies on the frame; never an empty range.
Range padded(std::vector<double> values, double air) {
  if (values.empty()) return {};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double span = *high > *low ? *high - *low : std::max(1.0, std::fabs(*high));
  return {*low - air * span, *high + air * span};
}

Frame frame_of(const Chart& chart) {
  std::vector<double> xs, ys;
  for (const Curve& curve : chart.curves) {
    for (const auto& point : curve.points) {
      if (!usable(point)) continue;
      xs.push_back(point.first);
      ys.push_back(std::min(point.second, chart.y_most.value_or(point.second)));
    }
  }
  return {padded(xs, 0.0), padded(ys, 0.05)};
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    safe += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  }
  return safe;
}

using Out = std::back_insert_iterator<std::string>;

void draw_axes(const Frame& frame, Out out) {
  const double right = kWidth - kRight, bottom = kHeight - kBottom;
  for (const double x : nice_ticks(frame.x.low, frame.x.high, 8)) {
    fmt::format_to(out,
                   "<line x1='{0:.1f}' y1='{1:.1f}' x2='{0:.1f}' y2='{2:.1f}' stroke='#ddd'/>\n"
                   "<text x='{0:.1f}' y='{3:.1f}' text-anchor='middle'>{4:g}</text>\n",
                   frame.px(x), kTop, bottom, bottom + 18, x);
  }
  for (const double y : nice_ticks(frame.y.low, frame.y.high, 8)) {
    fmt::format_to(out,
                   "<line x1='{0:.1f}' y1='{1:.1f}' x2='{2:.1f}' y2='{1:.1f}' stroke='#ddd'/>\n"
                   "<text x='{3:.1f}' y='{4:.1f}' text-anchor='end'>{5:g}</text>\n",
                   kLeft, frame.py(y), right, kLeft - 8, frame.py(y) + 4, y);
  }
  fmt::format_to(out,
                 "<rect x='{0:.1f}' y='{1:.1f}' width='{2:.1f}' height='{3:.1f}' fill='none' "
                 "stroke='#444'/>\n<clipPath id='frame'><rect x='{0:.1f}' y='{1:.1f}' "
                 "width='{2:.1f}' height='{3:.1f}'/></clipPath>\n",
                 kLeft, kTop, right - kLeft, bottom - kTop);
}

void draw_curve(const Frame& frame, const Curve& curve, Out out) {
  fmt::format_to(out,
                 "<polyline clip-path='url(#frame)' fill='none' stroke='{}' stroke-width='{}' "
                 "stroke-linejoin='round' points='",
                 escaped(curve.colour), curve.width);
  const std::size_t stride = curve.points.size() / kMostPoints + 1;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const bool last = i + 1 == curve.points.size();
    if ((i % stride != 0 && !last) || !usable(curve.points[i])) continue;
    fmt::format_to(out, "{:.1f},{:.1f} ", frame.px(curve.points[i].first),
                   frame.py(curve.points[i].second));
  }
  fmt::format_to(out, "'/>\n");
}

void draw_legend(const Chart& chart, Out out) {
  double y = kTop + 20;
  for (const Curve& curve : chart.curves) {
    if (curve.points.empty()) continue;
    fmt::format_to(out,
                   "<line x1='{0:.1f}' y1='{1:.1f}' x2='{2:.1f}' y2='{1:.1f}' stroke='{3}' "
                   "stroke-width='3'/>\n<text x='{4:.1f}' y='{5:.1f}'>{6}</text>\n",
                   kWidth - 230, y, kWidth - 202, escaped(curve.colour), kWidth - 194, y + 4,
                   escaped(curve.name));
    y += 20;
  }
}

}  // namespace

std::vector<double> nice_ticks(double low, double high, int most) {
  std::vector<double> ticks;
  if (!(high > low) || most < 1) return ticks;
  double unit = std::pow(10.0, std::floor(std::log10((high - low) / most)));
  constexpr double kFactors[] = {1, 2, 5, 10, 20};
  double step = unit;
  for (const double factor : kFactors) {
    step = unit * factor;
    if (std::floor(high / step) - std::ceil(low / step) + 1 <= most) break;
  }
  // Adding zero makes zero of what ceil rounded to minus zero, which would be labelled "-0".
  for (double k = std::ceil(low / step) + 0.0; k * step <= high; ++k) ticks.push_back(k * step);
  return ticks;
}

std::string to_svg(const Chart& chart) {
  std::string svg;
  const Out out = std::back_inserter(svg);
  const Frame frame = frame_of(chart);
  fmt::format_to(out,
                 "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' "
                 "viewBox='0 0 {0} {1}' font-family='sans-serif' font-size='13'>\n"
                 "<rect width='{0}' height='{1}' fill='white'/>\n",
                 kWidth, kHeight);
  fmt::format_to(out,
                 "<text x='{:.1f}' y='28' text-anchor='middle' font-size='17'>{}</text>\n"
                 "<text x='{:.1f}' y='{:.1f}' text-anchor='middle'>{}</text>\n",
                 kWidth / 2, escaped(chart.title), (kLeft + kWidth - kRight) / 2, kHeight - 14,
                 escaped(chart.x_label));
  fmt::format_to(
      out, "<text transform='translate(18 {:.1f}) rotate(-90)' text-anchor='middle'>{}</text>\n",
      (kTop + kHeight - kBottom) / 2, escaped(chart.y_label));
  draw_axes(frame, out);
  for (const Curve& curve : chart.curves) {
    if (!curve.points.empty()) draw_curve(frame, curve, out);
  }
  draw_legend(chart, out);
  svg += "</svg>\n";
  return svg;
}

}  // namespace openrnn::cli
