// Redirection of one thread's work and memory, for recording graphs.
#pragma once

#include <cuda.h>

namespace openrnn::cudnn {

class Arena;
class Context;

/// While it exists, this thread's GPU memory comes from an arena, and its work goes to another
/// stream if one is given. Of two nested ones the inner applies.
class Detour {
 public:
  Detour(const Context& context, Arena& memory, CUstream stream = nullptr);
  ~Detour();
  Detour(const Detour&) = delete;
  Detour& operator=(const Detour&) = delete;

  /// This thread's; null: none.
  static const Detour* of(const Context& context) noexcept;
  Arena& memory() const noexcept { return memory_; }
  /// Null: as usual.
  CUstream stream() const noexcept { return stream_; }

 private:
  const Context& context_;
  Arena& memory_;
  CUstream stream_;
  const Detour* outer_;
};

}  // namespace openrnn::cudnn
