// The sum of the parts of a step, in one order, whoever computes which part.
#pragma once

#include "openrnn/train_optimizer.h"

namespace openrnn::train {

/// Which threads add: beside a pass that uses the pool's, the caller's has to do.
enum class Adding : std::uint8_t { kByPool, kAlone };
/// y += x, of a floating dtype.
void accumulate(const Device& device, Adding adding, DType dtype, std::int64_t size, const void* x,
                void* y);

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
  /// Whether a leaf so far has an array at `place`.
  bool has(std::size_t place) const;
  /// Adds the sums so far to elements [begin, end) of an array at `place` of what would be the last
  /// leaf: they then are those of take(). Not while a leaf is added.
  void add_to_last(std::size_t place, std::int64_t begin, std::int64_t end, void* elements,
                   Adding adding) const;
  /// Sums that are in memory.
  std::size_t kept() const noexcept { return nodes_.size(); }

 private:
  struct Node {
    int level;  // of 2^level leaves
    PartValues sum;
  };
  std::vector<Node> nodes_;  // from the first leaf on; levels fall
};

/// A part's gradients, and its loss behind them: as GradientSum::add.
PartValues part_values(Optimizer& optimizer, const GradientTape& tape, const Tensor& loss,
                       const std::vector<Variable>& variables, double share);
/// A whole sum of such parts. Throws: ArgumentError if it is empty.
GradientSum::Step step_of(PartValues all);

}  // namespace openrnn::train
