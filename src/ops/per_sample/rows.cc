#include "ops/per_sample/rows.h"

#include <algorithm>

namespace openrnn::ops::per_sample {
namespace {

double squares_of(const DeviceArray& x) {
  return x.device().sum_of_squares(x.dtype(), x.size(), x.data());
}

// Gradients [last - first, shape..] that `write(b, to)` makes one by one.
template <class Write>
std::function<DeviceArray(std::int64_t, std::int64_t)> one_by_one(DeviceArray like, Shape shape,
                                                                  Write write) {
  return [=](std::int64_t first, std::int64_t last) {
    Shape all = shape;
    all.insert(all.begin(), last - first);
    DeviceArray result = DeviceArray::zeros(like.device(), like.dtype(), std::move(all));
    const std::size_t bytes =
        static_cast<std::size_t>(shape_size(shape)) * dtype_size(like.dtype());
    for (std::int64_t b = first; b < last; ++b) {
      write(b, static_cast<std::byte*>(result.mutable_data()) +
                   static_cast<std::size_t>(b - first) * bytes);
    }
    return result;
  };
}

SharedGradient as_wished(OfRows wish, std::int64_t rows,
                         std::function<DeviceArray(std::int64_t, std::int64_t)> of_rows) {
  SharedGradient result;
  if (wish == OfRows::kSquares) {
    result.squares = squares_one_by_one(rows, of_rows);
  } else if (wish != OfRows::kNothing) {
    result.of_rows = std::move(of_rows);
  }
  return result;
}

}  // namespace

RowGradients all_in(const RowsView& view, const Node& node, const RowCall& call) {
  std::vector<DeviceArray> found = node.selective
                                       ? node.selective(call.output_gradients, call.wanted)
                                       : node.backward(call.output_gradients);
  RowGradients gradients;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool used = call.wanted[i] && !found[i].empty();
    gradients.push_back(
        {.gradient = used ? std::move(found[i]) : DeviceArray(), .view = view, .shared = {}});
  }
  return gradients;
}

RowGradients same_places(const Node& node, const RowCall& call) {
  return all_in(call.views[0], node, call);
}

void refuse_meeting(std::string_view op) {
  throw UnsupportedError(message("[per_sample] rows of the batch meet in '", op,
                                 "', expected operations on each row apart"));
}

void require_apart(std::string_view op, const RowsView& view, std::int64_t columns) {
  if (view.rows <= 1 || columns == 0 || view.inner % columns == 0) return;
  refuse_meeting(op);
}

DeviceArray Places::of(std::int64_t b) const {
  DeviceArray part(values.device(), values.dtype(), {count(), columns});
  if (part.size() == 0) return part;
  // A single row has everything, in whatever view.
  const RowsView seen = view.rows == 1 ? RowsView{1, 1, view.size()} : view;
  const std::size_t bytes = static_cast<std::size_t>(seen.inner) * dtype_size(values.dtype());
  part.device().copy(
      {.count = seen.outer,
       .bytes = bytes,
       .from = static_cast<const std::byte*>(values.data()) + static_cast<std::size_t>(b) * bytes,
       .from_stride = static_cast<std::size_t>(seen.rows) * bytes,
       .to = part.mutable_data(),
       .to_stride = bytes});
  return part;
}

std::vector<double> squares_one_by_one(
    std::int64_t rows, const std::function<DeviceArray(std::int64_t, std::int64_t)>& of_rows) {
  std::vector<double> squares;
  for (std::int64_t b = 0; b < rows; ++b) squares.push_back(squares_of(of_rows(b, b + 1)));
  return squares;
}

SharedGradient product(OfRows wish, const Places& x, const Places& dy, bool transposed) {
  // The squares of x dy^T are the products of those of x and dy.
  if (wish == OfRows::kSquares && x.count() == 1) {
    SharedGradient result;
    for (std::int64_t b = 0; b < dy.view.rows; ++b) {
      result.squares.push_back(squares_of(x.of(b)) * squares_of(dy.of(b)));
    }
    return result;
  }
  const Places& left = transposed ? dy : x;
  const Places& right = transposed ? x : dy;
  const auto write = [left, right](std::int64_t b, void* to) {
    const DeviceArray a = left.of(b), c = right.of(b);
    a.device().matmul({.dtype = a.dtype(),
                       .m = left.columns,
                       .n = right.columns,
                       .k = left.count(),
                       .a = a.data(),
                       .b = c.data(),
                       .c = to,
                       .transpose_a = true});
  };
  return as_wished(wish, dy.view.rows, one_by_one(dy.values, {left.columns, right.columns}, write));
}

SharedGradient column_sums(OfRows wish, const Places& dy) {
  const auto write = [dy](std::int64_t b, void* to) {
    const DeviceArray own = dy.of(b);
    own.device().column_sum(own.dtype(), dy.count(), dy.columns, own.data(), to);
  };
  return as_wished(wish, dy.view.rows, one_by_one(dy.values, {dy.columns}, write));
}

SharedGradient scattered(OfRows wish, const Places& dy, const DeviceArray& indices,
                         const Shape& table) {
  const Places names{indices, with_columns(dy.view, dy.columns, 1), 1};
  const auto scatter = [dy](const DeviceArray& own, const std::int32_t* to, void* sums) {
    own.device().scatter_add_rows(own.dtype(), dy.count(), dy.columns, own.data(), to, sums);
  };
  if (wish == OfRows::kSquares) {
    // Of the rows of the table that a row of the batch names, and no others.
    SharedGradient result;
    for (std::int64_t b = 0; b < dy.view.rows; ++b) {
      const DeviceArray own = dy.of(b), named = names.of(b);
      const auto* const first = static_cast<const std::int32_t*>(named.data());
      std::vector<std::int32_t> places(first, first + named.size()), found(places);
      std::sort(found.begin(), found.end());
      found.erase(std::unique(found.begin(), found.end()), found.end());
      for (std::int32_t& place : places) {
        const auto at = std::lower_bound(found.begin(), found.end(), place);
        place = static_cast<std::int32_t>(at - found.begin());
      }
      DeviceArray sums = DeviceArray::zeros(own.device(), own.dtype(),
                                            {static_cast<std::int64_t>(found.size()), dy.columns});
      scatter(own, places.data(), sums.mutable_data());
      result.squares.push_back(squares_of(sums));
    }
    return result;
  }
  const auto write = [dy, names, scatter](std::int64_t b, void* to) {
    const DeviceArray named = names.of(b);
    scatter(dy.of(b), static_cast<const std::int32_t*>(named.data()), to);
  };
  return as_wished(wish, dy.view.rows, one_by_one(dy.values, table, write));
}

}  // namespace openrnn::ops::per_sample
