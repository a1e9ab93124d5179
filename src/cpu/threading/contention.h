// How many threads are worth having beside whoever else runs on this machine.
#pragma once

namespace openrnn::cpu {

/// What became of a job: how long it took, and how long of that the member that waited longest had
/// nothing to do but to wait for others.
struct JobTimes {
  double took, waited;  // seconds
};

/// Seconds by which threads made a job shorter than one thread could have; less than 0 when one of
/// them would have done the work of all in less time than it took.
double gained(const JobTimes& times, int threads) noexcept;

/// Seconds of waiting that tell nothing yet inside a job that takes one thread `alone` seconds.
double least_wait(double alone) noexcept;

/// Remembers what threads gained. A worker that has lost its core to another program is late by
/// slices of the system's scheduler, milliseconds each, and a call that has to meet it may be many
/// times slower than one on one thread. What is gained is put by, what is lost is taken from it.
/// When nothing is left fewer threads are allowed for a while; then more are tried, and each trial
/// that fails makes the next pause twice as long. All times are seconds of one clock.
class Contention {
 public:
  /// Threads for a job that wants `wanted` at `now` and takes one thread `alone` seconds, 0 where
  /// that is not known. A long job finds out by itself.
  int allow(int wanted, double now, double alone) const noexcept;
  /// A job on `threads` threads, two or more, is over at `now`.
  void tell(int threads, const JobTimes& times, double now) noexcept;

 private:
  void fall(int threads, double now) noexcept;
  void rise(int threads) noexcept;

  // The threads that are allowed, 0: all that are wanted; the number that was too much last.
  int limit_ = 0, failed_ = 0;
  double until_ = 0, pause_ = 0;  // when more may be tried; the pause before that
  double gain_ = 0;               // what is put by
};

}  // namespace openrnn::cpu
