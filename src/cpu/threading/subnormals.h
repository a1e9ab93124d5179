// The floating-point environment that every kernel expects.
#pragma once

#include <cstdint>

namespace openrnn::cpu {

/// While it exists, this thread flushes subnormal numbers to zero, as every kernel expects; then
/// the caller's floating-point environment is restored.
class FlushSubnormals {
 public:
  FlushSubnormals() noexcept;
  ~FlushSubnormals();
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  std::uint64_t saved_;
};

}  // namespace openrnn::cpu
