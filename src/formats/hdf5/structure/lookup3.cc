#include "formats/hdf5/structure/lookup3.h"

#include <cstddef>

namespace openrnn::formats {

namespace {

std::uint32_t rotated(std::uint32_t x, unsigned bits) { return x << bits | x >> (32 - bits); }

// Up to four bytes of what is left; zeros behind the end.
std::uint32_t word_at(std::string_view bytes, std::size_t at) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < 4 && at + i < bytes.size(); ++i) {
    word |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  return word;
}

}  // namespace

std::uint32_t lookup3(std::string_view bytes) {
  std::uint32_t a = 0xdeadbeef + static_cast<std::uint32_t>(bytes.size());
  std::uint32_t b = a, c = a;
  while (bytes.size() > 12) {
    a += word_at(bytes, 0);
    b += word_at(bytes, 4);
    c += word_at(bytes, 8);
    a = (a - c) ^ rotated(c, 4), c += b;
    b = (b - a) ^ rotated(a, 6), a += c;
    c = (c - b) ^ rotated(b, 8), b += a;
    a = (a - c) ^ rotated(c, 16), c += b;
    b = (b - a) ^ rotated(a, 19), a += c;
    c = (c - b) ^ rotated(b, 4), b += a;
    bytes.remove_prefix(12);
  }
  if (bytes.empty()) return c;
  a += word_at(bytes, 0);
  b += word_at(bytes, 4);
  c += word_at(bytes, 8);
  c = (c ^ b) - rotated(b, 14);
  a = (a ^ c) - rotated(c, 11);
  b = (b ^ a) - rotated(a, 25);
  c = (c ^ b) - rotated(b, 16);
  a = (a ^ c) - rotated(c, 4);
  b = (b ^ a) - rotated(a, 14);
  return (c ^ b) - rotated(b, 24);
}

}  // namespace openrnn::formats
