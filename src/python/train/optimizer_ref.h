// The Python object of an optimizer.
#pragma once

#include "openrnn/train_optimizer.h"
#include "python/support/convert.h"

namespace openrnn::python {

/// A share of an optimizer of any class.
struct OptimizerRef {
  std::shared_ptr<train::Optimizer> core;
  /// Steps of one optimizer must not overlap.
  CallLock steps = {};
};

}  // namespace openrnn::python
