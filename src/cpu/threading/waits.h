// Time that a member of a job waits for the others, and when that is too long.
#pragma once

namespace openrnn::cpu {

/// Arguments of a job's members.
struct Job {
  void (*function)(void* context, int member) = nullptr;
  void* context = nullptr;
  int members = 1;
  double begun = 0;       // seconds_now() at its start
  double least_wait = 0;  // shorter waits, in seconds, tell nothing
};

/// Adds up the waits of one member of a job. Only long waits count, those that yield the processor.
class Waits {
 public:
  void begin(const Job& job) noexcept;
  /// Inside a long wait: whether so much of the last time went into waiting that one thread would
  /// have been faster.
  bool too_long() noexcept;
  /// After a wait in which too_long() was called.
  void over() noexcept;
  /// Seconds of this job so far.
  double all() const noexcept { return all_; }

 private:
  double least_ = 0, window_ = 0, in_window_ = 0, since_ = 0, all_ = 0;
  int members_ = 1;
};

/// The calling thread as a member of the running job.
struct JobMember {
  int index = 0;
  Waits waits;
};
JobMember& this_member() noexcept;

/// Called by every member inside its pieces: as it begins its part of a job, and before it comes to
/// a barrier. For tests, which delay members; null again for nothing.
using PieceHook = void (*)(int member);
void hook_pieces(PieceHook hook) noexcept;
/// Calls the hook, if there is one, for this thread.
void at_piece() noexcept;
/// The same for a part that this thread does in place of `member`.
void at_piece_of(int member) noexcept;

}  // namespace openrnn::cpu
