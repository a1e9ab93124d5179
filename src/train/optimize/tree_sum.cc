#include "train/optimize/tree_sum.h"

#include "train/message.h"

namespace openrnn::train {

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

}  // namespace openrnn::train
