// Memory that looks like a GPU's: its pointers carry a bit that no host address has, so that any
// access from host code ends the program, and a host pointer given in its place is refused.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "cpu/device/cpu_device.h"

namespace openrnn::testing {

constexpr std::uintptr_t kTag = std::uintptr_t{1} << 62;

inline bool is_tagged(const void* pointer) {
  return (reinterpret_cast<std::uintptr_t>(pointer) & kTag) != 0;
}

template <class T>
T* tagged(T* pointer) {
  // NOLINTNEXTLINE(*no-int-to-ptr): only a number can take the tag
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pointer) | kTag);
}

/// The host address behind a pointer of the device; null stays null. Throws for any other one.
template <class T>
T* untagged(T* pointer) {
  if (pointer == nullptr) return nullptr;
  if (!is_tagged(pointer)) throw std::logic_error("a host pointer, expected one of the device");
  // NOLINTNEXTLINE(*no-int-to-ptr): as above
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pointer) & ~kTag);
}

/// A pointer of the host, checked.
template <class T>
T* of_host(T* pointer) {
  if (is_tagged(pointer)) throw std::logic_error("a device pointer, expected one of the host");
  return pointer;
}

/// Filled with bits that are NaN in every floating dtype, as nobody may read it before writing.
inline std::shared_ptr<void> allocate_tagged(std::size_t bytes) {
  const std::shared_ptr<void> memory = cpu_device().allocate(bytes);
  if (bytes > 0) std::memset(memory.get(), 0xff, bytes);
  return {memory, tagged(memory.get())};
}

}  // namespace openrnn::testing
