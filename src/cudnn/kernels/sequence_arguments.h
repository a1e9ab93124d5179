// Arguments of the kernels of sequences, passed by value. A batch is kept "packed": rows sorted by
// length, longest first, steps one after another; step t holds the rows that are that long.
#pragma once

#include <cstdint>

#include "cudnn/kernels/arguments.h"

namespace openrnn::gpu {

/// The rows of a packed batch; null tables: the rows are in the caller's order.
struct PackedRows {
  std::int64_t steps, rows;     // rows of the first step
  const std::int64_t* offsets;  // [steps + 1]: packed vectors before step t
  const std::int32_t* row;      // [rows]: the caller's row
  const std::int32_t* length;   // [rows], falling
  const std::int32_t* place;    // [batch]: where the caller's row is, -1 where it is empty
};

/// Vectors of `words` words between the caller's array, whose step and row are that many words
/// apart, and a packed one.
struct PackArguments {
  PackedRows packed;
  std::int64_t time, batch, words;
  std::int32_t word_bytes;
  const void* from;
  void* to;
  std::int64_t step_stride, row_stride;  // of the caller's array
};

/// States of `planes` pseudo-layers; strides in words, of the caller's array.
struct StateArguments {
  PackedRows packed;
  std::int64_t planes, batch, words;
  std::int32_t word_bytes;
  const void* from;   // null: zeros
  const void* other;  // unpacking: what empty rows get, laid out as `to`; null: zeros
  void* to;
  std::int64_t plane_stride, row_stride;
};

/// to = from * mask over packed vectors of `width` units; masks number rows from `first_row` on.
struct MaskArguments {
  PackedRows packed;
  Number number;
  std::int64_t width;
  std::uint64_t seed, call;
  std::uint32_t layer, first_row;
  double rate;
  const void* from;
  void* to;
};

/// to = from, or to += from, over packed vectors of `width` numbers that start from_stride and
/// to_stride numbers apart; reversed: each row's steps from its last to its first.
struct MoveArguments {
  PackedRows packed;
  Number number;
  bool reversed, adds;
  std::int64_t width;
  const void* from;
  void* to;
  std::int64_t from_stride, to_stride;
};

}  // namespace openrnn::gpu
