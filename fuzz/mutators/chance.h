// The choices of a mutator, and how it stands in for libFuzzer's own.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <string_view>

/// libFuzzer's own changes of bytes; null where it is not linked in.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size)
    __attribute__((weak));

namespace openrnn::fuzz {

/// Numbers at which lengths and counts go wrong.
inline constexpr std::uint64_t kNumbers[] = {
    0,        1,   2,          3,          4,          5,          7,          8,
    9,        14,  16,         17,         63,         64,         127,        128,
    255,      256, 1000,       0x7fff,     0xffff,     1u << 16,   1u << 20,   0x7fffffffu,
    1u << 31, ~0u, 1ull << 32, 1ull << 40, 1ull << 60, 1ull << 62, 1ull << 63, ~0ull};

class Chance {
 public:
  explicit Chance(unsigned seed) : random_(seed) {}

  /// From 0 to bound - 1.
  std::size_t below(std::size_t bound) { return random_() % bound; }
  bool one_in(std::size_t bound) { return below(bound) == 0; }
  template <class List>
  auto& pick(List& list) {
    return list[below(std::size(list))];
  }
  /// One of kNumbers, or near the one that is there.
  std::uint64_t number(std::uint64_t now) {
    switch (below(4)) {
      case 0:
        return now + 1;
      case 1:
        return now - 1;
      default:
        return pick(kNumbers);
    }
  }

  /// Changes bytes as libFuzzer does; they become at most `growth` more.
  void change_bytes(std::string* bytes, std::size_t growth = 16) {
    const std::size_t size = bytes->size(), most = size + growth;
    if (most == 0) return;
    bytes->resize(most);
    auto* const data = reinterpret_cast<std::uint8_t*>(bytes->data());
    bytes->resize(change(data, size, most));
  }
  /// The same of a buffer of `most` bytes, of which `size` are used; gives the new size.
  std::size_t change(std::uint8_t* data, std::size_t size, std::size_t most) {
    // Where mutators are tested without libFuzzer: one byte.
    if (LLVMFuzzerMutate) return LLVMFuzzerMutate(data, size, most);
    if (size < most && one_in(3)) {
      data[size++] = static_cast<std::uint8_t>(below(256));
    } else if (size > 0) {
      data[below(size)] ^= static_cast<std::uint8_t>(1 + below(255));
    }
    return size;
  }

 private:
  std::mt19937 random_;
};

/// Changes bytes of one format so that its lengths and checksums stay right; false, and nothing is
/// changed, for bytes that are not of the format.
using Mutator = bool (*)(std::string* bytes, Chance& chance);

/// What LLVMFuzzerCustomMutator is given.
struct MutatorCall {
  std::uint8_t* data;
  std::size_t size, max_size;
  unsigned seed;
};

/// One in four changes is libFuzzer's own, which breaks what the mutator keeps right.
inline std::size_t mutate_with(Mutator mutator, const MutatorCall& call) {
  Chance chance(call.seed);
  if (!chance.one_in(4)) {
    std::string bytes(reinterpret_cast<const char*>(call.data), call.size);
    if (mutator(&bytes, chance) && !bytes.empty() && bytes.size() <= call.max_size) {
      std::memcpy(call.data, bytes.data(), bytes.size());
      return bytes.size();
    }
  }
  return chance.change(call.data, call.size, call.max_size);
}

}  // namespace openrnn::fuzz
