// Clipping by the global norm.
#include <algorithm>
#include <cmath>

#include "openrnn/train_optimizer.h"
#include "train/message.h"

namespace openrnn::train {

double global_norm(const std::vector<DeviceArray>& gradients) {
  double squares = 0.0;
  // All arrays of a device at once, so that a GPU is waited for once.
  std::vector<ConstArrayView> arrays;
  const Device* device = nullptr;
  const auto add = [&] {
    if (device) squares += device->total_of_squares(arrays);
    arrays.clear();
  };
  for (const DeviceArray& gradient : gradients) {
    if (gradient.empty()) continue;
    if (device != &gradient.device()) add();
    device = &gradient.device();
    arrays.push_back({gradient.data(), gradient.dtype(), gradient.shape()});
  }
  add();
  return std::sqrt(squares);
}

double clip_by_global_norm(std::vector<DeviceArray>& gradients, double clip_norm) {
  if (!(clip_norm > 0.0)) {
    throw ArgumentError(
        message("clip_by_global_norm", "clip_norm ", clip_norm, ", expected a number above 0"));
  }
  const double norm = global_norm(gradients);
  if (!std::isfinite(norm)) {
    throw ArgumentError(message("clip_by_global_norm", "gradients with a global norm of ", norm,
                                ", expected finite gradients"));
  }
  const double factor = clip_norm * std::min(1.0 / norm, 1.0 / clip_norm);
  // A factor of exactly 1 would still cost a pass over all gradients.
  if (norm <= clip_norm) return norm;
  for (DeviceArray& gradient : gradients) {
    if (gradient.empty()) continue;
    gradient.make_unique_owner();
    gradient.device().scale(gradient.dtype(), gradient.size(), factor, gradient.data(),
                            gradient.mutable_data());
  }
  return norm;
}

}  // namespace openrnn::train
