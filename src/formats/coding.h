// Little-endian fields: fixed width, and varints of seven bits a byte.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace openrnn::formats {

/// Reads fields from the front of bytes. A read returns false, and consumes nothing, if the bytes
/// end first or the varint is too long.
class ByteCursor {
 public:
  explicit ByteCursor(std::string_view bytes) : rest_(bytes) {}

  std::size_t remaining() const noexcept { return rest_.size(); }
  bool empty() const noexcept { return rest_.empty(); }

  template <class T>
  bool fixed(T* value) noexcept {
    if (rest_.size() < sizeof(T)) return false;
    std::memcpy(value, rest_.data(), sizeof(T));
    rest_.remove_prefix(sizeof(T));
    return true;
  }

  bool varint64(std::uint64_t* value) noexcept {
    std::uint64_t result = 0;
    for (std::size_t i = 0; i < rest_.size() && i < 10; ++i) {
      const auto byte = static_cast<unsigned char>(rest_[i]);
      if (i == 9 && byte > 1) return false;  // the tenth byte holds bit 63 alone
      result |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
      if (byte < 0x80) {
        rest_.remove_prefix(i + 1);
        *value = result;
        return true;
      }
    }
    return false;
  }

  bool varint32(std::uint32_t* value) noexcept {
    ByteCursor probe = *this;
    std::uint64_t wide = 0;
    if (!probe.varint64(&wide) || wide > 0xffffffffu) return false;
    *this = probe;
    *value = static_cast<std::uint32_t>(wide);
    return true;
  }

  bool bytes(std::uint64_t size, std::string_view* value) noexcept {
    if (size > rest_.size()) return false;
    *value = rest_.substr(0, static_cast<std::size_t>(size));
    rest_.remove_prefix(static_cast<std::size_t>(size));
    return true;
  }

 private:
  std::string_view rest_;
};

template <class T>
void put_fixed(std::string* out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out->append(bytes, sizeof(T));
}

inline void put_varint64(std::string* out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

}  // namespace openrnn::formats
