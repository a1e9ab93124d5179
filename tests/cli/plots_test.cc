// Charts of characters, and as SVG.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "cli/report/plot.h"
#include "cli/report/text_plot.h"

namespace openrnn::cli {
namespace {

TEST(TextPlot, PutsEachValueInItsCell) {
  const std::vector<TextCurve> curves = {{.mark = '.', .first = -2, .values = {1, 2, 3}},
                                         {.mark = '*', .first = 1, .values = {4, 0}}};
  EXPECT_EQ(text_plot(curves, 0, 20, 5),
            "        4 |    | *\n"
            "          |    .\n"
            "          |  . |\n"
            "          |.   |\n"
            "        0 |    |   *\n");
  // The ends of what is drawn belong to it; beyond them there is no divider.
  EXPECT_EQ(text_plot(curves, -2, 20, 2),
            "        4 ||   . *\n"
            "        0 |. .     *\n");
  const std::string right = text_plot(curves, 2, 20, 5);
  EXPECT_EQ(std::count(right.begin(), right.end(), '|'), 5 + 4);
  for (const std::int64_t outside : {-3, 3}) {
    const std::string plot = text_plot(curves, outside, 20, 5);
    EXPECT_EQ(std::count(plot.begin(), plot.end(), '|'), 5);
  }
}

TEST(TextPlot, TakesWhatHasNoExtent) {
  EXPECT_EQ(text_plot({{.first = 7, .values = {2.5}}}, 0, 20, 3),
            "      2.5 |\n"
            "          |*\n"
            "      2.5 |\n");
  EXPECT_EQ(text_plot({{.values = {1, 2}}}, 9, 0, 1),
            "        2 | *\n"
            "        1 |*\n");
  // Labels that need more columns have them.
  EXPECT_EQ(text_plot({{.values = {-123456789.0, 0.5}}}, 9, 15, 2),
            "       0.5 |  *\n"
            "-1.235e+08 |*\n");
}

TEST(Ticks, AreRoundAndAtMostSoMany) {
  using Ticks = std::vector<double>;
  EXPECT_EQ(nice_ticks(0, 10, 8), (Ticks{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(nice_ticks(0, 70, 8), (Ticks{0, 10, 20, 30, 40, 50, 60, 70}));
  EXPECT_EQ(nice_ticks(0, 79, 8).size(), 8U);
  EXPECT_EQ(nice_ticks(0, 80, 8), (Ticks{0, 20, 40, 60, 80}));
  EXPECT_EQ(nice_ticks(-3, 4, 8), (Ticks{-3, -2, -1, 0, 1, 2, 3, 4}));
  EXPECT_EQ(nice_ticks(1, 39, 8), (Ticks{5, 10, 15, 20, 25, 30, 35}));
  EXPECT_EQ(nice_ticks(0, 1, 1), Ticks{0});
  EXPECT_TRUE(nice_ticks(3, 3, 8).empty());
  EXPECT_TRUE(nice_ticks(3, 2, 8).empty());
  EXPECT_TRUE(nice_ticks(0, 1, 0).empty());
}

std::vector<std::string> points_of(const std::string& svg, std::size_t curve) {
  std::size_t at = 0;
  for (std::size_t i = 0; i <= curve; ++i) at = svg.find("points='", at) + 8;
  std::istringstream words(svg.substr(at, svg.find('\'', at) - at));
  std::vector<std::string> points;
  for (std::string word; words >> word;) points.push_back(word);
  return points;
}

std::size_t count_of(const std::string& svg, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = svg.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

// The frame is 766 by 376 at (70, 48), with a twentieth of air above and below.
TEST(Svg, PutsPointsWhereTheyBelong) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                   kInfinity = std::numeric_limits<double>::infinity();
  Chart chart{.title = "a < b & c > d", .x_label = "step", .y_label = "loss", .curves = {}};
  chart.curves.push_back({"one", "#123456", 1.5, {{0, 0}, {5, 5}, {kNan, 1}, {10, 10}}});
  chart.curves.push_back({"none", "#654321", 1.5, {}});
  chart.curves.push_back({"two", "#abcdef", 2.5, {{0, kInfinity}, {10, 2}}});
  const std::string svg = to_svg(chart);
  using Points = std::vector<std::string>;
  EXPECT_EQ(points_of(svg, 0), (Points{"70.0,406.9", "453.0,236.0", "836.0,65.1"}));
  EXPECT_EQ(points_of(svg, 1), Points{"836.0,338.5"});
  EXPECT_EQ(count_of(svg, "<polyline"), 2U);
  EXPECT_EQ(count_of(svg, ">none<"), 0U);
  EXPECT_NE(svg.find(">a &lt; b &amp; c &gt; d<"), std::string::npos);
  EXPECT_NE(svg.find("stroke='#abcdef' stroke-width='2.5'"), std::string::npos);
  // The legend has a line a curve, 20 apart.
  EXPECT_NE(svg.find("y1='68.0' x2='658.0' y2='68.0' stroke='#123456'"), std::string::npos);
  EXPECT_NE(svg.find("y1='88.0' x2='658.0' y2='88.0' stroke='#abcdef'"), std::string::npos);
  // Ticks of x: 0, 2, .. 10, those of y are as many.
  EXPECT_EQ(count_of(svg, "text-anchor='end'"), 6U);
  EXPECT_NE(svg.find("<text x='223.2' y='442.0' text-anchor='middle'>2</text>"), std::string::npos);
  EXPECT_NE(svg.find("<text x='62.0' y='274.2' text-anchor='end'>4</text>"), std::string::npos);
  chart.y_most = 5.0;
  EXPECT_EQ(points_of(to_svg(chart), 0), (Points{"70.0,406.9", "453.0,65.1", "836.0,-276.7"}));
}

TEST(Svg, DrawsNoMorePointsThanThereArePixels) {
  Chart chart;
  chart.curves.push_back({"long", "#123456", 1.5, {}});
  for (int i = 0; i < 5000; ++i) chart.curves[0].points.emplace_back(i, i);
  const std::vector<std::string> points = points_of(to_svg(chart), 0);
  // Every third one, and the last.
  EXPECT_EQ(points.size(), 1668U);
  EXPECT_EQ(points.back().substr(0, 6), "836.0,");
  chart.curves[0].points.resize(1999);
  EXPECT_EQ(points_of(to_svg(chart), 0).size(), 1999U);
}

TEST(Svg, TakesAFlatCurve) {
  Chart chart;
  chart.curves.push_back({"flat", "#123456", 1.5, {{0, 3}, {4, 3}}});
  // As high as the value itself, with a twentieth of that on both sides.
  EXPECT_EQ(points_of(to_svg(chart), 0), (std::vector<std::string>{"70.0,236.0", "836.0,236.0"}));
  chart.curves[0].points = {{2, 0}};
  EXPECT_EQ(points_of(to_svg(chart), 0).size(), 1U);
}

}  // namespace
}  // namespace openrnn::cli
