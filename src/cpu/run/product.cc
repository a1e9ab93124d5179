#include "cpu/run/product.h"

#include <algorithm>

namespace openrnn::cpu {
namespace {

// A block of B stays in the last cache, one panel of it (64 columns of float) and a block of A in
// the second; 96 is a whole number of the tiles of 3, 4, 6 and 8 rows.
constexpr std::int64_t kBlockK = 1024, kBlockM = 96, kBlockN = 1024;
// A packed by k lies in groups of this many rows: copied as whole vectors.
constexpr std::int64_t kGroup = 16;

template <class T>
class Blocks {
 public:
  Blocks(const Kernels<T>& kernels, const BigProduct<T>& call, const ProductScratch<T>& scratch)
      : kernels_(kernels), call_(call), scratch_(scratch) {}

  void run() {
    for (std::int64_t n = call_.n0; n < call_.n1; n += kBlockN) {
      n_ = n;
      columns_ = std::min(kBlockN, call_.n1 - n);
      std::int64_t k = 0;
      // Once also without any k: C becomes what it starts from.
      do {
        k_ = k;
        depth_ = std::min(kBlockK, call_.k - k);
        pack_b();
        for (std::int64_t m = call_.m0; m < call_.m1; m += kBlockM) {
          multiply(m, std::min(kBlockM, call_.m1 - m));
        }
        k += kBlockK;
      } while (k < call_.k);
    }
  }

 private:
  void pack_b() {
    const std::int64_t panel = kColumnWidth * kernels_.lanes;
    T* out = scratch_.b;
    if (kernels_.big.pack_b) return pack_b_narrow();
    for (std::int64_t column = 0; column < columns_; column += panel, out += panel * depth_) {
      if (!call_.b_by_n) {
        pack_panel_of_rows(call_.b + k_, depth_, n_ + column, n_ + columns_, panel, out);
        continue;
      }
      for (std::int64_t v = 0; v < kColumnWidth; ++v) pack_b_vector(column, v, out);
    }
    if (call_.bias) {
      std::copy(call_.bias + n_, call_.bias + n_ + columns_, scratch_.bias);
      std::fill(scratch_.bias + columns_, scratch_.bias + divide_up(columns_, panel) * panel, T{0});
    }
  }
  void pack_b_narrow() {
    const std::int64_t panel = kColumnWidth * kernels_.lanes;
    T* out = scratch_.b;
    for (std::int64_t column = 0; column < columns_; column += panel, out += panel * elements()) {
      const std::int64_t count = std::min(panel, columns_ - column);
      kernels_.big.pack_b({call_.b + k_, depth_, n_ + column, count, panel, out});
    }
  }
  void pack_a_narrow(std::int64_t m, std::int64_t rows) {
    T* out = scratch_.a;
    for (std::int64_t i = 0; i < rows; i += kGroup, out += elements() * kGroup) {
      const std::int64_t count = std::min(kGroup, rows - i);
      kernels_.big.pack_a({call_.a + k_, depth_, m + i, count, kGroup, out});
    }
    if (!call_.sums || n_ != call_.n0) return;
    for (std::int64_t kk = 0; kk < depth_; ++kk) {
      kernels_.add(call_.a[k_ + kk] + m, call_.sums + m, rows);
    }
  }
  // Of a column of this block.
  std::int64_t elements() const { return count_elements(kernels_.big.form, depth_).elements; }
  void pack_b_vector(std::int64_t column, std::int64_t v, T* out) {
    const std::int64_t lanes = kernels_.lanes, first = column + v * lanes;
    const std::int64_t count = std::clamp<std::int64_t>(columns_ - first, 0, lanes);
    const T* rows[16] = {};
    for (std::int64_t i = 0; i < count; ++i) rows[i] = call_.b[n_ + first + i] + k_;
    pack_vector_of_columns(rows, count, lanes, depth_, kColumnWidth * lanes, out + v * lanes);
  }
  // [group][k][kGroup]; the sums over k go along while a row is in the cache.
  void pack_a(std::int64_t m, std::int64_t rows) {
    if (kernels_.big.pack_a) return pack_a_narrow(m, rows);
    for (std::int64_t kk = 0; kk < depth_; ++kk) {
      const T* row = call_.a[k_ + kk] + m;
      T* out = scratch_.a + kk * kGroup;
      std::int64_t i = 0;
      for (; i + kGroup <= rows; i += kGroup, out += depth_ * kGroup) {
        // Of a fixed size: a few moves and no call.
        __builtin_memcpy(out, row + i, kGroup * sizeof(T));
      }
      std::copy(row + i, row + rows, out);
      if (call_.sums && n_ == call_.n0) kernels_.add(row, call_.sums + m, rows);
    }
  }
  void multiply(std::int64_t m, std::int64_t rows) {
    if (call_.a_by_k) pack_a(m, rows);
    for (std::int64_t i = 0; i < rows; ++i) {
      scratch_.a_rows[i] = call_.a_by_k ? scratch_.a + i / kGroup * kGroup * elements() + i % kGroup
                                        : call_.a[m + i] + k_;
    }
    T* c_rows[kBlockM];
    for (std::int64_t i = 0; i < rows; ++i) c_rows[i] = call_.c[m + i] + n_;
    const std::int64_t lanes = kernels_.lanes, step = kColumnWidth * lanes;
    const auto multiply = kernels_.big.product ? kernels_.big.product : kernels_.product;
    multiply({{scratch_.b,
               elements(),
               step,
               step * elements(),
               kColumnWidth,
               0,
               divide_up(columns_, lanes),
               false,
               depth_,
               {}},
              scratch_.a_rows,
              call_.a_by_k ? kGroup : 1,
              rows,
              k_ == 0 && call_.bias ? scratch_.bias : nullptr,
              k_ > 0 || call_.accumulate,
              c_rows,
              columns_,
              nullptr});
  }

  const Kernels<T>& kernels_;
  const BigProduct<T>& call_;
  const ProductScratch<T>& scratch_;
  std::int64_t n_ = 0, columns_ = 0, k_ = 0, depth_ = 0;
};

}  // namespace

template <class T>
ProductScratch<T> ProductScratch<T>::carve(Carver& carver, std::int64_t columns, std::int64_t k) {
  // Whole panels and whole blocks of the sums of every arithmetic.
  const std::int64_t width = divide_up(std::min(columns, kBlockN), 64) * 64;
  const std::int64_t depth = divide_up(std::min(k, kBlockK), 32) * 32;
  ProductScratch scratch;
  scratch.a = carver.take<T>(kBlockM * depth);
  scratch.b = carver.take<T>(width * depth);
  scratch.bias = carver.take<T>(kBlockN);
  scratch.a_rows = carver.take<const T*>(kBlockM);
  return scratch;
}

template <class T>
void big_product(const Kernels<T>& kernels, const BigProduct<T>& call,
                 const ProductScratch<T>& scratch) noexcept {
  if (call.m0 >= call.m1 || call.n0 >= call.n1) return;
  if (call.sums) std::fill(call.sums + call.m0, call.sums + call.m1, T{0});
  Blocks<T>(kernels, call, scratch).run();
}

template struct ProductScratch<float>;
template struct ProductScratch<double>;
template void big_product<float>(const Kernels<float>&, const BigProduct<float>&,
                                 const ProductScratch<float>&) noexcept;
template void big_product<double>(const Kernels<double>&, const BigProduct<double>&,
                                  const ProductScratch<double>&) noexcept;

}  // namespace openrnn::cpu
