// The cpu engine, and its instruction sets and threads for the time of a scope.
#pragma once

#include <string>

#include "openrnn/runtime.h"

namespace openrnn::conformance {

inline const Engine& cpu() { return engine("cpu"); }

/// Runs on one instruction set while it lives.
class ForcedIsa {
 public:
  explicit ForcedIsa(std::string_view isa) : before_(cpu_isa()) { force_cpu_isa(isa); }
  ~ForcedIsa() { force_cpu_isa(before_); }
  ForcedIsa(const ForcedIsa&) = delete;
  ForcedIsa& operator=(const ForcedIsa&) = delete;

 private:
  std::string before_;
};

/// What the products of `spec` are on an instruction set.
inline std::string kind_on(std::string_view isa, const RnnSpec& spec) {
  const ForcedIsa forced(isa);
  return std::string(cpu().math_kind(spec));
}

/// Runs on so many threads while it lives.
class ForcedThreads {
 public:
  explicit ForcedThreads(int n) : before_(num_threads()) { set_num_threads(n); }
  ~ForcedThreads() { set_num_threads(before_); }
  ForcedThreads(const ForcedThreads&) = delete;
  ForcedThreads& operator=(const ForcedThreads&) = delete;

 private:
  int before_;
};

}  // namespace openrnn::conformance
