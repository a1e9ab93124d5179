// What is recorded of streams, and what the driver refuses meanwhile.
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "cudnn/stand_in/machine.h"

namespace openrnn::stand_in {
namespace {

struct Capture {
  CaptureMode mode = CaptureMode::kGlobal;
  std::thread::id owner = std::this_thread::get_id();
  bool failed = false;
  Work work = {};
};

struct Captures {
  std::mutex mutex;
  std::map<Stream, Capture> all;
  std::set<Stream> blocking;
};

// Never destroyed: arrays may die after it would be.
Captures& captured() {
  static auto* all = new Captures;
  return *all;
}

bool is_own(const Capture& capture) { return capture.owner == std::this_thread::get_id(); }

bool forbids_calls(const Capture& capture) {
  return capture.mode == CaptureMode::kGlobal ||
         (capture.mode == CaptureMode::kThreadLocal && is_own(capture));
}

}  // namespace

bool captures(Stream stream) {
  const std::lock_guard lock(captured().mutex);
  return captured().all.contains(stream);
}

void note_blocking(Stream stream) {
  const std::lock_guard lock(captured().mutex);
  captured().blocking.insert(stream);
}

CaptureAnswer may_enqueue(Stream stream) {
  const std::lock_guard lock(captured().mutex);
  if (const auto found = captured().all.find(stream); found != captured().all.end()) {
    return found->second.failed ? CaptureAnswer::kInvalidated : CaptureAnswer::kAllowed;
  }
  CaptureAnswer answer = CaptureAnswer::kAllowed;
  for (auto& [each, capture] : captured().all) {
    if (stream != 0 || !captured().blocking.contains(each)) continue;
    capture.failed = true;
    answer = CaptureAnswer::kImplicit;
  }
  return answer;
}

CaptureAnswer may_call() {
  const std::lock_guard lock(captured().mutex);
  CaptureAnswer answer = CaptureAnswer::kAllowed;
  for (auto& [stream, capture] : captured().all) {
    if (!forbids_calls(capture)) continue;
    capture.failed = true;
    answer = CaptureAnswer::kUnsupported;
  }
  return answer;
}

CaptureAnswer may_wait(Stream stream) {
  if (captures(stream)) {
    spoil_capture(stream);
    return CaptureAnswer::kUnsupported;
  }
  return may_call();
}

void begin_capture(Stream stream, CaptureMode mode) {
  const std::lock_guard lock(captured().mutex);
  captured().all[stream] = Capture{.mode = mode};
}

void spoil_capture(Stream stream) {
  const std::lock_guard lock(captured().mutex);
  const auto found = captured().all.find(stream);
  if (found != captured().all.end()) found->second.failed = true;
}

bool may_end_capture(Stream stream) {
  const std::lock_guard lock(captured().mutex);
  const Capture& capture = captured().all.at(stream);
  return capture.mode == CaptureMode::kRelaxed || is_own(capture);
}

bool end_capture(Stream stream, Work& work) {
  const std::lock_guard lock(captured().mutex);
  const auto found = captured().all.find(stream);
  const bool whole = !found->second.failed;
  work = std::move(found->second.work);
  captured().all.erase(found);
  return whole;
}

bool record_work(Stream stream, const std::function<void()>& work) {
  const std::lock_guard lock(captured().mutex);
  const auto found = captured().all.find(stream);
  if (found == captured().all.end()) return false;
  if (!found->second.failed) found->second.work.push_back(work);
  return true;
}

}  // namespace openrnn::stand_in
