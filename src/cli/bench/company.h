// Calls beside a busy neighbour: on one thread, and on several.
#pragma once

#include <string>
#include <vector>

#include "cli/bench/measure.h"

namespace openrnn::cli {

/// A process that keeps one processor busy while this object lives, and no longer than this
/// process.
class Neighbour {
 public:
  /// Holds this process to `threads` processors, of which the neighbour takes the last.
  /// Throws: IoError when the system refuses.
  explicit Neighbour(int threads);
  ~Neighbour();
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;
  int processor() const { return processor_; }

 private:
  int child_ = -1, processor_ = -1;
};

/// Medians beside the neighbour, in milliseconds.
struct InCompany {
  std::string pass;
  double one_thread = 0.0, threads = 0.0;
  int calls = 0;  // on each side
  double ratio() const { return threads / one_thread; }
};

/// 200 calls on one thread and 200 on `threads`, in turns; fewer, but 5, of a network whose calls
/// on one thread take more than `seconds` together.
std::vector<InCompany> measure_in_company(const BenchConfig& config, int threads, double seconds);

}  // namespace openrnn::cli
