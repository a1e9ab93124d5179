// What this machine can do at most, to measure everything else against.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace openrnn::cli {

/// Work a second of `threads` threads at once: `body(thread)` returns that of one iteration, and is
/// repeated for about `seconds`. The sum of each thread's best iteration: other programs slow some
/// down.
double rate_of(int threads, double seconds, const std::function<double(int)>& body);

/// float32 fused multiply-adds in registers on `threads` threads at once for about `seconds`, in
/// GFLOP/s (an FMA counts as 2), with the widest vectors of this processor.
double fma_peak(int threads, double seconds);

/// GB/s at which `threads` threads together read `bytes`, each its own part again and again.
double read_bandwidth(int threads, std::size_t bytes, double seconds);

/// "AMD EPYC 9R14", as the system names it.
std::string processor_name();

}  // namespace openrnn::cli
