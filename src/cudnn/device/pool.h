// Memory of one GPU.
#pragma once

#include <cstddef>
#include <memory>

namespace openrnn::cudnn {

class Context;

/// Thread-safe.
class Pool {
 public:
  explicit Pool(const Context& context) : context_(context) {}

  /// 256-byte aligned, not cleared, never null. Throws: EngineError when there is no room.
  std::shared_ptr<void> allocate(std::size_t bytes);

 private:
  const Context& context_;
};

}  // namespace openrnn::cudnn
