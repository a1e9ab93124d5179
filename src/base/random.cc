#include <bit>
#include <cmath>
#include <limits>

#include "base/counter.h"
#include "base/log_series.h"
#include "openrnn/base.h"

namespace openrnn {
namespace {

using counter::mix;
using counter::split;

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> at,
                                    std::array<std::uint32_t, 2> key) noexcept {
  return counter::philox(at, key);
}

DropoutKey key_of(DropoutKey key, MaskOf masks) noexcept {
  // The golden ratio's bits: seeds that differ by little stay apart.
  key.seed += static_cast<std::uint64_t>(masks) * 0x9E3779B97F4A7C15U;
  return key;
}

template <class T>
void dropout_mask(DropoutKey key, DropoutRow at, double rate, std::span<T> mask) noexcept {
  const auto words = counter::dropout_words(key.seed, key.call);
  const std::uint64_t threshold = counter::dropout_threshold(rate);
  const auto scale = counter::dropout_scale<T>(rate);
  // A table, as a branch on a random bit is mispredicted half the time.
  const std::array<T, 2> choice{scale, T{0}};
  for (std::size_t unit = 0; unit < mask.size(); unit += 4) {
    const auto random = counter::dropout_group(words, at.layer, at.time, at.row,
                                               static_cast<std::uint32_t>(unit / 4));
    for (std::size_t i = 0; i < 4 && unit + i < mask.size(); ++i) {
      mask[unit + i] = choice[random[i] < threshold];
    }
  }
}
template void dropout_mask<float>(DropoutKey, DropoutRow, double, std::span<float>) noexcept;
template void dropout_mask<double>(DropoutKey, DropoutRow, double, std::span<double>) noexcept;

std::uint32_t RandomStream::next_uint32() noexcept {
  if (left_ == 0) {
    const auto high = split(stream_);
    const auto low = split(counter_++);
    block_ = counter::philox({low[0], low[1], high[0], high[1]}, split(mix(seed_)));
    left_ = 4;
  }
  return block_[static_cast<std::size_t>(4 - left_--)];
}

double RandomStream::uniform() noexcept {
  const std::uint64_t high = next_uint32();
  const std::uint64_t low = next_uint32();
  return static_cast<double>(((high << 32) | low) >> 11) * 0x1p-53;
}

double RandomStream::normal() noexcept {
  while (true) {
    const double u = uniform(-1.0, 1.0);
    const double v = uniform(-1.0, 1.0);
    const double s = u * u + v * v;
    if (s > 0.0 && s < 1.0) return u * std::sqrt(-2.0 * portable_log(s) / s);
  }
}

std::uint64_t RandomStream::below(std::uint64_t bound) noexcept {
  // Words under 2^64 mod bound would favour small results: they are drawn again.
  const std::uint64_t biased = (0 - bound) % bound;
  while (true) {
    const std::uint64_t high = next_uint32();
    const std::uint64_t word = (high << 32) | next_uint32();
    if (word >= biased) return word % bound;
  }
}

double portable_exp(double x) noexcept {
  if (std::isnan(x)) return x;
  if (x > 709.782712893384) return HUGE_VAL;
  if (x < -745.2) return 0.0;
  const double n = std::nearbyint(x * 1.4426950408889634);
  // ln 2 in two parts: the first has 32 bits, so n times it is exact. x - n ln 2 = r + rest.
  const double high = x - n * 0x1.62e42feep-1;
  const double low = n * 0x1.a39ef35793c76p-33;
  const double r = high - low;
  const double rest = (high - r) - low;
  // Taylor series of degree 13: |r| <= ln2 / 2, so the truncated rest is below 2^-58.
  double series = 1.0 / 13;
  for (int k = 12; k >= 2; --k) series = (1.0 + series * r) / k;
  // 1 + r + r^2 series, with the rounding error of 1 + r added back.
  const double head = 1.0 + r;
  const double sum = head + (((1.0 - head) + r) + (rest + r * r * series));
  const int first = static_cast<int>(n) / 2;
  const int second = static_cast<int>(n) - first;
  return sum * std::ldexp(1.0, first) * std::ldexp(1.0, second);
}

double portable_log(double x) noexcept {
  if (std::isnan(x) || x < 0.0) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0.0) return -HUGE_VAL;
  if (std::isinf(x)) return x;
  int exponent = 0;
  const double m = std::frexp(x, &exponent);
  return log_of_parts(m, exponent);
}

}  // namespace openrnn
