// Memory that is used again from call to call: fresh pages cost more than what is computed in them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace openrnn::cpu {

/// An owned piece of uninitialized memory, 64-byte aligned; large ones ask for huge pages. What is
/// given back is kept for the next one of its size. Throws: std::bad_alloc.
class Block {
 public:
  Block() = default;
  explicit Block(std::size_t bytes);
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;
  ~Block();

  void* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Hands out aligned pieces of one block: a first pass with null memory measures.
class Carver {
 public:
  explicit Carver(void* memory = nullptr) : memory_(static_cast<std::byte*>(memory)) {}
  template <class T>
  T* take(std::int64_t count) {
    std::byte* const at = memory_ ? memory_ + used_ : nullptr;
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return reinterpret_cast<T*>(at);
  }
  std::size_t used() const noexcept { return used_; }

 private:
  std::byte* memory_;
  std::size_t used_ = 0;
};

}  // namespace openrnn::cpu
