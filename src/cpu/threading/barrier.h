// The barrier of the members of a job.
#pragma once

#include <atomic>
#include <cstdint>

namespace openrnn::cpu {

/// Members of a job spin until all have arrived. Can be reused at once.
class alignas(64) Barrier {
 public:
  /// Whether a member found that one thread would have been faster; every member gets the same
  /// answer.
  bool wait(int members) noexcept;

 private:
  bool complete(std::uint32_t phase) noexcept;

  std::atomic<int> arrived_{0};
  std::atomic<std::uint32_t> phase_{0};  // odd when the caller is to finish alone
  std::atomic<bool> late_{false};
};

}  // namespace openrnn::cpu
