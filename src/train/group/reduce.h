// The sum of arrays of several processes.
#pragma once

#include <optional>

#include "openrnn/device.h"
#include "openrnn/train_communicator.h"
#include "train/optimize/tree_sum.h"

namespace openrnn::train {

/// Elements of an array of all processes; its own may be left out.
struct SharedPart {
  const Device* device;
  void* data;  // the sum takes its place
  std::size_t bytes;
  bool present;  // here; else it counts as nothing
};

/// Adds arrays of one dtype, float32 or float64, over the ranks: with kExact as TreeSum adds the
/// leaves 0 to size - 1. Returns the bytes that were sent.
std::int64_t reduce(Communicator& communicator, Reduction reduction, DType dtype,
                    const std::vector<SharedPart>& parts, Adding adding = Adding::kByPool);

/// The numbers of the ranks by the same tree; those that are left out are skipped.
double tree_sum(std::vector<std::optional<double>> numbers);

}  // namespace openrnn::train
