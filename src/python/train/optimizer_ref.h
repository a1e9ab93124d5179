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

/// Makes the slots, with the interpreter lock held: of variables with a gradient alone, so that an
/// optimizer keeps none alive that its losses do not depend on.
void prepare_changed(const OptimizerRef& self, const std::vector<DeviceArray>& gradients,
                     const std::vector<Variable>& variables);

}  // namespace openrnn::python
