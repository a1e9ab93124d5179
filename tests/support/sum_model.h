// The order of sums, one output at a time, from its definition in docs/numerics.md.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>

namespace openrnn {

/// Terms of a block and of a span; of the exact arithmetics unless said otherwise.
struct SumModel {
  std::int64_t block = 32, span = 512;

  /// sum of a[k] b[k], added to `old` span by span where that is given. Without b: of a[k], in
  /// float64 up to a span.
  template <class T>
  T operator()(std::span<const T> a, std::span<const T> b, std::optional<T> old = {}) const {
    const auto size = static_cast<std::int64_t>(a.size());
    std::optional<T> sum = old;
    for (std::int64_t first = 0; first < size; first += span) {
      const std::int64_t last = first + span < size ? first + span : size;
      const T added = span_of(a, b, first, last);
      sum = sum ? *sum + added : added;
    }
    return sum.value_or(T{0});
  }

 private:
  template <class T>
  T span_of(std::span<const T> a, std::span<const T> b, std::int64_t first,
            std::int64_t last) const {
    const auto term = [&](T chain, std::int64_t k) {
      const auto i = static_cast<std::size_t>(k);
      return std::fma(a[i], b[i], chain);
    };
    const auto wide_term = [&](double chain, std::int64_t k) {
      return chain + static_cast<double>(a[static_cast<std::size_t>(k)]);
    };
    if (b.empty()) return static_cast<T>(blocks_of<double>(wide_term, first, last));
    return blocks_of<T>(term, first, last);
  }
  template <class Sum, class Term>
  Sum blocks_of(const Term& term, std::int64_t first, std::int64_t last) const {
    std::optional<Sum> sum;
    for (std::int64_t begin = first; begin < last; begin += block) {
      Sum chain = 0;
      for (std::int64_t k = begin; k < last && k < begin + block; ++k) chain = term(chain, k);
      sum = sum ? *sum + chain : chain;
    }
    return *sum;
  }
};

}  // namespace openrnn
