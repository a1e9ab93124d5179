// Weights in fewer bits: float16, bfloat16, pairs of bfloat16 and 8-bit integers.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "cpu/pack/panels.h"
#include "openrnn/base.h"

namespace openrnn::cpu {
namespace {

// A weight beyond the last k: -0 times 0 changes no sum, not even -0.
constexpr std::uint32_t kNoWeight = 0x8000;

// The nearest bfloat16, ties to even; a subnormal is 0, a NaN a quiet one.
std::uint32_t bf16_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t zero = (bits >> 16) & 0x8000u, nearest = to_bfloat16(x).bits;
  return (bits & 0x7FFFFFFFu) < 0x00800000u ? zero : nearest;
}

float bf16_value(std::uint32_t bits) { return std::bit_cast<float>(bits << 16); }

float pair_bits(std::uint32_t even, std::uint32_t odd) {
  return std::bit_cast<float>(even | odd << 16);
}

/// Columns of a panel: [k][columns] values, the rows `step` apart.
struct Source {
  const float* panel;
  std::int64_t k, columns, step;
  float at(std::int64_t kk, std::int64_t column) const { return panel[kk * step + column]; }
};

void narrow_pairs(const Source& from, std::int64_t elements, float* out) {
  const std::int64_t columns = from.columns, whole = from.k / 2;
  for (std::int64_t e = 0; e < whole; ++e) {
    const float* even = from.panel + 2 * e * from.step;
    const float* odd = even + from.step;
    // Without a branch, so that the compiler takes several columns at once.
    for (std::int64_t c = 0; c < columns; ++c) {
      out[e * columns + c] = pair_bits(bf16_bits(even[c]), bf16_bits(odd[c]));
    }
  }
  for (std::int64_t e = whole; e < elements; ++e) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const bool last = 2 * e < from.k;
      out[e * columns + c] = pair_bits(last ? bf16_bits(from.at(2 * e, c)) : kNoWeight, kNoWeight);
    }
  }
}

void narrow_halves(const Source& from, std::int64_t lanes, std::int64_t elements, float* out) {
  for (std::int64_t e = 0; e < elements; ++e) {
    for (std::int64_t c = 0; c < from.columns; c += lanes, out += lanes) {
      auto* halves = reinterpret_cast<std::uint16_t*>(out);
      for (const std::int64_t kk : {2 * e, 2 * e + 1}) {
        for (std::int64_t lane = 0; lane < lanes; ++lane) {
          *halves++ = kk < from.k ? to_half(from.at(kk, c + lane)).bits
                                  : static_cast<std::uint16_t>(kNoWeight);
        }
      }
    }
  }
}

// 16 pairs of high parts, then 16 of low ones. A weight without a finite bfloat16 has NaN as
// its low part, and so has every sum that it enters.
void narrow_twice(const Source& from, std::int64_t elements, float* out) {
  for (std::int64_t first = 0; first < elements; first += 32) {
    for (std::int64_t pair = 0; pair < 16; ++pair) {
      for (std::int64_t c = 0; c < from.columns; ++c) {
        std::uint32_t high[2], low[2];
        for (std::int64_t i = 0; i < 2; ++i) {
          const std::int64_t kk = first + 2 * pair + i;
          const float x = kk < from.k ? from.at(kk, c) : 0.0f;
          high[i] = bf16_bits(x);
          low[i] = bf16_bits(x - bf16_value(high[i]));
        }
        out[pair * from.columns + c] = pair_bits(high[0], high[1]);
        out[(16 + pair) * from.columns + c] = pair_bits(low[0], low[1]);
      }
    }
    out += 32 * from.columns;
  }
}

// Four values an element; then the scales, then 128 times the sums of the bytes.
void narrow_bytes(const Source& from, std::int64_t elements, float* out) {
  for (std::int64_t c = 0; c < from.columns; ++c) {
    float most = 0;
    bool finite = true;
    for (std::int64_t kk = 0; kk < from.k; ++kk) {
      most = std::max(most, std::abs(from.at(kk, c)));
      finite = finite && std::isfinite(from.at(kk, c));
    }
    // NaN, which every sum then is.
    const bool none = most < 127.0f * std::numeric_limits<float>::min();
    const float scale = !finite ? std::nanf("") : none ? 1.0f : most / 127.0f;
    // Sums wrap: the difference that counts fits 32 bits.
    std::uint32_t sum = 0;
    for (std::int64_t e = 0; e < elements; ++e) {
      std::uint32_t word = 0;
      for (std::int64_t i = 0; i < 4 && 4 * e + i < from.k; ++i) {
        const float x = finite ? from.at(4 * e + i, c) / scale : 0.0f;
        const float ratio = std::clamp(x, -127.0f, 127.0f);
        const auto byte = static_cast<std::int32_t>(std::nearbyint(ratio));
        sum += static_cast<std::uint32_t>(byte);
        word |= static_cast<std::uint32_t>(byte & 0xFF) << (8 * i);
      }
      out[e * from.columns + c] = std::bit_cast<float>(word);
    }
    out[elements * from.columns + c] = scale;
    out[(elements + 1) * from.columns + c] = std::bit_cast<float>(128U * sum);
  }
}

void narrow_columns(Arithmetic arithmetic, const Source& from, std::int64_t lanes, float* out) {
  const std::int64_t elements = count_elements(arithmetic, from.k).elements;
  switch (arithmetic) {
    case kStoredHalf:
      return narrow_halves(from, lanes, elements, out);
    case kInt8:
      return narrow_bytes(from, elements, out);
    case kBf16x3:
      return narrow_twice(from, elements, out);
    default:
      return narrow_pairs(from, elements, out);
  }
}

}  // namespace

void narrow_panel(Arithmetic arithmetic, const float* panel, std::int64_t k, std::int64_t columns,
                  std::int64_t lanes, float* out) {
  // Tiles have a vector at a time.
  const std::int64_t at_once = has_tiles(arithmetic) ? lanes : columns;
  const std::int64_t elements = count_elements(arithmetic, k).elements;
  for (std::int64_t first = 0; first < columns; first += at_once) {
    const Source from{panel + first, k, at_once, columns};
    narrow_columns(arithmetic, from, lanes, out + first * elements);
  }
}

}  // namespace openrnn::cpu
