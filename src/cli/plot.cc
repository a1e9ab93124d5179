// openrnn plot: a run's loss curves from its event files.
#include "cli/report/plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "cli/commands.h"
#include "openrnn/formats.h"

namespace openrnn::cli {
namespace {

using Points = std::map<std::int64_t, double>;

/// Tag -> step -> value. A resumed run repeats steps; the later file's value is kept.
std::map<std::string, Points> read_events(const std::string& folder) {
  std::error_code failed;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    if (entry.path().filename().string().find("tfevents") != std::string::npos) {
      paths.push_back(entry.path().string());
    }
  }
  if (failed || paths.empty()) {
    throw ArgumentError("[plot] '" + folder + "' holds no event files, expected a run's folder");
  }
  std::sort(paths.begin(), paths.end(), [](const std::string& a, const std::string& b) {
    return std::filesystem::last_write_time(a) < std::filesystem::last_write_time(b);
  });
  std::map<std::string, Points> tags;
  for (const std::string& path : paths) {
    for (const ScalarEvent& event : read_scalar_events(path)) {
      tags[event.tag][event.step] = event.value;
    }
  }
  return tags;
}

/// A running mean removes the noise of single windows.
Curve smoothed(const std::string& name, const std::string& colour, const Points& points) {
  Curve curve{name, colour, 1.5, {}};
  const double keep = points.size() > 200 ? 0.97 : 0.8;
  double mean = 0.0;
  bool first = true;
  for (const auto& [step, value] : points) {
    mean = first ? value : keep * mean + (1.0 - keep) * value;
    first = false;
    curve.points.emplace_back(static_cast<double>(step), mean);
  }
  return curve;
}

Curve plain(const std::string& name, const std::string& colour, const Points& points) {
  Curve curve{name, colour, 2.5, {}};
  for (const auto& [step, value] : points) {
    curve.points.emplace_back(static_cast<double>(step), value);
  }
  return curve;
}

}  // namespace

int run(const PlotFlags& flags) {
  std::map<std::string, Points> tags = read_events(flags.run);
  const bool text = tags.count("train/bits_per_byte") != 0;
  const std::string unit = text ? "bits_per_byte" : "loss";
  Chart chart;
  chart.title = text ? "Text model: bits per byte" : "Series model: loss";
  chart.x_label = "step";
  chart.y_label = text ? "bits per byte of the file" : "loss";
  chart.curves.push_back(smoothed("training (smoothed)", "#3b78b8", tags["train/" + unit]));
  chart.curves.push_back(plain("validation", "#d1495b", tags["valid/" + unit]));
  // The loss of the first steps falls so far that the rest would look flat.
  const std::vector<std::pair<double, double>>& training = chart.curves[0].points;
  if (!training.empty()) chart.y_most = training[training.size() / 20].second;
  write_file_atomically(flags.output, to_svg(chart));
  fmt::print("{}\n", flags.output);
  return 0;
}

}  // namespace openrnn::cli
