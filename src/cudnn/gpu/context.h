// One GPU of this process: its primary context, its stream, its memory and our kernels on it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "cudnn/gpu/check.h"
#include "cudnn/gpu/pool.h"

namespace openrnn::cudnn {

class BusyClock;
class Staging;
class Uploads;

/// The most GPUs that are supported.
inline constexpr int kMostGpus = 64;

/// Lives as long as the process, since arrays may die after every static object. Thread-safe.
///
/// All work of a GPU goes to one stream, in the order of the calls, whichever thread makes them: so
/// released memory may be reused at once, and only calls that copy to the host wait. It is ordered
/// with the legacy default stream too, which other libraries of the process usually use. Only new
/// memory is filled from the host on another stream, for which this one waits.
class Context {
 public:
  /// Makes the context current for this thread while it exists. Throws: EngineError after a fork.
  class Current {
   public:
    explicit Current(const Context& context);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    BusyClock* clock_;
  };

  /// Throws: EngineError with the line of cudnn_missing when the GPU cannot be used.
  static Context& of(int ordinal);
  /// Why it cannot; empty when it can. Makes no context.
  static std::string missing(int ordinal);
  /// The driver's name of a usable GPU; makes no context either.
  static std::string gpu_name(int ordinal);

  int ordinal() const noexcept { return ordinal_; }
  /// Of this thread's work: while it records a graph, the one that is recorded.
  CUstream stream() const noexcept;
  int multiprocessors() const noexcept { return multiprocessors_; }
  /// 75 for compute capability 7.5.
  int capability() const noexcept { return capability_; }

  /// 256-byte aligned, not cleared; from the arena of this thread's Detour, else from the pool.
  /// Throws: EngineError when there is no room.
  std::shared_ptr<void> allocate(std::size_t bytes);
  /// New memory with a copy of the host's bytes, all of which it has read when it returns. For a
  /// thread where the context is current.
  std::shared_ptr<void> bring(const void* host, std::size_t bytes);
  Staging& staging() noexcept { return *staging_; }
  Uploads& uploads() noexcept { return *uploads_; }
  Pool& pool() noexcept { return pool_; }
  /// Called once when allocate finds no memory; returns whether it released any.
  using Spare = bool (*)(const Context&);
  void set_spare(Spare spare) noexcept { spare_.store(spare, std::memory_order_release); }

  /// A kernel of src/cudnn/kernels by its name, for cuLaunchKernel. Throws: EngineError.
  CUfunction kernel(const char* name);

  // All of these are for a thread where the context is current; they only enqueue.
  void copy(void* to, const void* from, std::size_t bytes);
  /// On a stream of this context.
  void copy_in(CUstream stream, void* to, const void* host, std::size_t bytes);
  void zero(void* to, std::size_t bytes);
  /// Into pinned memory, which has the bytes when the work up to here is done.
  void copy_out_later(void* pinned, const void* from, std::size_t bytes);
  /// Waits until the bytes are on the host.
  void copy_out(void* host, const void* from, std::size_t bytes);
  /// Waits for everything that was enqueued.
  void wait();

  /// Sets the clock of every call from now on; null: none. While no other thread uses the GPU.
  void observe(BusyClock* clock) noexcept { clock_.store(clock, std::memory_order_release); }

 private:
  explicit Context(int ordinal);

  int ordinal_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  int multiprocessors_ = 0, capability_ = 0;
  Pool pool_;
  const std::unique_ptr<Staging> staging_;
  const std::unique_ptr<Uploads> uploads_;
  std::atomic<BusyClock*> clock_{nullptr};
  std::atomic<Spare> spare_{nullptr};
  std::mutex mutex_;  // of what follows
  std::vector<CUmodule> modules_;
  std::unordered_map<std::string, CUfunction> kernels_;
};

inline CUdeviceptr device_address(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

}  // namespace openrnn::cudnn
