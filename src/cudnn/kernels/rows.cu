// Operations on the rows of matrices. No sum depends on which thread comes first.
#include "base/counter.h"
#include "cudnn/kernels/number.h"
#include "cudnn/kernels/thread.h"
#include "engine/sum_order.h"

namespace openrnn::gpu {

template <class Word>
__device__ inline void copy_words(const CopyArguments& arguments) {
  const Word* from = static_cast<const Word*>(arguments.from);
  Word* to = static_cast<Word*>(arguments.to);
  each_cell(arguments.count, arguments.words, [=](std::int64_t i, std::int64_t word) {
    const std::int64_t source = arguments.indices ? arguments.indices[i] : i;
    to[i * arguments.to_stride + word] = from[source * arguments.from_stride + word];
  });
}

struct alignas(16) Word16 {
  std::uint64_t low, high;
};

// A sum in the order of sum_order.h; the first term of each part is added to 0.
template <class C>
struct OrderedSum {
  C sum = 0;
  double span = 0, block = 0;
  std::int64_t count = 0;

  __device__ void add(C term) {
    block += term;
    ++count;
    if (count % openrnn::kSumBlock == 0) {
      span += block;
      block = 0;
    }
    if (count % openrnn::kSumSpan == 0) {
      sum += static_cast<C>(span);
      span = 0;
    }
  }
  __device__ C total() const { return sum + static_cast<C>(span + block); }
};

// Sums tile by tile: all threads load, the first row of them adds in ascending order.
template <class T>
__device__ inline void column_sum_of(const ColumnSumArguments& arguments) {
  using C = ComputeOf<T>;
  C* tile = shared_memory<C>();
  const T* x = static_cast<const T*>(arguments.x);
  const std::int64_t col = static_cast<std::int64_t>(blockIdx.x) * kColumnTile + threadIdx.x;
  OrderedSum<C> sum;
  for (std::int64_t begin = 0; begin < arguments.rows; begin += kColumnTileRows) {
    const std::int64_t left = arguments.rows - begin;
    const int rows = left < kColumnTileRows ? static_cast<int>(left) : kColumnTileRows;
    if (col < arguments.cols) {
      for (int r = static_cast<int>(threadIdx.y); r < rows; r += static_cast<int>(blockDim.y)) {
        tile[r * kColumnTile + threadIdx.x] = widen(x[(begin + r) * arguments.cols + col]);
      }
    }
    __syncthreads();
    if (threadIdx.y == 0 && col < arguments.cols) {
      for (int r = 0; r < rows; ++r) sum.add(tile[r * kColumnTile + threadIdx.x]);
    }
    __syncthreads();
  }
  if (threadIdx.y == 0 && col < arguments.cols) {
    static_cast<T*>(arguments.out)[col] = narrow<T>(sum.total());
  }
}

// Whether the row of the table that number i adds to is added to by an earlier one.
__device__ inline bool has_earlier(const std::int32_t* indices, std::int64_t i, int* found) {
  const std::int32_t mine = indices[i];
  if (threadIdx.x == 0) *found = 0;
  __syncthreads();
  // Backwards: a frequent row has occurred recently.
  for (std::int64_t end = i; end > 0; end -= kRowThreads) {
    const std::int64_t at = end - 1 - threadIdx.x;
    if (at >= 0 && indices[at] == mine) *found = 1;
    __syncthreads();
    const bool seen = *found != 0;
    __syncthreads();
    if (seen) return true;
  }
  return false;
}

// Where in shared memory the block keeps which of the next rows are its own.
struct Matches {
  int is_mine[kRowThreads];
  int list[kRowThreads];
  int count;
};

// The numbers from `begin` on, within one tile, that add to row `mine`: in ascending order. What
// the last call found is read until its first barrier, and is overwritten after it.
__device__ inline void find_matches(const ScatterArguments& arguments, std::int32_t mine,
                                    std::int64_t begin, Matches& matches) {
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t at = begin + thread;
  const int is_mine = at < arguments.count && arguments.indices[at] == mine ? 1 : 0;
  matches.is_mine[thread] = is_mine;
  __syncthreads();
  if (is_mine || thread == kRowThreads - 1) {
    int before = 0;
    for (int other = 0; other < thread; ++other) before += matches.is_mine[other];
    if (is_mine) matches.list[before] = thread;
    if (thread == kRowThreads - 1) matches.count = before + is_mine;
  }
  __syncthreads();
}

// A block is for the row of the table that its number of grid.x is the first to add to, and for
// kRowThreads columns of it.
template <class T>
__device__ inline void scatter_add_of(const ScatterArguments& arguments) {
  using C = ComputeOf<T>;
  Matches& matches = *shared_memory<Matches>();
  const std::int64_t first = blockIdx.x;
  if (has_earlier(arguments.indices, first, &matches.count)) return;
  const std::int32_t mine = arguments.indices[first];
  const T* rows = static_cast<const T*>(arguments.rows);
  const std::int64_t cols = arguments.cols;
  for (std::int64_t from = static_cast<std::int64_t>(blockIdx.y) * kRowThreads; from < cols;
       from += static_cast<std::int64_t>(gridDim.y) * kRowThreads) {
    const std::int64_t col = from + threadIdx.x;
    T* to = static_cast<T*>(arguments.table) + mine * cols + col;
    C sum = col < cols ? widen(*to) : C(0);
    for (std::int64_t begin = first; begin < arguments.count; begin += kRowThreads) {
      find_matches(arguments, mine, begin, matches);
      if (col >= cols) continue;
      for (int k = 0; k < matches.count; ++k) {
        sum += widen(rows[(begin + matches.list[k]) * cols + col]);
      }
    }
    if (col < cols) *to = narrow<T>(sum);
  }
}

template <class T>
__device__ inline void dropout_of(const DropoutArguments& arguments) {
  using C = ComputeOf<T>;
  const auto words = counter::dropout_words(arguments.seed, arguments.call);
  const std::uint64_t threshold = counter::dropout_threshold(arguments.rate);
  const C scale = counter::dropout_scale<C>(arguments.rate);
  const T* x = static_cast<const T*>(arguments.x);
  T* out = static_cast<T*>(arguments.out);
  const std::int64_t cols = arguments.cols;
  const counter::PartRows numbers{arguments.part_group, arguments.part_stride,
                                  arguments.part_first};
  each_cell(arguments.rows, (cols + 3) / 4, [=](std::int64_t row, std::int64_t group) {
    const std::int64_t number = numbers.number(row);
    const auto random = counter::dropout_group(
        words, 0xFFFFFFFFu, static_cast<std::uint32_t>(number >> 20),
        static_cast<std::uint32_t>(number & 0xFFFFF), static_cast<std::uint32_t>(group));
    for (int i = 0; i < 4 && group * 4 + i < cols; ++i) {
      const std::int64_t at = row * cols + group * 4 + i;
      // 0 where the unit is dropped, of NaN and infinity too.
      const bool dropped = random[i] < threshold;
      out[at] = narrow<T>(dropped ? C(0) : widen(x[at]) * scale);
    }
  });
}

}  // namespace openrnn::gpu

