// Changes of variables that are not decided yet.
#pragma once

#include <cstdint>

#include "openrnn/base.h"

namespace openrnn {

/// A change of variables that a device has not decided yet, such as a training step that is applied
/// only if its gradients are finite.
class OPENRNN_API OpenChange {
 public:
  OpenChange() = default;
  virtual ~OpenChange() = default;
  OpenChange(const OpenChange&) = delete;
  OpenChange& operator=(const OpenChange&) = delete;
  /// Waits for the decision and applies it on the host. Thread-safe; done once.
  virtual void settle() = 0;
  /// settle(), then throws what went wrong, the first time.
  virtual void report() = 0;
};

/// What settles a variable's open change, each with those before it.
enum class SettledBy : std::uint8_t {
  kToHost,  // Variable::to_host, which reports as well
  kWrite,   // what writes the variable
  kRead
};

}  // namespace openrnn
