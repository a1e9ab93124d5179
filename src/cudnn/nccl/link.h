// One rank's connection: its communicator of NCCL, and a stream and memory of its GPU.
#pragma once

#include <chrono>

#include "cudnn/gpu/event.h"
#include "cudnn/load/nccl_api.h"

namespace openrnn::cudnn {

/// No call waits where it could not be ended: NCCL's calls return before they are through, and the
/// host looks at NCCL's errors, at those of the other ranks and at the time until they are. After
/// an error all that NCCL holds is freed, and every later call throws that error again.
class NcclLink {
 public:
  /// Bytes of device memory on each side of a call.
  static constexpr std::size_t kPieceBytes = std::size_t{16} << 20;

  /// Throws: EngineError when the ranks do not find each other.
  NcclLink(const NcclPlace& place, const NcclId& id);
  ~NcclLink();
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;

  const NcclPlace& place() const noexcept { return place_; }
  NcclComm comm() const noexcept { return comm_; }
  CUstream stream() const noexcept { return stream_; }
  void* send_buffer() const noexcept { return reinterpret_cast<void*>(send_); }        // NOLINT
  void* receive_buffer() const noexcept { return reinterpret_cast<void*>(receive_); }  // NOLINT

  /// Runs `work` with the GPU's context current.
  template <class Work>
  void with_gpu(Work&& work) {
    require_open();
    const Current current(context_);
    try {
      work();
    } catch (const std::exception& error) {
      break_off(error.what());
      throw;
    }
  }
  // For the work of with_gpu: copies at `offset` of a buffer, on the stream; what copy_out copies
  // is on the host when it returns.
  void copy_in(std::size_t offset, const void* host, std::size_t bytes) const;
  void copy_out(void* host, std::size_t offset, std::size_t bytes) const;
  /// Throws: EngineError unless NCCL has accepted the call.
  void accept(NcclResult result, const char* call);
  /// Waits until the GPU is through with what was enqueued. Throws: EngineError.
  void wait(const char* call);

  void abort() noexcept { break_off("it was aborted"); }

 private:
  class Current {
   public:
    explicit Current(CUcontext context);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
  };
  using Clock = std::chrono::steady_clock;

  void open(const NcclId& id);
  void require_open() const;
  void look_around(const char* call, Clock::time_point end) const;
  [[noreturn]] void refuse(NcclResult result, const char* call) const;
  template <class Done>
  void poll(const char* call, Done&& done);
  void break_off(const std::string& why) noexcept;
  bool finish() noexcept;
  void release() noexcept;

  NcclPlace place_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUdeviceptr send_ = 0, receive_ = 0;
  NcclComm comm_ = nullptr;
  std::string broken_;  // why; empty: it is whole
};

}  // namespace openrnn::cudnn
