// The Python object of a tape.
#pragma once

#include "python/support/convert.h"

namespace openrnn::python {

/// A tape that a `with` statement opens; gradients can be computed after it, too.
class Tape {
 public:
  void open() { tape_ = std::make_unique<GradientTape>(); }
  void close() {
    if (tape_) tape_->close();
  }
  /// Forgets what was recorded.
  void drop() { tape_.reset(); }
  const GradientTape& get() {
    if (!tape_) throw StateError("[GradientTape] it was never entered, expected a with statement");
    return *tape_;
  }

 private:
  std::unique_ptr<GradientTape> tape_;
};

}  // namespace openrnn::python
