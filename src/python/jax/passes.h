// The handlers: forward, backward and second derivatives of one recurrent call.
#pragma once

#include "python/jax/frame.h"

namespace openrnn::python::jax {

// Attributes of all: `network`, its text; `batch_major`; `training`, whether masks are drawn.
// Letters: T, B, I, L, D, O, U as in ForwardArgs; P elements of the opaque buffer. x is [T, B, I],
// y [T, B, D*O], a state [L*D, B, .]; batch-major [B, T, .] and [B, L*D, .]. A cell of a mode
// without one is [0]. lengths: int32 [B], or [0] where all are T; seed: uint32 [2].

/// Operands x, h0, c0, params [P], lengths, seed, token: uint32 [2], 0 for parameters that nobody
/// packed. Results y, hn, cn, reserve: uint8, empty for a call without gradients, else of at least
/// reserve_bytes().
Error* forward(CallFrame* frame);
/// Operands dy, dhn, dcn, x, h0, c0, params, lengths, seed, reserve. Results dx, dh0, dc0, dparams:
/// [P], or of each row of the batch, [B, P], where `rows`.
Error* backward(CallFrame* frame);
/// Operands of the direction: x, h0, c0, params; of the gradients: y, hn, cn; x, h0, c0, params,
/// lengths, seed. Results: moved y, hn, cn; curvature of x, h0, c0, params (TangentArgs).
Error* tangent(CallFrame* frame);

}  // namespace openrnn::python::jax
