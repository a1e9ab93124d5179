#include "train/optimize/tree_sum.h"

#include <algorithm>

#include "train/message.h"

namespace openrnn::train {
namespace {

// Below what the cpu device takes other threads for.
constexpr std::int64_t kAloneElements = std::int64_t{1} << 14;

}  // namespace

void accumulate(const Device& device, Adding adding, DType dtype, std::int64_t size, const void* x,
                void* y) {
  const std::int64_t most =
      adding == Adding::kAlone ? kAloneElements : std::max<std::int64_t>(size, 1);
  const auto width = static_cast<std::int64_t>(dtype_size(dtype));
  for (std::int64_t begin = 0; begin < size; begin += most) {
    device.accumulate(dtype, std::min(most, size - begin),
                      static_cast<const std::byte*>(x) + begin * width,
                      static_cast<std::byte*>(y) + begin * width);
  }
}

void add_values(PartValues& to, PartValues from) {
  if (from.empty()) return;
  if (to.empty()) {
    to = std::move(from);
    return;
  }
  if (to.size() != from.size()) {
    throw ArgumentError(message("TreeSum", from.size(), " arrays, expected ", to.size()));
  }
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (from[i].empty()) continue;
    if (to[i].empty()) {
      to[i] = std::move(from[i]);
      continue;
    }
    if (to[i].size() != from[i].size() || to[i].dtype() != from[i].dtype()) {
      throw ArgumentError(message("TreeSum", dtype_name(from[i].dtype()), " of ", from[i].size(),
                                  " elements, expected ", dtype_name(to[i].dtype()), " of ",
                                  to[i].size()));
    }
    to[i].make_unique_owner();
    to[i].device().accumulate(to[i].dtype(), to[i].size(), from[i].data(), to[i].mutable_data());
  }
}

void TreeSum::add(PartValues leaf) {
  nodes_.push_back({0, std::move(leaf)});
  while (nodes_.size() > 1 && nodes_[nodes_.size() - 2].level == nodes_.back().level) {
    PartValues right = std::move(nodes_.back().sum);
    nodes_.pop_back();
    add_values(nodes_.back().sum, std::move(right));
    ++nodes_.back().level;
  }
}

PartValues TreeSum::take() {
  PartValues sum;
  while (!nodes_.empty()) {
    PartValues left = std::move(nodes_.back().sum);
    nodes_.pop_back();
    add_values(left, std::move(sum));
    sum = std::move(left);
  }
  return sum;
}

bool TreeSum::has(std::size_t place) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [place](const Node& node) {
    return place < node.sum.size() && !node.sum[place].empty();
  });
}

void TreeSum::add_to_last(std::size_t place, std::int64_t begin, std::int64_t end, void* elements,
                          Adding adding) const {
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    if (place >= node->sum.size() || node->sum[place].empty()) continue;
    const DeviceArray& sum = node->sum[place];
    const auto at = static_cast<std::size_t>(begin) * dtype_size(sum.dtype());
    accumulate(sum.device(), adding, sum.dtype(), end - begin,
               static_cast<const std::byte*>(sum.data()) + at,
               static_cast<std::byte*>(elements) + at);
  }
}

}  // namespace openrnn::train
