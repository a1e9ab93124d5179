// Forward, backward and second derivatives of a call on PyTorch's memory.
#pragma once

#include "openrnn/engine_tangent.h"
#include "python/torch/saved_calls.h"
#include "python/torch/weights.h"

namespace openrnn::python::torch {

struct Inputs {
  const void* x = nullptr;
  const void* h0 = nullptr;
  const void* c0 = nullptr;
};
struct Outputs {
  void* y = nullptr;
  void* hn = nullptr;
  void* cn = nullptr;
};

/// Runs a call; with `saving` it returns what backward needs, else null. `packed` must be packed
/// for training then.
std::shared_ptr<const SavedCall> forward(const std::shared_ptr<const Network>& network,
                                         PackedWeights::Packed& packed, const Call& call,
                                         const Inputs& in, const Outputs& out, bool saving);

/// Gradients of outputs in, of inputs out; null pointers as in BackwardArgs. The gradients of the
/// parameters, of all rows or of each of [first, last), are in the order of the opaque buffer.
struct Backward {
  Inputs from;  // of y, hn, cn, as x, h0, c0
  Outputs to;   // of x, h0, c0, as y, hn, cn
  void* params = nullptr;
  void* rows = nullptr;
  std::int64_t first = 0, last = 0;
};
void backward(const SavedCall& saved, const Backward& args);

/// As TangentArgs, but for the states' and sequences' places. `params` of both are opaque buffers.
struct Tangent {
  Inputs at, direction, gradients;
  const void* params = nullptr;
  const void* params_direction = nullptr;
  Outputs moved, curvature;
  void* params_curvature = nullptr;
};
void tangent(const Network& network, const Call& call, const Tangent& args);
/// The engine that has second derivatives of the network; null: none has.
const Engine* tangent_engine(const Network& network);

}  // namespace openrnn::python::torch
