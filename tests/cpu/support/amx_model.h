// What the arithmetics of AMX compute, one output at a time, from their definition.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "cpu/isa/isa.h"
#include "cpu/kernels/kernels.h"
#include "cpu/support/emulation.h"
#include "cpu/threading/subnormals.h"

namespace openrnn::cpu {

/// The nearest bfloat16, ties to even; a subnormal is 0, a NaN a quiet one.
inline float as_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (std::isnan(x)) return std::bit_cast<float>((bits | 0x400000u) & 0xFFFF0000u);
  if ((bits & 0x7F800000u) == 0) return std::bit_cast<float>(bits & 0x80000000u);
  return std::bit_cast<float>((bits + 0x7FFFu + ((bits >> 16) & 1u)) & 0xFFFF0000u);
}

/// Numbers of one side of one output, zero up to a whole block of 32.
struct SplitNumbers {
  std::vector<float> whole, high, low;
  explicit SplitNumbers(std::vector<float> numbers) : whole(std::move(numbers)) {
    whole.resize((whole.size() + 31) / 32 * 32);
    for (const float x : whole) {
      high.push_back(as_bf16(x));
      low.push_back(as_bf16(x - high.back()));
    }
  }
};

/// sum + one product of tiles.
inline float tile_sum(float sum, const float* a, const float* w) {
  float even = 0, odd = 0;
  for (int k = 0; k < 32; k += 2) {
    even = std::fma(a[k], w[k], even);
    odd = std::fma(a[k + 1], w[k + 1], odd);
  }
  return sum + (even + odd);
}

/// a w, added to `start`. `apart`: whether blocks of a that three products can not take go the
/// float32 way.
inline float model_sum(Arithmetic kind, float start, const SplitNumbers& a, const SplitNumbers& w,
                       bool apart = true) {
  float sum = start;
  for (std::size_t k = 0; k < a.whole.size(); k += 32) {
    bool fits = true;
    for (std::size_t i = k; i < k + 32; ++i) fits = fits && std::abs(a.whole[i]) <= 0x1p126f;
    if (kind == kAmx) {
      sum = tile_sum(sum, &a.high[k], &w.high[k]);
    } else if (fits || !apart) {
      sum = tile_sum(sum, &a.high[k], &w.high[k]);
      sum = tile_sum(sum, &a.high[k], &w.low[k]);
      sum = tile_sum(sum, &a.low[k], &w.high[k]);
    } else {
      // What the tiles get there is zero, so -0 is none afterwards.
      sum += 0.0f;
      for (std::size_t i = k; i < k + 32; ++i) {
        sum = std::fma(a.whole[i], w.high[i] + w.low[i], sum);
      }
    }
  }
  return sum;
}

inline bool same_number(float a, float b) {
  return std::isnan(a) ? std::isnan(b)
                       : std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// Runs on one instruction set while it lives.
class OnIsa {
 public:
  explicit OnIsa(std::string_view isa) : before_(isa_name()) { force_isa(isa); }
  ~OnIsa() { force_isa(before_); }
  OnIsa(const OnIsa&) = delete;
  OnIsa& operator=(const OnIsa&) = delete;

 private:
  std::string before_;
};

}  // namespace openrnn::cpu
