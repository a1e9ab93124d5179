// Rows of sequences and of states on their way between the caller's arrays and cuDNN's.
#include "base/counter.h"
#include "cudnn/kernels/number.h"
#include "cudnn/kernels/sequence_arguments.h"
#include "cudnn/kernels/thread.h"

namespace openrnn::gpu {

struct alignas(16) SixteenBytes {
  std::uint64_t low, high;
};

/// Calls f with a word of that many bytes.
template <class F>
__device__ inline void with_word(std::int32_t bytes, const F& f) {
  if (bytes == 16) {
    f(SixteenBytes{});
  } else if (bytes == 8) {
    f(std::uint64_t{});
  } else if (bytes == 4) {
    f(std::uint32_t{});
  } else {
    f(std::uint16_t{});
  }
}

/// Rows that have step t.
__device__ inline std::int64_t rows_at(const PackedRows& packed, std::int64_t t) {
  return packed.offsets[t + 1] - packed.offsets[t];
}

/// Calls f(packed vector, step, packed row, column) for this thread's share of the columns of every
/// packed vector.
template <class F>
__device__ inline void each_packed(const PackedRows& packed, std::int64_t columns, const F& f) {
  each_cell(packed.steps * packed.rows, columns, [&](std::int64_t pair, std::int64_t column) {
    const std::int64_t t = pair / packed.rows, i = pair % packed.rows;
    if (i < rows_at(packed, t)) f(packed.offsets[t] + i, t, i, column);
  });
}

template <class Word>
__device__ inline void pack_words(const PackArguments& a) {
  const Word* from = static_cast<const Word*>(a.from);
  Word* to = static_cast<Word*>(a.to);
  each_packed(a.packed, a.words,
              [&](std::int64_t n, std::int64_t t, std::int64_t i, std::int64_t k) {
                to[n * a.words + k] = from[t * a.step_stride + a.packed.row[i] * a.row_stride + k];
              });
}

template <class Word>
__device__ inline void unpack_words(const PackArguments& a) {
  const Word* from = static_cast<const Word*>(a.from);
  Word* to = static_cast<Word*>(a.to);
  each_cell(a.time * a.batch, a.words, [&](std::int64_t pair, std::int64_t k) {
    const std::int64_t t = pair / a.batch, b = pair % a.batch;
    const std::int64_t i = a.packed.place[b];
    const bool inside = i >= 0 && t < a.packed.steps && i < rows_at(a.packed, t);
    to[t * a.step_stride + b * a.row_stride + k] =
        inside ? from[(a.packed.offsets[t] + i) * a.words + k] : Word{};
  });
}

template <class Word>
__device__ inline void pack_state_words(const StateArguments& a) {
  const Word* from = static_cast<const Word*>(a.from);
  Word* to = static_cast<Word*>(a.to);
  each_cell(a.planes * a.packed.rows, a.words, [&](std::int64_t pair, std::int64_t k) {
    const std::int64_t s = pair / a.packed.rows, i = pair % a.packed.rows;
    to[pair * a.words + k] =
        from ? from[s * a.plane_stride + a.packed.row[i] * a.row_stride + k] : Word{};
  });
}

template <class Word>
__device__ inline void unpack_state_words(const StateArguments& a) {
  const Word* from = static_cast<const Word*>(a.from);
  const Word* other = static_cast<const Word*>(a.other);
  Word* to = static_cast<Word*>(a.to);
  each_cell(a.planes * a.batch, a.words, [&](std::int64_t pair, std::int64_t k) {
    const std::int64_t s = pair / a.batch, b = pair % a.batch;
    const std::int64_t i = a.packed.place[b], at = s * a.plane_stride + b * a.row_stride + k;
    const Word outside = other ? other[at] : Word{};
    to[at] = i >= 0 ? from[(s * a.packed.rows + i) * a.words + k] : outside;
  });
}

template <class T>
__device__ inline void mask_numbers(const MaskArguments& a) {
  using C = ComputeOf<T>;
  const auto words = counter::dropout_words(a.seed, a.call);
  const std::uint64_t threshold = counter::dropout_threshold(a.rate);
  const C scale = counter::dropout_scale<C>(a.rate);
  const T* from = static_cast<const T*>(a.from);
  T* to = static_cast<T*>(a.to);
  each_packed(a.packed, (a.width + 3) / 4,
              [&](std::int64_t n, std::int64_t t, std::int64_t i, std::int64_t group) {
                const auto random = counter::dropout_group(
                    words, a.layer, static_cast<std::uint32_t>(t),
                    a.first_row + static_cast<std::uint32_t>(a.packed.row[i]),
                    static_cast<std::uint32_t>(group));
                for (int k = 0; k < 4 && group * 4 + k < a.width; ++k) {
                  const std::int64_t at = n * a.width + group * 4 + k;
                  const C mask = random[k] < threshold ? C(0) : scale;
                  to[at] = narrow<T>(widen(from[at]) * mask);
                }
              });
}

template <class T>
__device__ inline void move_numbers(const MoveArguments& a) {
  const T* from = static_cast<const T*>(a.from);
  T* to = static_cast<T*>(a.to);
  each_packed(a.packed, a.width,
              [&](std::int64_t n, std::int64_t t, std::int64_t i, std::int64_t k) {
                const std::int64_t s = a.reversed ? a.packed.length[i] - 1 - t : t;
                const T value = from[(a.packed.offsets[s] + i) * a.from_stride + k];
                T& place = to[n * a.to_stride + k];
                place = a.adds ? narrow<T>(widen(place) + widen(value)) : value;
              });
}

}  // namespace openrnn::gpu

using namespace openrnn::gpu;

extern "C" __global__ void openrnn_pack(PackArguments arguments) {
  with_word(arguments.word_bytes, [&](auto word) { pack_words<decltype(word)>(arguments); });
}

extern "C" __global__ void openrnn_unpack(PackArguments arguments) {
  with_word(arguments.word_bytes, [&](auto word) { unpack_words<decltype(word)>(arguments); });
}

extern "C" __global__ void openrnn_pack_states(StateArguments arguments) {
  with_word(arguments.word_bytes, [&](auto word) { pack_state_words<decltype(word)>(arguments); });
}

extern "C" __global__ void openrnn_unpack_states(StateArguments arguments) {
  with_word(arguments.word_bytes,
            [&](auto word) { unpack_state_words<decltype(word)>(arguments); });
}

extern "C" __global__ void openrnn_mask(MaskArguments arguments) {
  with_number(arguments.number, [&](auto type) { mask_numbers<decltype(type)>(arguments); });
}

extern "C" __global__ void openrnn_move(MoveArguments arguments) {
  with_number(arguments.number, [&](auto type) { move_numbers<decltype(type)>(arguments); });
}
