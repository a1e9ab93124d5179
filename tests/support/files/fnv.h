// A hash of what tests keep of long results, as in tests/golden.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace openrnn {

/// FNV-1a, 64 bits, of bytes that are added one behind the other.
class Hash {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) {
      value_ = (value_ ^ static_cast<unsigned char>(byte)) * std::uint64_t{0x100000001B3u};
    }
  }
  std::uint64_t value() const { return value_; }
  /// Hexadecimal, 16 of them.
  std::string digits() const {
    char out[17];
    std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(value_));
    return out;
  }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325u;
};

}  // namespace openrnn
