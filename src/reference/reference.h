// The reference engine: the equations in plain loops with double sums.
#pragma once

#include "openrnn/engine.h"

namespace openrnn {

/// The specification that other engines are tested against, and the last fallback. It computes in
/// double with libm's exp and tanh whatever the dtype. float16 and bfloat16 round h and c at every
/// step, since that is part of their definition; float32 is rounded once, in the results. So its
/// bits may differ between machines, and it allocates in every call: a workspace of it is empty.
/// Its tangent is the same loops in dual numbers.
const Engine& reference_engine();

}  // namespace openrnn
