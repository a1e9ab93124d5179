// Time measured by a GPU.
#pragma once

#include <vector>

#include "cudnn/gpu/event.h"

namespace openrnn::cudnn {

/// The time between two points of a GPU's work. Not to be used by two threads at once.
class GpuTimer {
 public:
  /// Throws: EngineError, as all below.
  explicit GpuTimer(Context& context);
  /// Marks what has been enqueued so far; neither waits.
  void start();
  void stop();
  /// Of the GPU between start and stop; waits for it.
  double milliseconds();

 private:
  Context& context_;
  Event start_, stop_;
};

}  // namespace openrnn::cudnn
