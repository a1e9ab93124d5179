#include "cudnn/nccl/link.h"

#include <algorithm>
#include <thread>

#include "base/message.h"

namespace openrnn::cudnn {
namespace {

using namespace std::chrono_literals;

// A small message takes some 20 us, a large one milliseconds: first the host spins, then it sleeps
// for a part of the time that it has waited.
constexpr auto kSpin = 50us;
constexpr auto kLongestSleep = 1000us;
// For messages that are still on their way when a rank ends.
constexpr double kGoodbyeSeconds = 10.0;

void pause_after(std::chrono::steady_clock::duration waited) {
  if (waited < kSpin) {
    std::this_thread::yield();
    return;
  }
  std::this_thread::sleep_for(
      std::min<std::chrono::steady_clock::duration>(waited / 8, kLongestSleep));
}

}  // namespace

NcclLink::Current::Current(CUcontext context) {
  check(libraries().driver.context_push(context), "cuCtxPushCurrent");
}

NcclLink::Current::~Current() {
  CUcontext popped = nullptr;
  libraries().driver.context_pop(&popped);
}

NcclLink::NcclLink(const NcclPlace& place, const NcclId& id) : place_(place) {
  const DriverApi& driver = libraries().driver;
  CUdevice device = 0;
  check(driver.device_get(&device, place.gpu), "cuDeviceGet");
  check(driver.primary_context_retain(&context_, device), "cuDevicePrimaryCtxRetain");
  try {
    with_gpu([&] { open(id); });
  } catch (const std::exception&) {
    release();
    throw;
  }
}

void NcclLink::open(const NcclId& id) {
  const DriverApi& driver = libraries().driver;
  check(driver.stream_create(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  check(driver.memory_alloc(&send_, kPieceBytes), "cuMemAlloc");
  check(driver.memory_alloc(&receive_, kPieceBytes), "cuMemAlloc");
  NcclConfig config;
  config.blocking = 0;
  accept(nccl().api.init_rank(&comm_, place_.size, {id}, place_.rank, &config),
         "ncclCommInitRankConfig");
}

NcclLink::~NcclLink() { release(); }

void NcclLink::release() noexcept {
  if (forked()) return;  // it is the parent's
  try {
    const Current current(context_);
    if (broken_.empty()) (finish() ? nccl().api.destroy : nccl().api.abort)(comm_);
    const DriverApi& driver = libraries().driver;
    for (const CUdeviceptr memory : {send_, receive_}) {
      if (memory) driver.memory_free(memory);
    }
    if (stream_) driver.stream_destroy(stream_);
  } catch (const std::exception&) {
    // The driver has ended before.
  }
}

// Whether all that was sent has left.
bool NcclLink::finish() noexcept {
  place_.timeout_seconds = std::min(place_.timeout_seconds, kGoodbyeSeconds);
  try {
    accept(nccl().api.finalize(comm_), "ncclCommFinalize");
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void NcclLink::break_off(const std::string& why) noexcept {
  if (!broken_.empty()) return;
  broken_ = why;
  if (!comm_) return;
  try {
    const Current current(context_);
    nccl().api.abort(comm_);
  } catch (const std::exception&) {
    // The driver is gone, and NCCL's memory with it.
  }
  comm_ = nullptr;
}

void NcclLink::require_open() const {
  if (forked()) throw EngineError(message("[nccl] cannot be used: ", forked_text()));
  if (!broken_.empty()) {
    throw EngineError(message("[nccl] a call after one that has failed (", broken_,
                              "), expected a communicator of its own"));
  }
}

void NcclLink::refuse(NcclResult result, const char* call) const {
  const NcclApi& api = nccl().api;
  const char* const name = api.error_string(result);
  const char* const detail = api.last_error(comm_);
  const char* remedy = "";
  if (result == NcclResult::kInvalidUsage) {
    remedy = "; each rank needs a GPU of its own: look at `device` and CUDA_VISIBLE_DEVICES";
  } else if (result == NcclResult::kRemoteError) {
    remedy = "; another process has ended, or the network has failed";
  }
  throw EngineError(message("[", call, "] rank ", place_.rank, " of ", place_.size,
                            ": NCCL answered ", name ? name : "an unknown error", " (",
                            detail && *detail ? detail : "no text", "), expected success", remedy));
}

void NcclLink::look_around(const char* call, Clock::time_point end) const {
  if (const std::string why = place_.failure(); !why.empty()) throw EngineError(why);
  if (Clock::now() < end) return;
  throw EngineError(message("[", call, "] rank ", place_.rank, " of ", place_.size,
                            " has waited for ", place_.timeout_seconds,
                            " s, expected all ranks to make the same call by then: another one "
                            "has ended, or needs a longer `timeout`"));
}

template <class Done>
void NcclLink::poll(const char* call, Done&& done) {
  const Clock::time_point start = Clock::now();
  const Clock::time_point end = start + std::chrono::duration_cast<Clock::duration>(
                                            std::chrono::duration<double>(place_.timeout_seconds));
  while (!done()) {
    look_around(call, end);
    pause_after(Clock::now() - start);
  }
}

void NcclLink::accept(NcclResult result, const char* call) {
  if (result == NcclResult::kInProgress) {
    poll(call, [&] {
      NcclResult now = NcclResult::kSuccess;
      const NcclResult asked = nccl().api.async_error(comm_, &now);
      result = asked == NcclResult::kSuccess ? now : asked;
      return result != NcclResult::kInProgress;
    });
  }
  if (result != NcclResult::kSuccess) refuse(result, call);
}

void NcclLink::wait(const char* call) {
  Event event;
  event.record(stream_);
  poll(call, [&] {
    if (event.is_done()) return true;
    NcclResult now = NcclResult::kSuccess;
    const NcclResult asked = nccl().api.async_error(comm_, &now);
    if (asked == NcclResult::kSuccess) {
      if (now != NcclResult::kSuccess && now != NcclResult::kInProgress) refuse(now, call);
      return false;
    }
    refuse(asked, call);
  });
}

void NcclLink::copy_in(std::size_t offset, const void* host, std::size_t bytes) const {
  if (bytes == 0) return;
  check(libraries().driver.copy_in(send_ + offset, host, bytes, stream_), "cuMemcpyHtoDAsync");
}

void NcclLink::copy_out(void* host, std::size_t offset, std::size_t bytes) const {
  if (bytes == 0) return;
  const DriverApi& driver = libraries().driver;
  check(driver.copy_out(host, receive_ + offset, bytes, stream_), "cuMemcpyDtoHAsync");
  check(driver.stream_synchronize(stream_), "cuStreamSynchronize");
}

}  // namespace openrnn::cudnn
