// Thrown when memory runs out: a std::bad_alloc that says how much was asked for.
#pragma once

#include <array>
#include <cstdio>
#include <new>

namespace openrnn {

class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::size_t bytes) noexcept {
    std::snprintf(text_.data(), text_.size(),
                  "[allocate] %zu bytes are asked for, expected no more than the machine has free",
                  bytes);
  }
  const char* what() const noexcept override { return text_.data(); }

 private:
  // No string: there may be no memory for one.
  std::array<char, 112> text_{};
};

}  // namespace openrnn
