// How long a GPU is busy.
#pragma once

#include <mutex>
#include <vector>

#include "cudnn/gpu/event.h"

namespace openrnn::cudnn {

/// Adds up the time in which a GPU had work of this process, while the clock exists: a call that
/// finds all earlier work done begins a new span. Gaps inside one call, and those that end while a
/// call is being enqueued, count as busy. It costs an event a call.
class BusyClock {
 public:
  /// At most one clock for a GPU, made while no other thread uses it.
  explicit BusyClock(Context& context);
  ~BusyClock();
  BusyClock(const BusyClock&) = delete;
  BusyClock& operator=(const BusyClock&) = delete;

  /// Of all spans so far; waits for the GPU. Throws: EngineError.
  double milliseconds();
  /// How often the GPU was found without work.
  int spans();

  // For the context, around every call. An error stops the clock.
  void begin_call() noexcept;
  void end_call() noexcept;

 private:
  struct Span {
    Event begin{Event::Time::kMeasured}, end{Event::Time::kMeasured};
  };
  void begin_span();

  Context& context_;
  std::mutex mutex_;
  std::vector<Span> spans_;
  int calls_ = 0;  // in progress
  bool failed_ = false;
};

}  // namespace openrnn::cudnn
