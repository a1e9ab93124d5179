// What openrnn.keras calls under JAX: the handlers of a recurrent call and of its gradient.
#pragma once

#include "python/jax/frame.h"
#include "python/keras/cell.h"

namespace openrnn::python::keras {

// Attributes of both: `network`, the text of the cell's; `cell`, its number; `backwards`,
// `sequences` and `zero` as in Call; `masked`, whether there is a mask.
// Letters: T, B, I, D, U as in ForwardArgs. The arrays of a call: x [B, T, I]; of each direction h0
// and, in a mode with cells, c0 [B, U]; of each direction kernel, recurrent kernel and, where the
// network has biases, bias; the mask, bool [B, T]. Its outputs: y, of each direction hn, cn.

/// Operands: the arrays. Results: the outputs, and a reserve: uint8, empty for a call without
/// gradients, else of reserve_room bytes.
jax::Error* forward_target(jax::CallFrame* frame);
/// Operands: the gradients of those outputs that the bits of `given` name, the arrays, the reserve.
/// Results: the gradients of those arrays that the bits of `wanted` name. The lowest bit is the
/// first one.
jax::Error* backward_target(jax::CallFrame* frame);
/// Of what forward hands to backward; 0 where the engine cannot lay it into memory that is not its
/// own, and backward runs forward again.
std::int64_t reserve_room(const Cell& cell, std::int64_t time, std::int64_t batch);

}  // namespace openrnn::python::keras
