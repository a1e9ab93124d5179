// Pinned memory of the host, through which bytes go to a GPU and come back.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>

#include "cudnn/gpu/context.h"

namespace openrnn::cudnn {

/// Copies that are right whatever kind of memory the host's is: upload, which enqueues on a stream,
/// has read all of it when it returns and does not wait for the GPU unless much is under way;
/// download waits. Thread-safe.
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
