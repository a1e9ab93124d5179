// Small asynchronous copies from a GPU that wait for no later work.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "cudnn/gpu/event.h"
#include "openrnn/device.h"

namespace openrnn::cudnn {

/// Copies into pinned memory, each followed by the event that a reader waits for. Thread-safe. Its
/// readings may outlive every other object except the context.
class Readings {
 public:
  explicit Readings(Context& context);
  ~Readings();
  /// For a thread where the context is current.
  std::unique_ptr<Reading> begin(const void* from, std::size_t bytes);

 private:
  struct Slot;
  struct Free;
  class Late;
  std::unique_ptr<Slot> take(std::size_t bytes);

  Context& context_;
  std::shared_ptr<Free> free_;
};

}  // namespace openrnn::cudnn
