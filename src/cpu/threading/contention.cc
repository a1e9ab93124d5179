#include "cpu/threading/contention.h"

#include <algorithm>

namespace openrnn::cpu {
namespace {

// Seconds. Waking a worker of a virtual machine takes some tenths of a millisecond; one that has
// lost its core is away for a millisecond or more.
constexpr double kLeastWait = 0.5e-3;
// A long job would lose much by going on alone after a short disturbance.
constexpr double kLeastPart = 0.05;
// Seconds that may be lost before anything is gained: about one slice of the system's scheduler.
constexpr double kTrial = 4e-3;
// Part of the pause before a trial that the trial may lose, too.
constexpr double kPauseBought = 0.01;
// Seconds of gain that are kept at most, some slices: so much is lost when another busy program
// starts. A trial that gains as much has succeeded: a thread that has slept gets its core at once,
// and loses it again only after a slice.
constexpr double kMost = 20e-3;
constexpr double kFirstPause = 5e-3, kLongestPause = 1.0;
// A job of this many times the rest of the pause may try by itself.
constexpr double kWorthTrying = 10.0;

}  // namespace

double gained(const JobTimes& times, int threads) noexcept {
  return threads * (times.took - times.waited) - times.took;
}

double least_wait(double alone) noexcept { return std::max(kLeastWait, kLeastPart * alone); }

int Contention::allow(int wanted, double now, double alone) const noexcept {
  if (limit_ == 0 || wanted <= limit_) return wanted;
  const double rest = until_ - now;
  if (rest > 0 && alone < kWorthTrying * rest) return limit_;
  return std::min(wanted, limit_ + std::max(1, (failed_ - limit_) / 2));
}

void Contention::tell(int threads, const JobTimes& times, double now) noexcept {
  const double gain = gained(times, threads);
  // What fewer threads do well is no trial of more.
  if (gain > 0 && threads <= limit_) return;
  gain_ += gain;
  if (gain_ < -kTrial - kPauseBought * pause_) fall(threads, now);
  if (gain_ > kMost) rise(threads);
}

void Contention::fall(int threads, double now) noexcept {
  if (limit_ == 0 || threads <= limit_) limit_ = std::max(1, threads / 2);
  failed_ = threads;
  pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
  until_ = now + pause_;
  gain_ = 0;
}

void Contention::rise(int threads) noexcept {
  if (limit_ != 0) {
    limit_ = threads >= failed_ ? 0 : threads;
    gain_ = 0;
    return;
  }
  // Old failures are forgotten: the next busy program begins with a short pause again.
  pause_ *= std::max(0.0, 1 - (gain_ - kMost) / kMost);
  gain_ = kMost;
}

}  // namespace openrnn::cpu
