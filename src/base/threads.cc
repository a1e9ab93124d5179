#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/message.h"
#include "openrnn/base.h"

namespace openrnn {
namespace {

constexpr int kMostThreads = 1024;

int affinity_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

// Processors granted by cgroup v2's cpu.max ("quota period") or v1's pair of files; 0 if unlimited.
int quota_count() {
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string quota_text;
  double period = 0;
  if (v2 >> quota_text >> period) {
    if (quota_text == "max" || period <= 0) return 0;
    return static_cast<int>(std::max(1.0, std::atof(quota_text.c_str()) / period));
  }
  std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double quota = -1;
  if (quota_file >> quota && period_file >> period && quota > 0 && period > 0) {
    return static_cast<int>(std::max(1.0, quota / period));
  }
  return 0;
}

int default_threads() {
  if (const char* text = std::getenv("OPENRNN_NUM_THREADS"); text && *text) {
    int n = 0;
    const char* end = text + std::string_view(text).size();
    const auto [stop, error] = std::from_chars(text, end, n);
    if (error != std::errc() || stop != end || n < 1 || n > kMostThreads) {
      throw ArgumentError(message("[num_threads] OPENRNN_NUM_THREADS is '", text,
                                  "', expected a whole number from 1 to ", kMostThreads));
    }
    return n;
  }
  const int quota = quota_count();
  const int affinity = affinity_count();
  return quota > 0 ? std::min(quota, affinity) : affinity;
}

// 0 until the first num_threads or set_num_threads.
std::atomic<int> chosen_threads{0};

}  // namespace

int num_threads() {
  int n = chosen_threads.load(std::memory_order_relaxed);
  if (n == 0) {
    const int found = default_threads();
    // A set_num_threads in between wins.
    n = chosen_threads.compare_exchange_strong(n, found) ? found : n;
  }
  return n;
}

void set_num_threads(int n) {
  if (n < 1 || n > kMostThreads) {
    throw ArgumentError(message("[set_num_threads] n is ", n, ", expected 1 to ", kMostThreads));
  }
  chosen_threads.store(n, std::memory_order_relaxed);
}

}  // namespace openrnn
