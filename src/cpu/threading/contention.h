// How many threads pay while other programs use the processors, too.
#pragma once

namespace openrnn::cpu {

/// How long a job took, and how much of that the member that waited longest spent waiting for
/// others.
struct JobTimes {
  double took, waited;  // seconds
};

/// Seconds by which threads made a job shorter than one thread could have; less than 0 when one of
/// them would have done the work of all in less time than it took.
double gained(const JobTimes& times, int threads) noexcept;

/// Seconds of waiting that are normal inside a job that takes one thread `alone` seconds.
double least_wait(double alone) noexcept;

/// Remembers what threads gained. A worker that has lost its core to another program is late by
/// slices of the system's scheduler, milliseconds each, and a call that waits for it at a barrier
/// may be many times slower than on one thread. Gains are added up, losses are subtracted. When
/// nothing is left, fewer threads are allowed for a pause; then more are tried, and each trial that
/// fails doubles the next pause. All times are seconds of one clock.
class Contention {
 public:
  /// Threads for a job that wants `wanted` at `now` and takes one thread `alone` seconds, 0 where
  /// that is not known. A long job tries more by itself.
  int allow(int wanted, double now, double alone) const noexcept;
  /// A job on `threads` threads, two or more, is over at `now`.
  void tell(int threads, const JobTimes& times, double now) noexcept;

 private:
  void fall(int threads, double now) noexcept;
  void rise(int threads) noexcept;

  // The threads that are allowed, 0: all that are wanted; how many failed last.
  int limit_ = 0, failed_ = 0;
  double until_ = 0, pause_ = 0;  // when more may be tried; the pause until then
  double gain_ = 0;               // seconds gained and not lost
};

}  // namespace openrnn::cpu
