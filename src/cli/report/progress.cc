#include "cli/report/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace openrnn::cli {
namespace {

constexpr double kTerminalSeconds = 0.2;  // often enough to look alive
constexpr double kPlainSeconds = 5.0;     // rarely enough to be read in a log
constexpr double kSmoothing = 0.95;       // of the loss from step to step
constexpr int kBarWidth = 20;

std::string rate_text(double rate) {
  if (rate >= 1e6) return fmt::format("{:.2f}M", rate / 1e6);
  if (rate >= 1e3) return fmt::format("{:.1f}k", rate / 1e3);
  return fmt::format("{:.0f}", rate);
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
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      shown_(start_) {}

std::string Progress::line(const train::StepReport& report, double seconds) const {
  const double rate = seconds > 0.0 ? static_cast<double>(items_) / seconds : 0.0;
  const auto done = static_cast<double>(report.step - first_step_);
  const auto left = static_cast<double>(report.steps - report.step);
  std::string bar;
  if (terminal_) {
    const auto full = report.steps > 0 ? report.step * kBarWidth / report.steps : kBarWidth;
    bar = fmt::format("[{:#<{}}{:.<{}}] ", "", full, "", kBarWidth - full);
  }
  return fmt::format("{}step {}/{}  {} {}/s  {:.3f} {}{}  left {}{}", bar, report.step,
                     report.steps, rate_text(rate), item_, smoothed_, metric_name_,
                     validation_ ? fmt::format("  valid {:.3f}", *validation_) : "",
                     clock_text(done > 0.0 ? seconds / done * left : 0.0),
                     report.applied ? "" : "  (skipped: gradients not finite)");
}

void Progress::show(const train::StepReport& report) {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const std::string text = line(report, seconds);
  if (terminal_) {
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
    bar_open_ = true;
  } else {
    std::fprintf(stderr, "%s\n", text.c_str());
  }
  std::fflush(stderr);
}

void Progress::step(const train::StepReport& report) {
  if (first_step_ < 0) {
    first_step_ = report.step - 1;
    smoothed_ = report.metric;
  }
  items_ += report.items;
  smoothed_ = kSmoothing * smoothed_ + (1.0 - kSmoothing) * report.metric;
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
