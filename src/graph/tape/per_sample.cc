// Gradients and norms of samples, from a pass that keeps rows apart.
#include <algorithm>
#include <cmath>

#include "base/message.h"
#include "graph/tape/row_pass.h"
#include "graph/tape/sweep.h"

namespace openrnn {
namespace {

using Arrays = std::vector<DeviceArray>;

// Gradients of rows that are made at once for their norms.
constexpr std::size_t kBytesAtOnce = std::size_t{32} << 20U;

/// The losses of rows in a target.
RowsView view_of_target(const char* call, const Tensor& target, std::int64_t axis) {
  const Shape& shape = target.shape();
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t from_start = axis < 0 ? axis + rank : axis;
  if (from_start < 0 || from_start >= rank) {
    throw ArgumentError(message("[", call, "] target has shape ", to_string(shape), " and axis is ",
                                axis, ", expected losses of each row, and the axis along which ",
                                "the rows lie"));
  }
  if (target.device().engine()) {
    throw UnsupportedError(message("[", call, "] target lies on ", target.device().name(),
                                   ", expected a model on the cpu"));
  }
  return RowsView::along(shape, static_cast<std::size_t>(from_start));
}

const std::byte* bytes_at(const DeviceArray& array, std::int64_t element) {
  return static_cast<const std::byte*>(array.data()) +
         static_cast<std::size_t>(element) * dtype_size(array.dtype());
}

/// The gradients by the sources, of some rows at a time.
class Samples {
 public:
  Samples(const graph::RowPass& pass, const std::vector<Tensor>& sources,
          const std::vector<std::uint64_t>& leaves)
      : pass_(pass), sources_(sources), leaves_(leaves), shared_(pass.shared()) {}

  /// [last - first, shape of the source..] of those that are `chosen` and have a gradient.
  Arrays of_rows(std::int64_t first, std::int64_t last, const std::vector<bool>& chosen) const {
    Arrays totals(leaves_.size());
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      if (!chosen[i]) continue;
      for (const SharedGradient& each : leaf(i).shared) {
        graph::ArrayRules::add(totals[i], each.of_rows(first, last));
      }
      if (!leaf(i).apart.empty()) graph::ArrayRules::add(totals[i], spread(i, first, last));
    }
    for (std::int64_t row = first; row < last && !shared_.empty(); ++row) {
      add_below(row, row - first, last - first, chosen, totals);
    }
    return totals;
  }
  /// The squared norms of the rows by source i; false if they were not found on the way.
  bool add_squares(std::size_t i, std::vector<double>& norms) const {
    if (pass_.goes_on_to(leaves_[i])) return false;
    const graph::RowGradients& own = leaf(i);
    if (own.shared.empty()) {
      for (std::size_t b = 0; b < norms.size() && !own.apart.empty(); ++b) {
        const DeviceArray row = cut(own, static_cast<std::int64_t>(b));
        norms[b] += row.device().sum_of_squares(row.dtype(), row.size(), row.data());
      }
      return true;
    }
    const std::vector<double>& squares = own.shared[0].squares;
    if (own.shared.size() > 1 || !own.apart.empty() || squares.empty()) return false;
    for (std::size_t b = 0; b < norms.size(); ++b) norms[b] += squares[b];
    return true;
  }

 private:
  const graph::RowGradients& leaf(std::size_t i) const { return pass_.leaf(leaves_[i]); }
  // One row of an array in which rows have places of their own: [outer, inner].
  static DeviceArray cut(const graph::RowGradients& from, std::int64_t row) {
    const auto& [outer, rows, inner] = from.view;
    DeviceArray part(from.apart.device(), from.apart.dtype(), {outer, inner});
    const std::size_t bytes = static_cast<std::size_t>(inner) * dtype_size(part.dtype());
    part.device().copy({.count = outer,
                        .bytes = bytes,
                        .from = bytes_at(from.apart, row * inner),
                        .from_stride = static_cast<std::size_t>(rows) * bytes,
                        .to = part.mutable_data(),
                        .to_stride = bytes});
    return part;
  }
  // The gradients of rows apart: each 0 but at its own place.
  DeviceArray spread(std::size_t i, std::int64_t first, std::int64_t last) const {
    const graph::RowGradients& from = leaf(i);
    const auto& [outer, rows, inner] = from.view;
    DeviceArray all = zeros(i, from.apart, last - first);
    const std::size_t bytes = static_cast<std::size_t>(inner) * dtype_size(all.dtype());
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t place = (row - first) * from.apart.size() + row * inner;
      all.device().copy({.count = outer,
                         .bytes = bytes,
                         .from = bytes_at(from.apart, row * inner),
                         .from_stride = static_cast<std::size_t>(rows) * bytes,
                         .to = const_cast<std::byte*>(bytes_at(all, place)),
                         .to_stride = static_cast<std::size_t>(rows) * bytes});
    }
    return all;
  }
  DeviceArray zeros(std::size_t i, const DeviceArray& like, std::int64_t rows) const {
    Shape shape = sources_[i].shape();
    shape.insert(shape.begin(), rows);
    return DeviceArray::zeros(like.device(), like.dtype(), std::move(shape));
  }
  // What comes to the sources by way of operations on what all rows share: a gradient of one row.
  void add_below(std::int64_t row, std::int64_t at, std::int64_t count,
                 const std::vector<bool>& chosen, Arrays& totals) const {
    graph::Sweep<DeviceArray, graph::ArrayRules> sweep(pass_.nodes(), leaves_);
    for (const graph::RowPass::Shared& each : shared_) {
      for (const SharedGradient& gradient : each.gradients) {
        DeviceArray one = gradient.of_rows(row, row + 1);
        sweep.deliver(each.edge, one.reshaped({one.shape().begin() + 1, one.shape().end()}));
      }
    }
    sweep.run();
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      const DeviceArray& found = sweep.leaf(leaves_[i]);
      if (!chosen[i] || found.empty()) continue;
      if (totals[i].empty()) totals[i] = zeros(i, found, count);
      totals[i].make_unique_owner();
      totals[i].device().accumulate(found.dtype(), found.size(), found.data(),
                                    const_cast<std::byte*>(bytes_at(totals[i], at * found.size())));
    }
  }

  const graph::RowPass& pass_;
  const std::vector<Tensor>& sources_;
  const std::vector<std::uint64_t>& leaves_;
  std::vector<graph::RowPass::Shared> shared_;
};

