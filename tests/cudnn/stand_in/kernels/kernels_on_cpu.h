// Runs the library's CUDA kernels on the CPU: their own source, compiled by the C++ compiler, each
// thread of a block a fiber that stands still at __syncthreads until the others are there.
#pragma once

#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cudnn/stand_in/kernels/cuda_on_cpu.h"

namespace openrnn::stand_in {

/// A launch as cuLaunchKernel gives it.
struct Launch {
  Dim3 grid, block;
  std::size_t shared_bytes = 0;
  /// One pointer an argument.
  void** arguments = nullptr;
  /// Makes a host's address of a word that is a device pointer, and leaves any other word alone.
  /// Applied to all aligned words of all arguments, as pointers lie inside structs. Null: none.
  std::uint64_t (*translate)(std::uint64_t word) = nullptr;
};

/// Runs to the end. Throws: std::runtime_error for an unknown name, sizes beyond what GPUs have, a
/// barrier that some threads leave out, or shared memory written beyond shared_bytes.
/// STAND_IN_THREADS=reverse in the environment runs blocks and threads from the last to the first:
/// a kernel that lacks a barrier then gives another result.
void run_kernel(const std::string& name, const Launch& launch);
/// The run of a launch whose arguments are copied now, as a GPU does. Throws: for an unknown name
/// and for sizes.
std::function<void()> prepare_kernel(const std::string& name, const Launch& launch);
bool has_kernel(const std::string& name);
std::vector<std::string> kernel_names();

/// Calls one thread's body.
using Body = std::function<void()>;
/// From a launch's arguments to the body that runs with copies of them.
using Bind = std::function<Body(const Launch&)>;
void add_kernel(const std::string& name, Bind bind);

/// Translates the words of one argument.
void translate_words(const Launch& launch, void* argument, std::size_t bytes);

template <class... Args>
Body bind_arguments(void (*kernel)(Args...), const Launch& launch) {
  std::size_t at = 0;
  const auto next = [&]<class T>(std::type_identity<T>) {
    T value = *static_cast<const T*>(launch.arguments[at++]);
    translate_words(launch, &value, sizeof(T));
    return value;
  };
  // Braces evaluate from left to right.
  std::tuple<Args...> values{next(std::type_identity<Args>{})...};
  return [kernel, values] { std::apply(kernel, values); };
}

/// `static const Kernel k("name", function);` at namespace scope makes a kernel known.
struct Kernel {
  template <class... Args>
  Kernel(const std::string& name, void (*function)(Args...)) {
    add_kernel(name, [function](const Launch& launch) { return bind_arguments(function, launch); });
  }
};

}  // namespace openrnn::stand_in
