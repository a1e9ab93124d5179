// What a mutated source asks: is mutation N switched on? scripts/mutation puts this header before
// every file of the mutated build. OPENRNN_MUTATION=N switches one on; OPENRNN_MUTATIONS_REACHED
// names a file with a byte for each mutation, which becomes 1 when the mutated place is reached.
//
// All functions are internal: objects of several instruction sets are linked into one program.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <type_traits>

namespace openrnn_mutation {

inline int active __attribute__((visibility("hidden"))) = -2;  // -2: not read yet, -1: none
inline unsigned char* reached __attribute__((visibility("hidden"))) = nullptr;

namespace {

// By system calls alone: tests count, and let fail, the calls of the C library.
[[gnu::cold, maybe_unused]] unsigned char* map_file(const char* path) {
  const int file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0));
  if (file < 0) return nullptr;
  struct stat status;
  long bytes = -1;
  if (syscall(SYS_fstat, file, &status) == 0)
    bytes = syscall(SYS_mmap, 0, status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  syscall(SYS_close, file);
  return bytes == -1 ? nullptr : reinterpret_cast<unsigned char*>(bytes);
}

[[gnu::noinline, gnu::cold, maybe_unused]] void read_environment() {
  if (const char* path = getenv("OPENRNN_MUTATIONS_REACHED")) reached = map_file(path);
  const char* number = getenv("OPENRNN_MUTATION");
  active = number && *number ? atoi(number) : -1;
}

[[maybe_unused]] inline bool asked(int number) {
  if (__builtin_expect(active == -2, 0)) read_environment();
  if (__builtin_expect(reached != nullptr, 0) && !reached[number]) reached[number] = 1;
  return __builtin_expect(active == number, 0);
}

// Constants of the program are never mutated.
[[maybe_unused]] constexpr bool on(int number) {
  return __builtin_is_constant_evaluated() ? false : asked(number);
}

#define OPENRNN_MUTATED_OPERATOR(name, op, other)              \
  template <class A, class B>                                  \
  [[maybe_unused]] constexpr auto name(int number, A a, B b) { \
    return on(number) ? (a other b) : (a op b);                \
  }
OPENRNN_MUTATED_OPERATOR(less, <, <=)
OPENRNN_MUTATED_OPERATOR(less_equal, <=, <)
OPENRNN_MUTATED_OPERATOR(greater, >, >=)
OPENRNN_MUTATED_OPERATOR(greater_equal, >=, >)
OPENRNN_MUTATED_OPERATOR(plus, +, -)
OPENRNN_MUTATED_OPERATOR(times, *, +)
#undef OPENRNN_MUTATED_OPERATOR

template <class A, class B>
[[maybe_unused]] constexpr auto minus(int number, A a, B b) {
  if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
    return on(number) ? (a - b) + 1 : (a - b);
  } else {
    return on(number) ? (a + b) : (a - b);
  }
}

}  // namespace
}  // namespace openrnn_mutation
