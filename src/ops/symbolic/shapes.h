// Shapes of results from shapes of operands, in which -1 is a dimension that is not known yet.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "openrnn/base.h"

namespace openrnn::ops {

using Axes = std::vector<std::int64_t>;

/// The axis counted from the start. Throws: ArgumentError naming the call and the range.
std::size_t axis_of(std::string_view call, std::int64_t axis, std::size_t rank);
/// The shape that both broadcast to. Throws: ArgumentError naming the call and both.
Shape broadcast_shape(std::string_view call, const Shape& a, const Shape& b);
/// For each dimension whether it is among the axes; unset: all. Throws: ArgumentError for one that
/// is named twice.
std::vector<bool> chosen_axes(std::string_view call, const std::optional<Axes>& axes,
                              std::size_t rank);
/// The chosen dimensions as 1, or without them.
Shape reduced_shape(const Shape& shape, const std::vector<bool>& chosen, bool keep);
/// The permutation with all axes from the start; empty: the reverse.
std::vector<std::size_t> permutation(std::string_view call, const Axes& perm, std::size_t rank);
Shape permuted(const Shape& shape, const std::vector<std::size_t>& perm);
/// The axis moved to the front, or from there.
std::vector<std::size_t> to_front(std::size_t axis, std::size_t rank);
Axes inverse(const std::vector<std::size_t>& perm);
Axes as_axes(const std::vector<std::size_t>& perm);

/// Steps of a slice of an axis of known size: `count` from `first` on.
struct Steps {
  std::int64_t first = 0, count = 0;
};
Steps steps_of(std::optional<std::int64_t> begin, std::optional<std::int64_t> end,
               std::int64_t step, std::int64_t size);

}  // namespace openrnn::ops
