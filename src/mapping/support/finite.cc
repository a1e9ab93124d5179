#include "mapping/support/finite.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/support/options.h"

namespace openrnn::mapping {

namespace {

/// Where an element has its exponent, and the lowest bit of it.
template <class Bits>
struct FloatForm {
  Bits exponent = 0, lowest = 0;
};

// A few pages: what has to be counted is still in the L1 cache.
constexpr std::size_t kBlockBytes = 1 << 14;

// An exponent of ones alone leaves the sum in the sign's bit. Without a branch, for vectors.
template <class Bits>
bool all_finite(const Bits* values, std::size_t count, FloatForm<Bits> form) {
  constexpr auto kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  Bits any = 0;
  for (std::size_t i = 0; i < count; ++i) {
    any = static_cast<Bits>(any | static_cast<Bits>((values[i] & form.exponent) + form.lowest));
  }
  return (any & kSign) == 0;
}

template <class Bits>
NonFinite count_in(const ConstArrayView& values, FloatForm<Bits> form) {
  constexpr std::size_t kBlock = kBlockBytes / sizeof(Bits);
  constexpr auto kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  NonFinite found;
  Bits block[kBlock];
  const auto total = static_cast<std::size_t>(values.size());
  for (std::size_t first = 0; first < total; first += kBlock) {
    const std::size_t count = std::min(kBlock, total - first);
    std::memcpy(block, static_cast<const std::byte*>(values.data) + first * sizeof(Bits),
                count * sizeof(Bits));
    if (all_finite(block, count, form)) continue;
    for (std::size_t i = 0; i < count; ++i) {
      if ((block[i] & form.exponent) != form.exponent) continue;
      const bool infinite = (block[i] & static_cast<Bits>(~form.exponent & ~kSign)) == 0;
      ++(infinite ? found.infinite : found.nan);
    }
  }
  return found;
}

void add_note(const MappedNetwork& network, const std::string& part, const Array& values,
              std::vector<std::string>* notes) {
  const NonFinite found = count_non_finite(values.view());
  if (found.nan + found.infinite == 0) return;
  notes->push_back(message(network_called(network.name), " has ", found.nan, " NaN and ",
                           found.infinite, " infinite of ", values.size(), " values in ", part));
}

}  // namespace

NonFinite count_non_finite(const ConstArrayView& values) {
  switch (values.dtype) {
    case DType::kFloat16:
      return count_in<std::uint16_t>(values, {0x7c00, 0x0400});
    case DType::kBfloat16:
      return count_in<std::uint16_t>(values, {0x7f80, 0x0080});
    case DType::kFloat32:
      return count_in<std::uint32_t>(values, {0x7f800000u, 0x00800000u});
    case DType::kFloat64:
      return count_in<std::uint64_t>(values, {0x7ff0000000000000u, 0x0010000000000000u});
    default:
      return {};
  }
}

std::vector<std::string> non_finite_notes(const MappedNetwork& network) {
  std::vector<std::string> notes;
  add_note(network, "params", network.params, &notes);
  if (network.initial_h) add_note(network, "initial_h", *network.initial_h, &notes);
  if (network.initial_c) add_note(network, "initial_c", *network.initial_c, &notes);
  for (const auto& [slot, values] : network.slots) {
    add_note(network, "the slot '" + excerpt(slot) + "'", values, &notes);
  }
  return notes;
}

}  // namespace openrnn::mapping
