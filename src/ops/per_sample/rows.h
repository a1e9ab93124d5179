// Gradients of rows of a batch: what the operations' rules are made of.
#pragma once

#include "openrnn/graph_rows.h"
#include "ops/support/support.h"

namespace openrnn::ops::per_sample {

using RowGradients = std::vector<RowGradient>;

/// Of an operation whose output depends, element by element, on that of each input at the same
/// place: the rows lie as they do in the output.
RowGradients same_places(const Node& node, const RowCall& call);
/// The gradients of an operation, whose inputs all have the rows of `view`.
RowGradients all_in(const RowsView& view, const Node& node, const RowCall& call);

/// Throws: UnsupportedError naming the operation unless each run of `columns` elements is of one
/// row of the batch.
void require_apart(std::string_view op, const RowsView& view, std::int64_t columns);
/// Throws: UnsupportedError naming an operation that puts rows of the batch together.
[[noreturn]] void refuse_meeting(std::string_view op);
/// The same rows where each run of `from` elements is one of `to`.
inline RowsView with_columns(const RowsView& view, std::int64_t from, std::int64_t to) {
  if (from == 0) return {view.outer, view.rows, 0};
  if (view.rows == 1) return {1, 1, view.size() / from * to};
  return {view.outer, view.rows, view.inner / from * to};
}

/// A matrix [.., columns] whose rows belong to rows of the batch.
struct Places {
  DeviceArray values;
  RowsView view;
  std::int64_t columns = 0;

  /// Those of row b of the batch: [places, columns].
  DeviceArray of(std::int64_t b) const;
  std::int64_t count() const { return columns > 0 ? view.outer * view.inner / columns : 0; }
};

/// Of a [K, N] matrix by which each of the places x [K] is multiplied, dy [N] being the gradient of
/// the product: the sum of x dy^T over a row's places. [N, K] when transposed.
SharedGradient product(OfRows wish, const Places& x, const Places& dy, bool transposed = false);
/// Of a vector that is added to each of the places: the sum of dy over a row's places.
SharedGradient column_sums(OfRows wish, const Places& dy);
/// Of a table [V, N] from which each of the places takes the row that `indices` names.
SharedGradient scattered(OfRows wish, const Places& dy, const DeviceArray& indices,
                         const Shape& table);

/// The sum of squares of the gradient of each row, made one by one.
std::vector<double> squares_one_by_one(
    std::int64_t rows, const std::function<DeviceArray(std::int64_t, std::int64_t)>& of_rows);

}  // namespace openrnn::ops::per_sample
