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
  /// As ForwardArgs::recompute, of the passes of training.
  std::int64_t recompute = 0;
  /// FLOP of the products of one forward pass.
  double flop() const;
  /// Bytes of the recurrent matrices, which every step reads.
  double recurrent_bytes() const;
};

/// The configurations of `make bench`.
std::vector<BenchConfig> bench_configs();

struct Measurement {
  std::string pass;  // 'forward' (inference), 'forward_training', 'forward_backward'
  /// Medians; gflops is the median's. The peak is the processor's; 0 on another device.
  double milliseconds = 0.0, best_milliseconds = 0.0, gflops = 0.0, peak = 0.0;
  /// GFLOP/s of BareTiles; 0 unless float32 in batches.
  double tiles = 0.0;
  /// GB/s at which the steps read the recurrent weights, and that of a plain read; 0 unless batch
  /// size 1 and forward.
  double bandwidth = 0.0, most_bandwidth = 0.0;
  double percent_of_peak() const { return 100.0 * gflops / peak; }
  double percent_of_tiles() const { return 100.0 * gflops / tiles; }
};

/// Medians of repetitions that fill about `seconds` a pass, at least 5, on the default device; each
/// ends when its results are there.
std::vector<Measurement> measure(const BenchConfig& config, int threads, double seconds);

}  // namespace openrnn::cli
