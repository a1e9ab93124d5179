// What the libraries that stand in for CUDA's count.
#pragma once

#include <dlfcn.h>

#include <optional>
#include <string>

namespace openrnn::testing {

/// The answer of a function that the driver's stand-in has besides the driver's own; empty on a
/// GPU, and where no driver has been loaded.
template <class... Args>
std::optional<long> stand_in_count(const char* function, Args... args) {
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return std::nullopt;
  const auto count = reinterpret_cast<long (*)(Args...)>(dlsym(library, function));
  const std::optional<long> found = count ? std::optional(count(args...)) : std::nullopt;
  dlclose(library);
  return found;
}

/// How often a function of the driver, cuBLAS or cuDNN, or a kernel, has been called since this was
/// made.
class Counted {
 public:
  explicit Counted(std::string name) : name_(std::move(name)), before_(calls()) {}
  long now() const { return calls() - before_; }

 private:
  long calls() const { return stand_in_count("stand_in_calls", name_.c_str()).value_or(-1); }

  std::string name_;
  long before_;
};

}  // namespace openrnn::testing
