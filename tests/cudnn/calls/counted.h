// What the pretended libraries count.
#pragma once

#include <dlfcn.h>

#include <string>

namespace openrnn::testing {

/// How often a function of the driver, cuBLAS or cuDNN, or a kernel, was called so far; -1 on a
/// GPU, which does not count.
inline long calls_of(const std::string& name) {
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return -1;
  using Count = long (*)(const char*);
  const auto count = reinterpret_cast<Count>(dlsym(library, "stand_in_calls"));
  const long calls = count ? count(name.c_str()) : -1;
  dlclose(library);
  return calls;
}

/// The calls of one name since it was made.
class Counted {
 public:
  explicit Counted(std::string name) : name_(std::move(name)), before_(calls_of(name_)) {}
  long now() const { return calls_of(name_) - before_; }

 private:
  std::string name_;
  long before_;
};

}  // namespace openrnn::testing
