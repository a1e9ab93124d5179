// Calls next to a busy process: on one thread, and on several.
#pragma once

#include <string>
#include <vector>

#include "cli/bench/measure.h"

namespace openrnn::cli {

/// A process that keeps one CPU busy while this object exists, and no longer than this process.
class BusyProcess {
 public:
  /// Restricts this process to `threads` CPUs, of which the other process takes the last.
  /// Throws: IoError when the system refuses.
  explicit BusyProcess(int threads);
  ~BusyProcess();
  BusyProcess(const BusyProcess&) = delete;
  BusyProcess& operator=(const BusyProcess&) = delete;
  int processor() const { return processor_; }

 private:
  int child_ = -1, processor_ = -1;
};

/// Medians next to the busy process, in milliseconds.
struct InCompany {
  std::string pass;
  double one_thread = 0.0, threads = 0.0;
  int calls = 0;  // on each side
  double ratio() const { return threads / one_thread; }
};

/// 200 calls on one thread and 200 on `threads`, alternating; fewer, but at least 5, if the calls
/// on one thread take more than `seconds` together.
std::vector<InCompany> measure_in_company(const BenchConfig& config, int threads, double seconds);

}  // namespace openrnn::cli
