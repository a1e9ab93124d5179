#include "cpu/gemm/product.h"

#include <algorithm>
#include <utility>

#include "cpu/tuning/tuning.h"
#include "engine/sum_order.h"

namespace openrnn::cpu {
namespace {

template <class T>
class Blocks {
 public:
  Blocks(const Kernels<T>& kernels, const BigProduct<T>& call, const ProductScratch<T>& scratch)
      : kernels_(kernels), call_(call), scratch_(scratch) {}

  void run() {
    std::size_t side = 0;
    std::int64_t n = call_.sides[0].n0;
    // Once also without any column, for the sums.
    do {
      take_pieces(side, n);
      run_pass();
      first_pass_ = false;
    } while (pieces_ > 0 && side < 2);
  }

 private:
  // Columns [n, n + count) of a side; packed, they begin with column `at`.
  struct Piece {
    const ProductSide<T>* side;
    std::int64_t n, count, at;
  };

  // As many columns from column n of `side` on as have room at once.
  void take_pieces(std::size_t& side, std::int64_t& n) {
    std::int64_t used = 0;
    for (pieces_ = 0; side < 2 && used < scratch_.columns;) {
      const ProductSide<T>& from = call_.sides[side];
      const std::int64_t count = std::min(scratch_.columns - used, from.n1 - n);
      if (count > 0) piece_[pieces_++] = {&from, n, count, used};
      used += divide_up(std::max<std::int64_t>(count, 0), panel()) * panel();
      n += count;
      if (n < from.n1) continue;
      if (++side < 2) n = call_.sides[side].n0;
    }
  }
  void run_pass() {
    group_ = 0;
    group_left_ = call_.groups ? 0 : call_.k;
    k_ = 0;
    // Once also without any k: C becomes what it begins with.
    do {
      take_spans();
      for (int i = 0; i < pieces_; ++i) pack_b(piece_[i]);
      for (const Range& rows : call_.rows) {
        for (std::int64_t m = rows.first; m < rows.last; m += kBlockRows) {
          multiply(m, std::min(kBlockRows, rows.last - m));
        }
      }
      k_ += depth_;
    } while (k_ < call_.k);
  }
  // As many spans from k_ on as have room.
  void take_spans() {
    depth_ = elements_ = 0;
    for (spans_ = 0; spans_ < kMostSpans && k_ + depth_ < call_.k; ++spans_) {
      if (group_left_ == 0) group_left_ = call_.groups[group_++];
      const std::int64_t span = std::min(group_left_, kernels_.big.span);
      const std::int64_t more = elements_of(span);
      if (depth_ > 0 && elements_ + more > elements_of(kBlockK)) break;
      span_[spans_] = span;
      span_elements_[spans_] = more;
      group_left_ -= span;
      depth_ += span;
      elements_ += more;
    }
    if (spans_ == 0) span_elements_[spans_++] = span_[0] = 0;
  }
  std::int64_t elements_of(std::int64_t values) const {
    return count_elements(kernels_.big.form, values).elements;
  }
  std::int64_t panel() const { return kColumnWidth * kernels_.lanes; }
  // Each span has elements of its own.
  template <class Pack>
  void pack_spans(const Pack& pack, const T* const* rows, PackRows<T> call) {
    call.rows = rows + k_;
    call.elements = elements_;
    const std::int64_t columns = has_tiles(kernels_.big.form) ? kernels_.lanes : call.width;
    for (int i = 0; i < spans_; ++i) {
      call.k = span_[i];
      pack(call);
      call.rows += span_[i];
      call.out += span_elements_[i] * columns;
    }
  }

