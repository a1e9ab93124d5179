// A step's decision as kernels see it.
#pragma once

#include <cstddef>

#include "cudnn/kernels/arguments.h"
#include "openrnn/device.h"

namespace openrnn::cudnn {

static_assert(sizeof(gpu::StepDecision) == sizeof(StepDecision) &&
              offsetof(gpu::StepDecision, norm) == offsetof(StepDecision, norm) &&
              offsetof(gpu::StepDecision, factor) == offsetof(StepDecision, factor) &&
              offsetof(gpu::StepDecision, loss) == offsetof(StepDecision, loss) &&
              offsetof(gpu::StepDecision, taken) == offsetof(StepDecision, taken));

inline const gpu::StepDecision* decision_of(const StepDecision* decision) {
  return reinterpret_cast<const gpu::StepDecision*>(decision);
}

}  // namespace openrnn::cudnn
