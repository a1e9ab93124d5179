// The ceiling of products: register tiles alone, over the weights and rows of a network.
#pragma once

#include <cstdint>
#include <vector>

#include "openrnn/spec.h"

namespace openrnn::cli {

/// Products of float32 with the matrices of a network, as its layers make them, but without gates,
/// cells and what they read: W with the rows of a chunk of steps, R with those of each step.
class BareTiles {
 public:
  /// Each of `threads` threads has its part of the columns. Throws: EngineError as isa_name().
  BareTiles(const RnnSpec& spec, std::int64_t batch, std::int64_t time, int threads);
  /// GFLOP/s of all threads at once, in about `seconds`, at least two rounds over the network.
  double rate(double seconds);

 private:
  double run(int thread);

  std::int64_t inner_, batch_, steps_, panels_, width_, matrices_;  // panels of one thread
  int threads_;
  std::vector<float> rows_;
  std::vector<std::vector<float>> weights_, sums_;  // of each thread
};

}  // namespace openrnn::cli