using namespace openrnn::gpu;

extern "C" __global__ void openrnn_add_row(AddRowArguments arguments) {
  with_number(arguments.number, [=](auto type) {
    using T = decltype(type);
    const T* x = static_cast<const T*>(arguments.x);
    const T* added = static_cast<const T*>(arguments.row);
    T* y = static_cast<T*>(arguments.y);
    each_cell(arguments.rows, arguments.cols, [=](std::int64_t row, std::int64_t col) {
      const std::int64_t at = row * arguments.cols + col;
      y[at] = narrow<T>(widen(x[at]) + widen(added[col]));
    });
  });
}

extern "C" __global__ void openrnn_column_sum(ColumnSumArguments arguments) {
  with_number(arguments.number, [=](auto type) { column_sum_of<decltype(type)>(arguments); });
}

extern "C" __global__ void openrnn_copy(CopyArguments arguments) {
  switch (arguments.word_bytes) {
    case 16:
      return copy_words<Word16>(arguments);
    case 8:
      return copy_words<std::uint64_t>(arguments);
    case 4:
      return copy_words<std::uint32_t>(arguments);
    case 2:
      return copy_words<std::uint16_t>(arguments);
    default:
      return copy_words<std::uint8_t>(arguments);
  }
}

extern "C" __global__ void openrnn_scatter_add(ScatterArguments arguments) {
  with_number(arguments.number, [=](auto type) { scatter_add_of<decltype(type)>(arguments); });
}

extern "C" __global__ void openrnn_dropout(DropoutArguments arguments) {
  with_number(arguments.number, [=](auto type) { dropout_of<decltype(type)>(arguments); });
}
