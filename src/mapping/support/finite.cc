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

template <class Bits>
Bits bits_at(const std::byte* values, std::size_t i) {
  Bits bits = 0;
  std::memcpy(&bits, values + i * sizeof(Bits), sizeof bits);
  return bits;
}

template <class Bits>
inline constexpr auto kSignBit = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));

// An exponent of ones alone leaves the sum in the sign's bit. Without a branch, for vectors.
template <class Bits>
bool all_finite(const std::byte* values, std::size_t count, FloatForm<Bits> form) {
  Bits any = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Bits exponent = bits_at<Bits>(values, i) & form.exponent;
    any = static_cast<Bits>(any | static_cast<Bits>(exponent + form.lowest));
  }
  return (any & kSignBit<Bits>) == 0;
}

template <class Bits>
NonFinite count_in(const ConstArrayView& values, FloatForm<Bits> form) {
  constexpr std::size_t kBlock = kBlockBytes / sizeof(Bits);
  NonFinite found;
  const auto total = static_cast<std::size_t>(values.size());
  for (std::size_t first = 0; first < total; first += kBlock) {
    const std::byte* const block =
        static_cast<const std::byte*>(values.data) + first * sizeof(Bits);
    const std::size_t count = std::min(kBlock, total - first);
    if (all_finite(block, count, form)) continue;
    for (std::size_t i = 0; i < count; ++i) {
      const auto bits = bits_at<Bits>(block, i);
      if ((bits & form.exponent) != form.exponent) continue;
      const bool infinite = (bits & static_cast<Bits>(~form.exponent & ~kSignBit<Bits>)) == 0;
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
