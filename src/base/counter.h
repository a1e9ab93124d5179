// The arithmetic of the counter-based random numbers: constant expressions, which the compiler of
// the GPU kernels takes as well, so that a mask has the same bits everywhere.
#pragma once

#include <array>
#include <cstdint>

namespace openrnn::counter {

// Philox's multipliers and Weyl increments, as in the paper.
inline constexpr std::uint64_t kMultiply0 = 0xD2511F53, kMultiply1 = 0xCD9E8D57;
inline constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;

/// The finalizer of SplitMix64: spreads every bit of its input over the output.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

constexpr std::array<std::uint32_t, 2> split(std::uint64_t x) {
  return {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(x >> 32)};
}

/// openrnn::philox for inlining: an exported function may be replaced at run time.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                              std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = kMultiply0 * counter[0];
    const std::uint64_t p1 = kMultiply1 * counter[2];
    counter = {
        static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
        static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

/// The key of the words of a call's masks.
constexpr std::array<std::uint32_t, 2> dropout_words(std::uint64_t seed, std::uint64_t call) {
  return split(mix(seed) ^ mix(mix(call)));
}

/// A word below this drops its unit; 2^32 drops all, so the comparison has 64 bits.
constexpr std::uint64_t dropout_threshold(double rate) {
  return static_cast<std::uint64_t>(rate * 0x1p32);
}

/// The factor of a unit that is kept.
template <class T>
constexpr T dropout_scale(double rate) {
  return rate < 1.0 ? static_cast<T>(1.0 / (1.0 - rate)) : T{0};
}

/// The words of units 4 * group to 4 * group + 3 of a row of a mask.
constexpr std::array<std::uint32_t, 4> dropout_group(std::array<std::uint32_t, 2> words,
                                                     std::uint32_t layer, std::uint32_t time,
                                                     std::uint32_t row, std::uint32_t group) {
  return philox({group, row, time, layer}, words);
}

/// Numbers of the rows of an array of which the caller has a part: `group` rows that follow each
/// other in the whole, too, of every `stride` rows there, from row `first` of them on. A group of 0
/// is the whole.
struct PartRows {
  std::int64_t group = 0, stride = 0, first = 0;
  constexpr std::int64_t number(std::int64_t row) const {
    return group == 0 ? row : row / group * stride + first + row % group;
  }
};

}  // namespace openrnn::counter
