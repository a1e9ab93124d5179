// The stand-in GPU: its memory, checked, and its queue of work. Shared by the three libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#define STAND_IN_API __attribute__((visibility("default")))

namespace openrnn::stand_in {

/// A number of the environment, read at every call.
STAND_IN_API long setting(const char* name, long otherwise);

// ---- Memory ------------------------------------------------------------------------------------
// A device address is a host address with this bit set: no processor takes it for an address.

inline constexpr std::uint64_t kTag = std::uint64_t{1} << 62;

/// Filled with NaNs, between guards. 0 when STAND_IN_MEMORY (bytes) would be exceeded.
STAND_IN_API std::uint64_t allocate(std::size_t bytes);
/// False when `address` is no start of a block. Throws: std::runtime_error when a guard was
/// written.
STAND_IN_API bool release(std::uint64_t address);
STAND_IN_API void memory_info(std::size_t* free, std::size_t* total);
/// Whether all `bytes` lie in one block.
STAND_IN_API bool contains(std::uint64_t address, std::size_t bytes);
/// The host's address of `bytes` of device memory. Throws: std::runtime_error unless contains.
STAND_IN_API void* host_of(std::uint64_t address, std::size_t bytes);
/// As Launch::translate.
STAND_IN_API std::uint64_t translate(std::uint64_t word);
/// Throws: std::runtime_error naming a block whose guards were written.
STAND_IN_API void check_guards();

template <class T>
T* host_of(const void* address, std::size_t count) {
  return static_cast<T*>(host_of(reinterpret_cast<std::uint64_t>(address), count * sizeof(T)));
}

// ---- Work --------------------------------------------------------------------------------------

using Stream = std::uint64_t;
/// Work that is done, as the number of each stream's last piece of it.
using Done = std::map<Stream, long>;

/// A point in a stream's work.
struct Mark {
  Stream stream = 0;
  bool passed = false;
  double time = -1.0;
  Done done = {};  // when it is passed
};

/// Runs `work` now, or when its stream is next waited for when STAND_IN_DEFERRED is 1. What it
/// throws breaks the machine, as on a GPU: every later call fails.
STAND_IN_API void enqueue(Stream stream, std::function<void()> work);
/// The same for work that waits until `ready`, which is asked whenever the stream is looked at.
STAND_IN_API void enqueue_when(Stream stream, std::function<bool()> ready,
                               std::function<void()> work);
STAND_IN_API std::shared_ptr<Mark> record(Stream stream);
/// Later work of the stream runs after the mark; else nothing is promised between streams.
STAND_IN_API void wait_for(Stream stream, std::shared_ptr<Mark> mark);
/// Runs what is queued: all of it, of a stream, up to a mark.
STAND_IN_API void synchronize();
STAND_IN_API void synchronize(Stream stream);
STAND_IN_API void synchronize(const std::shared_ptr<Mark>& mark);
/// Whether it was passed; the host knows then what is done.
STAND_IN_API bool has_passed(const Mark& mark);
/// How often the host has waited so far, and how often no work was left then.
STAND_IN_API long waits();
STAND_IN_API long idle_waits();
/// What broke the machine; empty when it is whole.
STAND_IN_API const std::string& broken();
/// Counts a call that may fail. False: the machine is broken; the call whose number is
/// STAND_IN_FAULT breaks it.
STAND_IN_API bool is_whole(const char* call);
/// How often a function, or a kernel, of that name was called and might have failed.
STAND_IN_API long calls_of(const std::string& name);
STAND_IN_API void count_call(const std::string& name);
/// Whether this thread has pushed a context.
STAND_IN_API bool has_context();
/// The GPU of the last context that it has pushed.
STAND_IN_API int current_gpu();
STAND_IN_API void push_context(int gpu);
STAND_IN_API bool pop_context();
// ---- Captures ----------------------------------------------------------------------------------

using Work = std::vector<std::function<void()>>;
enum class CaptureMode { kGlobal, kThreadLocal, kRelaxed };
/// What a call may do to a stream while streams are captured.
enum class CaptureAnswer { kAllowed, kUnsupported, kInvalidated, kImplicit };

/// Whether work of the stream is recorded in place of being run, also when that has failed.
STAND_IN_API bool captures(Stream stream);
/// The stream is one that keeps order with stream 0.
STAND_IN_API void note_blocking(Stream stream);
/// Work for the stream: not after its capture has failed, nor on stream 0 while a stream that keeps
/// order with it is captured, which ends that capture as a failed one.
STAND_IN_API CaptureAnswer may_enqueue(Stream stream);
/// A call that no capture may see (it allocates, frees or waits): it ends as failed ones those that
/// this thread began, and those of mode kGlobal, but for mode kRelaxed.
STAND_IN_API CaptureAnswer may_call();
/// A call that waits for the stream, or reads what it has done.
STAND_IN_API CaptureAnswer may_wait(Stream stream);
STAND_IN_API void begin_capture(Stream stream, CaptureMode mode);
STAND_IN_API void spoil_capture(Stream stream);
/// Whether this thread may end it: the one that began it, but for mode kRelaxed.
STAND_IN_API bool may_end_capture(Stream stream);
/// The work since begin_capture, none of which has run; false: the capture has failed.
STAND_IN_API bool end_capture(Stream stream, Work& work);
/// Keeps the work if the stream is captured; false: it is to be run.
bool record_work(Stream stream, const std::function<void()>& work);

// ---- Time --------------------------------------------------------------------------------------

/// Work so far in simulated milliseconds; cuDNN's stand-in adds to it.
STAND_IN_API double clock_now();
STAND_IN_API void advance_clock(double milliseconds);

}  // namespace openrnn::stand_in