std::vector<Tensor> values(const std::vector<Variable>& sources) {
  std::vector<Tensor> tensors;
  for (const Variable& source : sources) tensors.push_back(source.read());
  return tensors;
}

graph::RowPass pass_of(const char* call, const graph::Recording& recording, const Tensor& target,
                       const std::vector<std::uint64_t>& leaves, const RowsView& view,
                       OfRows only) {
  graph::RowPass pass(call, recording.nodes(), leaves, view.rows, only);
  pass.run(graph::edge_of(target), graph::ones_like(target), view);
  return pass;
}

}  // namespace

std::vector<double> GradientTape::per_sample_norms(const Tensor& target,
                                                   const std::vector<Tensor>& sources,
                                                   std::int64_t axis) const {
  constexpr const char* kCall = "per_sample_norms";
  const std::vector<std::uint64_t> leaves = graph::leaf_ids(sources);
  check_targets({target}, 0);
  const RowsView view = view_of_target(kCall, target, axis);
  std::vector<double> norms(static_cast<std::size_t>(view.rows), 0.0);
  if (norms.empty()) return norms;
  const graph::RowPass pass = pass_of(kCall, *recording_, target, leaves, view, OfRows::kSquares);
  const Samples samples(pass, sources, leaves);
  std::vector<bool> left(sources.size());
  std::size_t bytes = 0;  // of one row's gradients
  for (std::size_t i = 0; i < sources.size(); ++i) {
    left[i] = !samples.add_squares(i, norms);
    if (left[i]) bytes += sources[i].value().size_bytes();
  }
  const auto at_once = static_cast<std::int64_t>(kBytesAtOnce / std::max<std::size_t>(bytes, 1));
  for (std::int64_t row = 0, count = 0; bytes > 0 && row < view.rows; row += count) {
    count = std::clamp<std::int64_t>(at_once, 1, view.rows - row);
    for (const DeviceArray& found : samples.of_rows(row, row + count, left)) {
      for (std::int64_t k = 0; k < count && !found.empty(); ++k) {
        const std::int64_t size = found.size() / count;
        norms[static_cast<std::size_t>(row + k)] +=
            found.device().sum_of_squares(found.dtype(), size, bytes_at(found, k * size));
      }
    }
  }
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

std::vector<double> GradientTape::per_sample_norms(const Tensor& target,
                                                   const std::vector<Variable>& sources,
                                                   std::int64_t axis) const {
  return per_sample_norms(target, values(sources), axis);
}

Arrays GradientTape::per_sample_gradients(const Tensor& target, const std::vector<Tensor>& sources,
                                          std::int64_t axis) const {
  constexpr const char* kCall = "per_sample_gradients";
  const std::vector<std::uint64_t> leaves = graph::leaf_ids(sources);
  check_targets({target}, 0);
  const RowsView view = view_of_target(kCall, target, axis);
  const graph::RowPass pass = pass_of(kCall, *recording_, target, leaves, view, OfRows::kAll);
  const Samples samples(pass, sources, leaves);
  return samples.of_rows(0, view.rows, std::vector<bool>(sources.size(), true));
}

Arrays GradientTape::per_sample_gradients(const Tensor& target,
                                          const std::vector<Variable>& sources,
                                          std::int64_t axis) const {
  return per_sample_gradients(target, values(sources), axis);
}

}  // namespace openrnn
