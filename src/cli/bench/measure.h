// The time of one network's passes, with the machine's peak measured between its repetitions.
#pragma once

#include <string>
#include <vector>

#include "openrnn/spec.h"

namespace openrnn::cli {

struct BenchConfig {
  std::string name;  // "LSTM L4 U1024 B64 T40"
  RnnSpec spec;
  std::int64_t batch = 0, time = 0;
  /// Of the products, one pass forward.
  double flop() const;
  /// Of the recurrent matrices, which every step reads.
  double recurrent_bytes() const;
};

/// Those of `make bench`.
std::vector<BenchConfig> bench_configs();

struct Measurement {
  std::string pass;  // 'forward' (inference), 'forward_training', 'forward_backward'
  /// Medians; gflops is the median's. The peak is the processor's; 0 on another device.
  double milliseconds = 0.0, best_milliseconds = 0.0, gflops = 0.0, peak = 0.0;
  /// GB/s of recurrent weights in the steps, and what reading alone gets of them; 0 unless batch 1
  /// and forward.
  double bandwidth = 0.0, most_bandwidth = 0.0;
  double percent_of_peak() const { return 100.0 * gflops / peak; }
};

/// Medians of repetitions that fill about `seconds` a pass, at least 5, on the default device; each
/// ends when its results are there.
std::vector<Measurement> measure(const BenchConfig& config, int threads, double seconds);

}  // namespace openrnn::cli
