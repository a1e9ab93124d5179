// What tells data apart, found piece by piece.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace openrnn::train {

class Fingerprint {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) {
      hash_ = (hash_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
    }
  }
  std::string text() const {
    std::array<char, 17> digits{};
    std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(hash_));
    return digits.data();
  }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325U;  // FNV-1a, 64 bits
};

}  // namespace openrnn::train
