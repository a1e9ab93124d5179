#include <algorithm>
#include <array>
#include <vector>

#include "cpu/device/loops.h"
#include "cpu/device/parallel.h"

namespace openrnn::cpu::device {
namespace {

// The order of a sum: 16 lanes side by side in blocks of 4096 elements, the lanes of a block added
// from the first to the last, then the blocks. It depends on the size alone.
constexpr std::int64_t kLanes = 16;
constexpr std::int64_t kBlock = 4096;

template <class T, class Term>
double block_sum(const T* x, std::int64_t size, const Term& term) {
  std::array<double, kLanes> lanes{};
  const std::int64_t whole = size / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += term(static_cast<double>(widen(x[i + lane])));
    }
  }
  for (std::int64_t i = whole; i < size; ++i) {
    lanes[i - whole] += term(static_cast<double>(widen(x[i])));
  }
  double total = lanes[0];
  for (std::int64_t lane = 1; lane < kLanes; ++lane) total += lanes[lane];
  return total;
}

template <class Term>
double sum_terms(const char* call, DType dtype, std::int64_t size, const void* x,
                 const Term& term) {
  if (size == 0) return 0.0;
  const std::int64_t blocks = (size + kBlock - 1) / kBlock;
  std::vector<double> partial(static_cast<std::size_t>(blocks));
  with_floating(call, dtype, [&](auto type) {
    const auto* from = static_cast<const decltype(type)*>(x);
    parallel_ranges(blocks, 1, kBlock, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        const std::int64_t count = std::min(kBlock, size - b * kBlock);
        partial[static_cast<std::size_t>(b)] = block_sum(from + b * kBlock, count, term);
      }
    });
  });
  double total = partial[0];
  for (std::size_t b = 1; b < partial.size(); ++b) total += partial[b];
  return total;
}

}  // namespace

double sum(DType dtype, std::int64_t size, const void* x) {
  return sum_terms("sum", dtype, size, x, [](double v) { return v; });
}

double sum_of_squares(DType dtype, std::int64_t size, const void* x) {
  return sum_terms("sum_of_squares", dtype, size, x, [](double v) { return v * v; });
}

}  // namespace openrnn::cpu::device
