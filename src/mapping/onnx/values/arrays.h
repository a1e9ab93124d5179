// Elements of arrays in another order or shape, as ONNX's operators move them.
#pragma once

#include <limits>

#include "openrnn/base.h"

namespace openrnn::mapping {

/// What results may still take: a file of some hundred bytes could ask for all memory.
struct MemoryBudget {
  std::uint64_t left = std::numeric_limits<std::uint64_t>::max();
  /// Throws: UnsupportedError when it is spent. Each result counts for some bytes, so that the
  /// number of steps is bounded, too.
  void take(std::uint64_t bytes);
};

/// Throws: ArgumentError for a negative size or an overflow, UnsupportedError as the budget.
Array new_array(DType dtype, Shape shape, MemoryBudget* budget);

/// Dimension `axis` counted from the end where negative. Throws: ArgumentError outside of `rank`.
std::size_t axis_of(std::int64_t axis, std::size_t rank);

/// Dimension i of the result is dimension perm[i] of x. Throws: ArgumentError for no permutation.
Array transposed(const Array& x, const std::vector<std::int64_t>& perm, MemoryBudget* budget);
/// Broadcasts sizes of 1, from the right. Throws: ArgumentError.
Array expanded(const Array& x, const Shape& shape, MemoryBudget* budget);
/// The shape that both broadcast to. Throws: ArgumentError.
Shape broadcast_shape(const Shape& a, const Shape& b);

/// From `start` to before `end` in steps of `step`, with the clamping of ONNX and NumPy.
struct SliceOf {
  std::int64_t start = 0, end = 0, step = 1;
};
Array sliced(const Array& x, std::size_t axis, const SliceOf& range, MemoryBudget* budget);
/// Of one dtype and of shapes that differ along `axis` alone. Throws: ArgumentError.
Array concatenated(const std::vector<const Array*>& parts, std::size_t axis, MemoryBudget* budget);
/// The elements of `axis` at each index, whose dimensions stand in its place; negative ones count
/// from the end. Throws: ArgumentError for one outside.
Array gathered(const Array& x, const Array& indices, std::size_t axis, MemoryBudget* budget);
/// Each element in another dtype: rounded to nearest where floating, towards zero where an integer
/// (the nearest one where it is too large, 0 for NaN), unequal to zero where bool.
Array converted(const Array& x, DType dtype, MemoryBudget* budget);
/// Repeats one element.
Array filled(const Array& value, const Shape& shape, MemoryBudget* budget);
/// Integers of an int32 or int64 array. Throws: ArgumentError for another dtype.
std::vector<std::int64_t> integers_of(const Array& x);
Array int64_array(Shape shape, const std::vector<std::int64_t>& values);

}  // namespace openrnn::mapping
