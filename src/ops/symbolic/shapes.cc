#include "ops/symbolic/shapes.h"

#include <algorithm>

#include "base/message.h"

namespace openrnn::ops {

std::size_t axis_of(std::string_view call, std::int64_t axis, std::size_t rank) {
  const auto dimensions = static_cast<std::int64_t>(rank);
  const std::int64_t from_start = axis < 0 ? axis + dimensions : axis;
  if (from_start >= 0 && from_start < dimensions) return static_cast<std::size_t>(from_start);
  throw ArgumentError(message(
      "[", call, "] axis is ", axis, ", expected ",
      rank == 0 ? "a tensor with dimensions" : message(-dimensions, " to ", dimensions - 1)));
}

Shape broadcast_shape(std::string_view call, const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Shape shape(rank, 1);
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t left = i < rank - a.size() ? 1 : a[i - (rank - a.size())];
    const std::int64_t right = i < rank - b.size() ? 1 : b[i - (rank - b.size())];
    if (left != right && left != 1 && right != 1 && left >= 0 && right >= 0) {
      throw ArgumentError(message("[", call, "] b has shape ", to_string(b),
                                  ", expected one that broadcasts with ", to_string(a), " of a"));
    }
    // A size that is known is that of the other side, too.
    shape[i] = left == 1 || (right != 1 && right >= 0) ? right : left;
  }
  return shape;
}

std::vector<bool> chosen_axes(std::string_view call, const std::optional<Axes>& axes,
                              std::size_t rank) {
  std::vector<bool> chosen(rank, !axes);
  if (!axes) return chosen;
  for (const std::int64_t axis : *axes) {
    const std::size_t at = axis_of(call, axis, rank);
    if (chosen[at]) {
      throw ArgumentError(
          message("[", call, "] axis is ", to_string(*axes), ", expected each axis once"));
    }
    chosen[at] = true;
  }
  return chosen;
}

Shape reduced_shape(const Shape& shape, const std::vector<bool>& chosen, bool keep) {
  Shape result;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!chosen[i] || keep) result.push_back(chosen[i] ? 1 : shape[i]);
  }
  return result;
}

std::vector<std::size_t> permutation(std::string_view call, const Axes& perm, std::size_t rank) {
  std::vector<std::size_t> result;
  if (perm.empty()) {
    for (std::size_t i = rank; i-- > 0;) result.push_back(i);
    return result;
  }
  std::vector<bool> seen(rank, false);
  for (const std::int64_t axis : perm) {
    result.push_back(axis_of(call, axis, rank));
    seen[result.back()] = true;
  }
  if (perm.size() != rank || std::find(seen.begin(), seen.end(), false) != seen.end()) {
    throw ArgumentError(message("[", call, "] perm is ", to_string(perm), ", expected each of the ",
                                rank, " axes once"));
  }
  return result;
}

Shape permuted(const Shape& shape, const std::vector<std::size_t>& perm) {
  Shape result;
  for (const std::size_t axis : perm) result.push_back(shape[axis]);
  return result;
}

std::vector<std::size_t> to_front(std::size_t axis, std::size_t rank) {
  std::vector<std::size_t> perm{axis};
  for (std::size_t i = 0; i < rank; ++i) {
    if (i != axis) perm.push_back(i);
  }
  return perm;
}

Axes inverse(const std::vector<std::size_t>& perm) {
  Axes result(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) result[perm[i]] = static_cast<std::int64_t>(i);
  return result;
}

Axes as_axes(const std::vector<std::size_t>& perm) { return {perm.begin(), perm.end()}; }

Steps steps_of(std::optional<std::int64_t> begin, std::optional<std::int64_t> end,
               std::int64_t step, std::int64_t size) {
  const std::int64_t low = step < 0 ? -1 : 0, high = step < 0 ? size - 1 : size;
  const auto place = [&](std::int64_t at) {
    return std::clamp(at < 0 ? at + size : at, low, std::max(low, high));
  };
  const std::int64_t first = begin ? place(*begin) : step < 0 ? high : low;
  const std::int64_t last = end ? place(*end) : step < 0 ? low : high;
  if (step < 0) return {first, first > last ? (first - last - 1) / -step + 1 : 0};
  return {first, first < last ? (last - first - 1) / step + 1 : 0};
}

}  // namespace openrnn::ops
