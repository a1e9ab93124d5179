#include "cli/report/progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace openrnn::cli {
namespace {

constexpr double kTerminalSeconds = 0.2;  // refresh of the progress bar
constexpr double kPlainSeconds = 5.0;     // of a log without a terminal
constexpr double kSmoothing = 0.95;       // of the loss from step to step
constexpr int kLongestBar = 20, kShortestBar = 5;
constexpr int kUsualColumns = 80;  // of a terminal that does not report its width

std::string rate_text(double rate) {
  if (rate >= 1e6) return fmt::format("{:.2f}M", rate / 1e6);
  if (rate >= 1e3) return fmt::format("{:.1f}k", rate / 1e3);
  return fmt::format("{:.0f}", rate);
}

/// Queried for each line, so that it is right after a resize, too.
int terminal_columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualColumns;
  return size.ws_col;
}

bool writes_over_lines() {
  const char* const kind = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && (kind == nullptr || std::strcmp(kind, "dumb") != 0);
}

/// A bar of up to `room` columns before the text, or nothing if that is too few.
std::string bar(const train::StepReport& report, int room) {
  const int width = std::min(room - 3, kLongestBar);
  if (width < kShortestBar) return {};
  const std::int64_t full = report.steps > 0 ? report.step * width / report.steps : width;
  return fmt::format("[{:#<{}}{:.<{}}] ", "", full, "", width - full);
}

}  // namespace

std::string clock_text(double seconds) {
  const auto all = static_cast<std::int64_t>(std::lround(std::min(seconds, 1e9)));
  const std::int64_t hours = all / 3600, minutes = all / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, all % 60)
                   : fmt::format("{}:{:02}", minutes, all % 60);
}

Progress::Progress(std::string metric_name, std::string item)
    : metric_name_(std::move(metric_name)),
      item_(std::move(item)),
      terminal_(writes_over_lines()),
      start_(Clock::now()),
      shown_(start_) {}

std::string Progress::line(const train::StepReport& report, double seconds, int width) const {
  const double speed = seconds > 0.0 ? static_cast<double>(items_) / seconds : 0.0;
  const auto done = static_cast<double>(report.step - first_step_);
  const auto left = static_cast<double>(report.steps - report.step);
  const std::string step = fmt::format("{}/{}", report.step, report.steps);
  // Of constant width, so that a change of speed does not move what follows.
  const std::string rate = fmt::format("{:>6} {}/s  ", rate_text(speed), item_);
  const std::string time = clock_text(done > 0.0 ? seconds / done * left : 0.0);
  const std::string valid = validation_ ? fmt::format("  valid {:.3f}", *validation_) : "";
  const std::string skipped = report.applied() ? "" : "  (skipped: gradients not finite)";
  const std::string all = fmt::format("step {}  {}{:.3f} {}{}  left {}{}", step, rate, smoothed_,
                                      metric_name_, valid, time, skipped);
  if (width == 0) return all;
  // The longest that fits.
  for (const std::string& text :
       {all,
        fmt::format("step {}  {}{:.3f}{}  left {}{}", step, rate, smoothed_, valid, time,
                    report.applied() ? "" : "  (skipped)"),
        fmt::format("step {}  {:.3f} {}{}  left {}", step, smoothed_, metric_name_, valid, time),
        fmt::format("step {}  {:.3f}{}  left {}", step, smoothed_, valid, time),
        fmt::format("{}  {:.3f}{}", step, smoothed_, valid)}) {
    const int room = width - static_cast<int>(text.size());
    if (room >= 0) return bar(report, room) + text;
  }
  return step.substr(0, static_cast<std::size_t>(width));
}

void Progress::show(const train::StepReport& report) {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  if (terminal_) {
    // Without the last column, after which some terminals wrap.
    const int width = std::max(1, terminal_columns() - 1);
    std::fprintf(stderr, "\r\033[K%s", line(report, seconds, width).c_str());
    bar_open_ = true;
  } else {
    std::fprintf(stderr, "%s\n", line(report, seconds, 0).c_str());
  }
  std::fflush(stderr);
}

void Progress::step(const train::StepReport& report) {
  if (first_step_ < 0) {
    first_step_ = report.step - 1;
    smoothed_ = report.metric();
  }
  items_ += report.items;
  smoothed_ = kSmoothing * smoothed_ + (1.0 - kSmoothing) * report.metric();
  if (report.validation) validation_ = report.validation;
  const auto now = Clock::now();
  const double quiet = std::chrono::duration<double>(now - shown_).count();
  const bool last = report.step == report.steps;
  if (last || report.validation || quiet >= (terminal_ ? kTerminalSeconds : kPlainSeconds)) {
    show(report);
    shown_ = now;
    if (last && bar_open_) say("");
  }
}

void Progress::say(const std::string& text) {
  if (bar_open_) std::fputs(text.empty() ? "\n" : "\r\033[K", stderr);
  bar_open_ = false;
  if (!text.empty()) std::fprintf(stderr, "%s\n", text.c_str());
  std::fflush(stderr);
}

}  // namespace openrnn::cli
