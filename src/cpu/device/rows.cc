#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "cpu/device/loops.h"
#include "cpu/device/parallel.h"
#include "cpu/memory/pool.h"
#include "device/part_rows.h"
#include "engine/sum_order.h"

namespace openrnn::cpu::device {
namespace {

// Columns that one pass over the rows sums in registers or L1.
constexpr std::int64_t kColumnBlock = 64;

template <class T>
void column_sum_block(std::int64_t rows, std::int64_t cols, const T* x, std::int64_t begin,
                      std::int64_t end, T* out) {
  using Wide = std::array<double, kColumnBlock>;
  std::array<ComputeOf<T>, kColumnBlock> sums{};
  Wide span{}, block{};
  const std::int64_t count = end - begin;
  const auto move = [count]<class Sum>(Wide& from, std::array<Sum, kColumnBlock>& to) {
    for (std::int64_t c = 0; c < count; ++c) to[c] += static_cast<Sum>(std::exchange(from[c], 0.0));
  };
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* row = x + r * cols + begin;
    for (std::int64_t c = 0; c < count; ++c) block[c] += widen(row[c]);
    if ((r + 1) % kSumBlock == 0) move(block, span);
    if ((r + 1) % kSumSpan == 0) move(span, sums);
  }
  move(block, span);
  move(span, sums);
  for (std::int64_t c = 0; c < count; ++c) out[begin + c] = narrow<T>(sums[c]);
}

template <class T>
void scatter_add(std::int64_t count, std::int64_t cols, const T* rows, const std::int32_t* indices,
                 T* table) {
  // A thread owns columns, so each element sees its rows in ascending order.
  parallel_ranges(cols, 16, count, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < count; ++i) {
      T* to = table + indices[i] * cols;
      const T* from = rows + i * cols;
      for (std::int64_t c = begin; c < end; ++c) to[c] += from[c];
    }
  });
}

// Sums in float and rounds once: a table in float, made of the rows that are touched.
template <class T>
void scatter_add_narrow(std::int64_t count, std::int64_t cols, const T* rows,
                        const std::int32_t* indices, T* table) {
  if (count == 0 || cols == 0) return;
  const std::int64_t last = *std::max_element(indices, indices + count);
  const auto memory =
      MemoryPool::process().allocate(static_cast<std::size_t>((last + 1 + count) * cols) * 4);
  auto* wide_table = static_cast<float*>(memory.get());
  float* wide_rows = wide_table + (last + 1) * cols;
  convert((last + 1) * cols, kDTypeOf<T>, table, DType::kFloat32, wide_table);
  convert(count * cols, kDTypeOf<T>, rows, DType::kFloat32, wide_rows);
  scatter_add<float>(count, cols, wide_rows, indices, wide_table);
  convert((last + 1) * cols, DType::kFloat32, wide_table, kDTypeOf<T>, table);
}

DropoutRow dropout_row(std::int64_t row) {
  return {.layer = 0xFFFFFFFFu,
          .time = static_cast<std::uint32_t>(row >> 20),
          .row = static_cast<std::uint32_t>(row & 0xFFFFF)};
}

// value * kept, and 0 where kept is 0, of NaN and infinity too. Without a branch, as a random one
// is mispredicted half the time.
template <class C>
C masked(C value, C kept) {
  using Bits = std::conditional_t<sizeof(C) == 4, std::uint32_t, std::uint64_t>;
  const Bits all = Bits{0} - static_cast<Bits>(kept != C{0});
  return std::bit_cast<C>(std::bit_cast<Bits>(value * kept) & all);
}

}  // namespace

void add_row(DType dtype, std::int64_t rows, std::int64_t cols, const void* x, const void* row,
             void* y) {
  with_floating("add_row", dtype, [&](auto type) {
    using T = decltype(type);
    const auto* from = static_cast<const T*>(x);
    const auto* added = static_cast<const T*>(row);
    auto* to = static_cast<T*>(y);
    parallel_ranges(rows, 1, cols, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        for (std::int64_t c = 0; c < cols; ++c) {
          to[r * cols + c] = narrow<T>(widen(from[r * cols + c]) + widen(added[c]));
        }
      }
    });
  });
}

void column_sum(DType dtype, std::int64_t rows, std::int64_t cols, const void* x, void* out) {
  with_floating("column_sum", dtype, [&](auto type) {
    using T = decltype(type);
    const auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(out);
    parallel_ranges(cols, 16, rows, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin; at < end; at += kColumnBlock) {
        column_sum_block<T>(rows, cols, from, at, std::min(end, at + kColumnBlock), to);
      }
    });
  });
}

void gather_rows(DType dtype, std::int64_t count, std::int64_t cols, const void* table,
                 const std::int32_t* indices, void* out) {
  const std::size_t bytes = static_cast<std::size_t>(cols) * dtype_size(dtype);
  const auto* from = static_cast<const std::byte*>(table);
  auto* to = static_cast<std::byte*>(out);
  if (bytes == 0) return;
  parallel_ranges(count, 1, cols, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::memcpy(to + static_cast<std::size_t>(i) * bytes,
                  from + static_cast<std::size_t>(indices[i]) * bytes, bytes);
    }
  });
}

void scatter_add_rows(DType dtype, std::int64_t count, std::int64_t cols, const void* rows,
                      const std::int32_t* indices, void* table) {
  with_floating("scatter_add_rows", dtype, [&](auto type) {
    using T = decltype(type);
    const auto* from = static_cast<const T*>(rows);
    auto* to = static_cast<T*>(table);
    if constexpr (kIs16Bits<T>) {
      scatter_add_narrow(count, cols, from, indices, to);
    } else {
      scatter_add<T>(count, cols, from, indices, to);
    }
  });
}

void dropout(const DropoutArgs& args) {
  with_floating("dropout", args.dtype, [&](auto type) {
    using T = decltype(type);
    using C = ComputeOf<T>;
    const auto* from = static_cast<const T*>(args.x);
    auto* to = static_cast<T*>(args.out);
    const std::int64_t cols = args.cols;
    const counter::PartRows numbers = part_rows(args);
    // Making the mask costs some ten elements' work each.
    parallel_ranges(args.rows, 1, cols * 10, [=, &args](std::int64_t begin, std::int64_t end) {
      std::vector<C> mask(static_cast<std::size_t>(cols));
      for (std::int64_t r = begin; r < end; ++r) {
        dropout_mask<C>(args.key, dropout_row(numbers.number(r)), args.rate, mask);
        for (std::int64_t c = 0; c < cols; ++c) {
          to[r * cols + c] =
              narrow<T>(masked(widen(from[r * cols + c]), mask[static_cast<std::size_t>(c)]));
        }
      }
    });
  });
}

}  // namespace openrnn::cpu::device
