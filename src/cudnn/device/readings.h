// Small readings of a GPU's memory that wait for nothing later.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "cudnn/gpu/event.h"
#include "openrnn/engine.h"

namespace openrnn::cudnn {

/// Copies into pinned memory with an event behind each, which alone is waited for. Thread-safe. Its
/// readings may outlive every other object but the context.
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
