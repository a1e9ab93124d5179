// Rows of a step's batch.
#include <cstring>

#include "openrnn/train_data.h"

namespace openrnn::train {
namespace {

// Of [batch, ..], or [time, batch, ..].
Array batch_rows(const Array& from, std::size_t axis, std::int64_t first, std::int64_t count) {
  Shape shape = from.shape();
  shape[axis] = count;
  Array to(from.dtype(), shape);
  if (to.size() == 0) return to;
  const std::size_t times = axis == 0 ? 1 : static_cast<std::size_t>(shape[0]);
  const auto batch = static_cast<std::size_t>(from.shape()[axis]);
  const std::size_t row = from.size_bytes() / times / batch;
  const std::size_t bytes = row * static_cast<std::size_t>(count);
  for (std::size_t t = 0; t < times; ++t) {
    std::memcpy(static_cast<std::byte*>(to.data()) + t * bytes,
                static_cast<const std::byte*>(from.data()) +
                    (t * batch + static_cast<std::size_t>(first)) * row,
                bytes);
  }
  return to;
}

}  // namespace

Window Window::part(std::int64_t first, std::int64_t count) const {
  // Of a series' labels of the last row alone there is no time.
  const bool no_time = x.shape().size() == 3 && y.shape().size() == 2;
  return {batch_rows(x, 1, first, count), batch_rows(y, no_time ? 0 : 1, first, count), fresh};
}

}  // namespace openrnn::train
