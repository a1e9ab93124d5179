// A handler as JAX registers it.
#pragma once

#include "python/jax/call_frame.h"
#include "python/support/common.h"

namespace openrnn::python::jax {

inline nb::capsule capsule_of(Handler* handler) {
  // The name by which XLA knows a function.
  return nb::steal<nb::capsule>(
      PyCapsule_New(reinterpret_cast<void*>(handler), "xla._CUSTOM_CALL_TARGET", nullptr));
}

}  // namespace openrnn::python::jax
