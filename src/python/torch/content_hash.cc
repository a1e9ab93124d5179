#include "python/torch/content_hash.h"

#include <array>
#include <cstring>
#include <utility>

namespace openrnn::python {
namespace {

// Chains that do not wait for each other: one product of 64 x 64 bits can start each cycle, and its
// chain goes on some five cycles later.
constexpr std::size_t kLanes = 8;
constexpr std::size_t kBlock = kLanes * 16;

// Odd numbers without structure: fractional digits of square roots of the first primes.
constexpr std::array<std::uint64_t, kLanes> kKeys{
    0x6a09e667f3bcc909, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

std::uint64_t word(const unsigned char* at) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Both halves of the product; every bit of either factor reaches the middle of it.
std::uint64_t mixed(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

using Lanes = std::array<std::uint64_t, kLanes>;

// The sum keeps what a factor of zero would lose. Spelt out lane by lane, so that they stay in
// registers whatever the compiler unrolls.
template <std::size_t... kLane>
void absorb_lanes(Lanes& lanes, const unsigned char* block,
                  std::index_sequence<kLane...>) noexcept {
  ((lanes[kLane] = mixed(word(block + 16 * kLane) ^ kKeys[kLane],
                         word(block + 16 * kLane + 8) ^ lanes[kLane]) +
                   word(block + 16 * kLane)),
   ...);
}

void absorb(Lanes& lanes, const unsigned char* block) noexcept {
  absorb_lanes(lanes, block, std::make_index_sequence<kLanes>());
}

}  // namespace

std::uint64_t content_hash(const void* data, std::size_t bytes, std::uint64_t seed) noexcept {
  const auto* at = static_cast<const unsigned char*>(data);
  Lanes lanes = kKeys;
  for (std::uint64_t& lane : lanes) lane ^= seed;
  std::size_t left = bytes;
  for (; left >= kBlock; left -= kBlock, at += kBlock) absorb(lanes, at);
  if (left > 0) {
    std::array<unsigned char, kBlock> last{};
    std::memcpy(last.data(), at, left);
    absorb(lanes, last.data());
  }
  std::uint64_t hash = mixed(seed ^ kKeys[0], bytes ^ kKeys[1]);
  for (const std::uint64_t lane : lanes) hash = mixed(hash ^ lane, kKeys[2]) + lane;
  return hash;
}

}  // namespace openrnn::python
