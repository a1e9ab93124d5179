#include "cudnn/gpu/busy_clock.h"

#include <exception>

#include "openrnn/base.h"

namespace openrnn::cudnn {

BusyClock::BusyClock(Context& context) : context_(context) { context_.observe(this); }

BusyClock::~BusyClock() { context_.observe(nullptr); }

void BusyClock::begin_span() {
  if (!spans_.empty() && !spans_.back().end.is_done()) return;
  spans_.emplace_back();
  spans_.back().begin.record(context_);
  spans_.back().end.record(context_);
}

void BusyClock::begin_call() noexcept {
  const std::lock_guard lock(mutex_);
  if (calls_++ > 0 || failed_) return;
  try {
    begin_span();
  } catch (const std::exception&) {
    failed_ = true;
  }
}

void BusyClock::end_call() noexcept {
  const std::lock_guard lock(mutex_);
  if (--calls_ > 0 || failed_ || spans_.empty()) return;
  try {
    spans_.back().end.record(context_);
  } catch (const std::exception&) {
    failed_ = true;
  }
}

double BusyClock::milliseconds() {
  const Context::Current current(context_);
  context_.wait();
  const std::lock_guard lock(mutex_);
  if (failed_) throw EngineError("[busy_clock] the GPU failed while it was watched");
  double total = 0.0;
  for (const Span& span : spans_) total += Event::between(span.begin, span.end);
  return total;
}

int BusyClock::spans() {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(spans_.size());
}

}  // namespace openrnn::cudnn
