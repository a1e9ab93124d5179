// Pinned host memory for copies to a GPU and back.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>

#include "cudnn/gpu/context.h"

namespace openrnn::cudnn {

/// Copies for host memory of any kind: upload enqueues on a stream, has read all of it when it
/// returns, and waits for the GPU only if much is in flight; download waits. Thread-safe.
class Staging {
 public:
  explicit Staging(Context& context);
  ~Staging();

  // For a thread where the context is current.
  void upload(CUstream stream, void* to, const void* host, std::size_t bytes);
  void download(void* host, const void* from, std::size_t bytes);

 private:
  class Slot;
  std::unique_ptr<Slot> take();
  void put(std::unique_ptr<Slot> slot);

  Context& context_;
  std::mutex mutex_;
  /// Oldest use first.
  std::deque<std::unique_ptr<Slot>> slots_;
};

}  // namespace openrnn::cudnn
