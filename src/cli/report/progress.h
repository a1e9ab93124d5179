// Progress of training on stderr: one line that is overwritten on a terminal, else plain lines.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "openrnn/train_fit.h"

namespace openrnn::cli {

class Progress {
 public:
  /// `item` is what is counted each second: 'tokens' or 'rows'.
  Progress(std::string metric_name, std::string item);
  /// To be called after each step; prints at intervals, and at each validation.
  void step(const train::StepReport& report);
  /// Prints a line of its own.
  void say(const std::string& line);

 private:
  using Clock = std::chrono::steady_clock;
  /// In at most `width` columns, 0: as many as it takes.
  std::string line(const train::StepReport& report, double seconds, int width) const;
  void show(const train::StepReport& report);

  std::string metric_name_, item_;
  bool terminal_;
  bool bar_open_ = false;
  Clock::time_point start_, shown_;
  std::int64_t items_ = 0, first_step_ = -1;
  double smoothed_ = 0.0;
  std::optional<double> validation_;
};

/// "1:02", "3:04:05".
std::string clock_text(double seconds);

}  // namespace openrnn::cli
