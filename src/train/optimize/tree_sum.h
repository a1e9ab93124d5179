// The sum of the parts of a step, in one order, whoever computes which part.
#pragma once

#include "openrnn/device.h"

namespace openrnn::train {

/// What a part adds to a step: flat arrays, of every part as many, and of the same sizes and dtypes
/// at each place. An empty array is left out of the sum, and so is an empty list.
using PartValues = std::vector<DeviceArray>;

/// to += from, element by element and each rounded once to its dtype, so that no number of threads
/// changes a bit. Where one of two arrays is left out the other one stays as it is.
/// Throws: ArgumentError for lists, sizes or dtypes that differ.
void add_values(PartValues& to, PartValues from);

/// Adds leaves 0, 1, 2, .. in a binary tree: (0, 1), (2, 3), ..; then pairs of these; and so on, as
/// far as a power of two that holds them all, the leaves beyond the last being left out. So 2^k
/// leaves from a multiple of 2^k on are a subtree: processes that each add such a block, and then
/// the blocks' sums in their order by another TreeSum, get the same bits as one that adds all.
/// A sum of n leaves keeps at most log2(n) + 1 of them in memory, the newest one included.
class TreeSum {
 public:
  void add(PartValues leaf);
  /// The sum of all leaves since the last take(); empty without any.
  PartValues take();
  /// Sums that are in memory.
  std::size_t kept() const noexcept { return nodes_.size(); }

 private:
  struct Node {
    int level;  // of 2^level leaves
    PartValues sum;
  };
  std::vector<Node> nodes_;  // from the first leaf on; levels fall
};

}  // namespace openrnn::train
