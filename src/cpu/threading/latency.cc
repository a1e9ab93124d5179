#include "cpu/threading/latency.h"

#include <algorithm>
#include <limits>

namespace openrnn::cpu {
namespace {

constexpr int kRounds = 4, kBarriers = 4;
// A measurement is used for 100 times the time that it took, within limits. A virtual machine may
// find its processors on cores of one cache now and far from each other a second later; on a busy
// one even measuring takes milliseconds.
constexpr int kBelievedPerMeasured = 100;
constexpr std::chrono::milliseconds kBelievedAtLeast{20}, kBelievedAtMost{1000};

}  // namespace

void LatencyProbe::run(int member) noexcept {
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    int read = 0;
    for (int i = 0; i < kBarriers; ++i) {
      lines_[member].number.store(read + 1, std::memory_order_relaxed);
      // A member that was late once would be late every time.
      if (barrier_.wait(2)) return;
      read = lines_[1 - member].number.load(std::memory_order_relaxed);
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (member == 0) least_ = std::min(least_, taken.count() / kBarriers);
  }
}

void BarrierLatency::tell(double measured, Clock::time_point start,
                          Clock::time_point end) noexcept {
  if (measured == std::numeric_limits<double>::infinity()) return;
  seconds_ = measured;
  believed_until_ = end + std::clamp<Clock::duration>(kBelievedPerMeasured * (end - start),
                                                      kBelievedAtLeast, kBelievedAtMost);
}

}  // namespace openrnn::cpu
