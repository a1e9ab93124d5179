// Events of a GPU.
#pragma once

#include <utility>

#include "cudnn/gpu/context.h"

namespace openrnn::cudnn {

/// A point in a GPU's work, once recorded. For a thread where the context is current, except the
/// destructor. Not to be used by two threads at once.
class Event {
 public:
  enum class Time : bool { kNone, kMeasured };
  explicit Event(Time time = Time::kNone) {
    const unsigned flags = time == Time::kMeasured ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
    check(libraries().driver.event_create(&event_, flags), "cuEventCreate");
  }
  ~Event() {
    if (event_ && !forked()) libraries().driver.event_destroy(event_);
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }

  void record(const Context& context) { record(context.stream()); }
  void record(CUstream stream) {
    check(libraries().driver.event_record(event_, stream), "cuEventRecord");
  }
  /// True before the first record.
  bool is_done() const {
    const CUresult result = libraries().driver.event_query(event_);
    if (result != CUDA_ERROR_NOT_READY) check(result, "cuEventQuery");
    return result == CUDA_SUCCESS;
  }
  CUevent handle() const noexcept { return event_; }
  void wait() const { check(libraries().driver.event_synchronize(event_), "cuEventSynchronize"); }
  /// Milliseconds between two measured points that are done.
  static double between(const Event& start, const Event& end) {
    float milliseconds = 0.0f;
    check(libraries().driver.event_elapsed(&milliseconds, start.event_, end.event_),
          "cuEventElapsedTime");
    return static_cast<double>(milliseconds);
  }

 private:
  CUevent event_ = nullptr;
};

}  // namespace openrnn::cudnn