  void pack_b(const Piece& piece) {
    const ProductSide<T>& side = *piece.side;
    T* out = scratch_.b + piece.at * elements_;
    for (std::int64_t n = 0; n < piece.count; n += panel(), out += panel() * elements_) {
      const std::int64_t count = std::min(panel(), piece.count - n);
      if (kernels_.big.pack_b) {
        pack_spans(kernels_.big.pack_b, side.b,
                   {.first = piece.n + n, .count = count, .width = panel(), .out = out});
      } else if (side.b_by_n) {
        pack_b_columns(side, piece.n + n, count, out);
      } else {
        pack_panel_of_rows(side.b + k_, depth_, piece.n + n, piece.n + piece.count, panel(), out);
      }
    }
    if (!side.bias) return;
    T* const bias = scratch_.bias + piece.at;
    std::copy(side.bias + piece.n, side.bias + piece.n + piece.count, bias);
    std::fill(bias + piece.count, bias + divide_up(piece.count, panel()) * panel(), T{0});
  }
  void pack_b_columns(const ProductSide<T>& side, std::int64_t n, std::int64_t columns, T* out) {
    const std::int64_t lanes = kernels_.lanes;
    for (std::int64_t first = 0; first < panel(); first += lanes) {
      const std::int64_t count = std::clamp<std::int64_t>(columns - first, 0, lanes);
      const T* rows[kMostLanes] = {};
      for (std::int64_t i = 0; i < count; ++i) rows[i] = side.b[n + first + i] + k_;
      pack_vector_of_columns(rows, count, lanes, depth_, panel(), out + first);
    }
  }
  void pack_a_narrow(std::int64_t m, std::int64_t rows) {
    T* out = scratch_.a;
    for (std::int64_t i = 0; i < rows; i += kPackedRows, out += elements_ * kPackedRows) {
      const std::int64_t count = std::min(kPackedRows, rows - i);
      pack_spans(kernels_.big.pack_a, call_.a,
                 {.first = m + i, .count = count, .width = kPackedRows, .out = out});
    }
    if (!sums_wanted()) return;
    BiasSums sums(*this, m, rows);
    for (std::int64_t kk = 0; kk < depth_; ++kk) sums.add(call_.a[k_ + kk] + m);
  }
  bool sums_wanted() const { return call_.sums && first_pass_; }
  // [group][k][kPackedRows]; the sums over k go along while a row is in the cache.
  void pack_a(std::int64_t m, std::int64_t rows) {
    if (kernels_.big.pack_a) return pack_a_narrow(m, rows);
    BiasSums sums(*this, m, rows);
    for (std::int64_t kk = 0; kk < depth_; ++kk) {
      const T* row = call_.a[k_ + kk] + m;
      T* out = scratch_.a + kk * kPackedRows;
      std::int64_t i = 0;
      if (kk + kRowsAhead < depth_) fetch(call_.a[k_ + kk + kRowsAhead] + m, rows);
      for (; i + kPackedRows <= rows; i += kPackedRows, out += depth_ * kPackedRows) {
        // Of a fixed size: a few moves and no call.
        __builtin_memcpy(out, row + i, kPackedRows * sizeof(T));
      }
      std::copy(row + i, row + rows, out);
      if (sums_wanted()) sums.add(row);
    }
  }
  // The sums of some columns of A over the spans of a pass, as column_sum makes them.
  class BiasSums {
   public:
    BiasSums(const Blocks& blocks, std::int64_t m, std::int64_t rows)
        : blocks_(blocks),
          to_(blocks.sums_wanted() ? blocks.call_.sums + m : nullptr),
          rows_(rows) {}
    void add(const T* row) {
      blocks_.kernels_.add_wide(row, block_, rows_);
      ++in_block_;
      ++in_span_;
      const bool ends = in_span_ == blocks_.span_[at_];
      if (in_block_ < kSumBlock && !ends) return;
      move(block_, span_);
      in_block_ = 0;
      if (!ends) return;
      move(span_, to_);
      in_span_ = 0;
      ++at_;
    }

   private:
    template <class Sum>
    void move(double* from, Sum* to) {
      for (std::int64_t i = 0; i < rows_; ++i) {
        to[i] += static_cast<Sum>(std::exchange(from[i], 0.0));
      }
    }

