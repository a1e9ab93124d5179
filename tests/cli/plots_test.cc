// Charts of characters, and as SVG.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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
  EXPECT_FALSE(std::signbit(nice_ticks(-0.05, 1.05, 8).front())) << "labelled -0";
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

// Word for word: a viewer takes what is there, and what is missing nobody else would see.
TEST(Svg, IsThisText) {
  Chart chart{.title = "T", .x_label = "step", .y_label = "loss", .curves = {}};
  chart.curves.push_back({"one", "#123456", 2.5, {{0, 1}, {2, 2}}});
  EXPECT_EQ(
      to_svg(chart),
      R"svg(<svg xmlns='http://www.w3.org/2000/svg' width='860' height='480' viewBox='0 0 860 480' font-family='sans-serif' font-size='13'>
<rect width='860' height='480' fill='white'/>
<text x='430.0' y='28' text-anchor='middle' font-size='17'>T</text>
<text x='453.0' y='466.0' text-anchor='middle'>step</text>
<text transform='translate(18 236.0) rotate(-90)' text-anchor='middle'>loss</text>
<line x1='70.0' y1='48.0' x2='70.0' y2='424.0' stroke='#ddd'/>
<text x='70.0' y='442.0' text-anchor='middle'>0</text>
<line x1='261.5' y1='48.0' x2='261.5' y2='424.0' stroke='#ddd'/>
<text x='261.5' y='442.0' text-anchor='middle'>0.5</text>
<line x1='453.0' y1='48.0' x2='453.0' y2='424.0' stroke='#ddd'/>
<text x='453.0' y='442.0' text-anchor='middle'>1</text>
<line x1='644.5' y1='48.0' x2='644.5' y2='424.0' stroke='#ddd'/>
<text x='644.5' y='442.0' text-anchor='middle'>1.5</text>
<line x1='836.0' y1='48.0' x2='836.0' y2='424.0' stroke='#ddd'/>
<text x='836.0' y='442.0' text-anchor='middle'>2</text>
<line x1='70.0' y1='406.9' x2='836.0' y2='406.9' stroke='#ddd'/>
<text x='62.0' y='410.9' text-anchor='end'>1</text>
<line x1='70.0' y1='338.5' x2='836.0' y2='338.5' stroke='#ddd'/>
<text x='62.0' y='342.5' text-anchor='end'>1.2</text>
<line x1='70.0' y1='270.2' x2='836.0' y2='270.2' stroke='#ddd'/>
<text x='62.0' y='274.2' text-anchor='end'>1.4</text>
<line x1='70.0' y1='201.8' x2='836.0' y2='201.8' stroke='#ddd'/>
<text x='62.0' y='205.8' text-anchor='end'>1.6</text>
<line x1='70.0' y1='133.5' x2='836.0' y2='133.5' stroke='#ddd'/>
<text x='62.0' y='137.5' text-anchor='end'>1.8</text>
<line x1='70.0' y1='65.1' x2='836.0' y2='65.1' stroke='#ddd'/>
<text x='62.0' y='69.1' text-anchor='end'>2</text>
<rect x='70.0' y='48.0' width='766.0' height='376.0' fill='none' stroke='#444'/>
<clipPath id='frame'><rect x='70.0' y='48.0' width='766.0' height='376.0'/></clipPath>
<polyline clip-path='url(#frame)' fill='none' stroke='#123456' stroke-width='2.5' stroke-linejoin='round' points='70.0,406.9 836.0,65.1 '/>
<line x1='630.0' y1='68.0' x2='658.0' y2='68.0' stroke='#123456' stroke-width='3'/>
<text x='666.0' y='72.0'>one</text>
</svg>
)svg");
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
