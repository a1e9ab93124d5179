// The memory of one run, counted where a sanitizer counts it: a file may not ask for more than a
// small multiple of its size.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

// NOLINTBEGIN(bugprone-reserved-identifier): the sanitizers' interface
extern "C" {
// Null in builds without a sanitizer, where nothing is counted.
__attribute__((weak)) int __sanitizer_install_malloc_and_free_hooks(
    void (*allocated)(const volatile void*, std::size_t), void (*freed)(const volatile void*));
__attribute__((weak)) std::size_t __sanitizer_get_allocated_size(const volatile void* block);
__attribute__((weak)) void __sanitizer_print_stack_trace();
}
// NOLINTEND(bugprone-reserved-identifier)

namespace openrnn::fuzz {

/// Ends the program, with the stack of the allocation, where a run has more at once.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::uint64_t bytes) : before_(most_.load()) {
    static const bool is_installed =
        __sanitizer_install_malloc_and_free_hooks &&
        __sanitizer_install_malloc_and_free_hooks(allocated, freed) != 0;
    if (is_installed) most_ = now_ + static_cast<std::int64_t>(bytes);
  }
  MemoryLimit(const MemoryLimit&) = delete;
  ~MemoryLimit() { most_ = before_; }

  /// Of a reader: decompressed data are at most 64 times a file and a megabyte (formats/zip), and
  /// are there twice while they become tensors; the rest is what small files need.
  static std::uint64_t of_file(std::uint64_t bytes) { return (8u << 20) + 160 * bytes; }
  /// Expressions of constants may make 16 MB of a small ONNX file (mapping/onnx), of which a
  /// network is packed twice.
  static std::uint64_t of_onnx(std::uint64_t bytes) { return (64u << 20) + 160 * bytes; }
  /// Of a network of at most 16384 parameters.
  static constexpr std::uint64_t kOfRun = 96u << 20;

 private:
  static void allocated(const volatile void*, std::size_t size) {
    now_ += static_cast<std::int64_t>(size);
    if (now_ <= most_) return;
    std::fprintf(stderr, "ERROR: %lld bytes are allocated at once, expected at most %lld\n",
                 static_cast<long long>(now_.load()), static_cast<long long>(most_.load()));
    most_ = INT64_MAX;
    if (__sanitizer_print_stack_trace) __sanitizer_print_stack_trace();
    std::abort();
  }
  static void freed(const volatile void* block) {
    if (block) now_ -= static_cast<std::int64_t>(__sanitizer_get_allocated_size(block));
  }

  inline static std::atomic<std::int64_t> now_ = 0, most_ = INT64_MAX;
  std::int64_t before_;
};

/// What a fuzzer finds that no sanitizer sees.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "ERROR: %s\n", what);
  std::abort();
}

}  // namespace openrnn::fuzz