    const Blocks& blocks_;
    T* to_;
    std::int64_t rows_, in_block_ = 0, in_span_ = 0;
    int at_ = 0;
    double block_[kBlockRows] = {}, span_[kBlockRows] = {};
  };
  static void fetch(const T* from, std::int64_t count) {
    constexpr std::int64_t kLine = 64 / sizeof(T);
    for (std::int64_t i = 0; i < count; i += kLine) __builtin_prefetch(from + i);
  }
  void multiply(std::int64_t m, std::int64_t rows) {
    const auto has_rows = [m](const Piece& piece) {
      return piece.side->m0 <= m && m < piece.side->m1;
    };
    if (!sums_wanted() && std::none_of(piece_, piece_ + pieces_, has_rows)) return;
    if (call_.a_by_k) pack_a(m, rows);
    for (std::int64_t i = 0; i < rows; ++i) {
      scratch_.a_rows[i] =
          call_.a_by_k ? scratch_.a + i / kPackedRows * kPackedRows * elements_ + i % kPackedRows
                       : call_.a[m + i] + k_;
    }
    for (int i = 0; i < pieces_; ++i) {
      if (has_rows(piece_[i])) multiply(piece_[i], m, rows);
    }
  }
  void multiply(const Piece& piece, std::int64_t m, std::int64_t rows) {
    T* c_rows[kBlockRows];
    for (std::int64_t i = 0; i < rows; ++i) c_rows[i] = piece.side->c[m + i] + piece.n;
    const auto product = kernels_.big.product ? kernels_.big.product : kernels_.product;
    const bool last = k_ + depth_ >= call_.k;
    product({.w = {.b = scratch_.b + piece.at * elements_,
                   .k = elements_,
                   .b_step = panel(),
                   .b_panel = panel() * elements_,
                   .width = kColumnWidth,
                   .last = divide_up(piece.count, kernels_.lanes),
                   .inner = depth_},
             .a = scratch_.a_rows,
             .a_step = call_.a_by_k ? kPackedRows : 1,
             .rows = rows,
             .bias = last && piece.side->bias ? scratch_.bias + piece.at : nullptr,
             .accumulate = k_ > 0 || call_.accumulate,
             .c = c_rows,
             .columns = piece.count,
             .spans = span_elements_});
  }

  const Kernels<T>& kernels_;
  const BigProduct<T>& call_;
  const ProductScratch<T>& scratch_;
  Piece piece_[2];
  int pieces_ = 0;
  // The pass: its k from k_ on, their number, the elements of a column.
  std::int64_t k_ = 0, depth_ = 0, elements_ = 0;
  int spans_ = 0;
  std::int64_t span_[kMostSpans], span_elements_[kMostSpans];  // of each
  std::int64_t group_ = 0, group_left_ = 0;                    // the next one; k of this one
  bool first_pass_ = true;
};

}  // namespace

template <class T>
ProductScratch<T> ProductScratch<T>::carve(Carver& carver, std::int64_t columns, std::int64_t k,
                                           std::int64_t groups) {
  const std::int64_t width =
      divide_up(std::min(columns, kBlockN), kMostPanelColumns) * kMostPanelColumns;
  // AMX fills up every group to a whole block.
  const std::int64_t filled = k + (kAmxBlock - 1) * groups;
  const std::int64_t depth = divide_up(std::min(filled, kBlockK), kAmxBlock) * kAmxBlock;
  ProductScratch scratch;
  scratch.columns = width;
  scratch.a = carver.take<T>(kBlockRows * depth);
  scratch.b = carver.take<T>(width * depth);
  scratch.bias = carver.take<T>(width);
  scratch.a_rows = carver.take<const T*>(kBlockRows);
  return scratch;
}

template <class T>
void big_product(const Kernels<T>& kernels, const BigProduct<T>& call,
                 const ProductScratch<T>& scratch) noexcept {
  const auto empty = [](const Range& rows) { return rows.first >= rows.last; };
  if (std::all_of(call.rows.begin(), call.rows.end(), empty)) return;
  if (call.sums && !call.accumulate) {
    for (const Range& rows : call.rows) {
      if (!empty(rows)) std::fill(call.sums + rows.first, call.sums + rows.last, T{0});
    }
  }
  Blocks<T>(kernels, call, scratch).run();
}

template struct ProductScratch<float>;
template struct ProductScratch<double>;
template void big_product<float>(const Kernels<float>&, const BigProduct<float>&,
                                 const ProductScratch<float>&) noexcept;
template void big_product<double>(const Kernels<double>&, const BigProduct<double>&,
                                  const ProductScratch<double>&) noexcept;

}  // namespace openrnn::cpu
