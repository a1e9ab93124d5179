// The arguments of Engine::tangent: a recurrent call and its gradient along a direction, which is
// what second derivatives are made of.
#pragma once

#include "openrnn/params.h"

namespace openrnn {

/// Let f be the call, z = (x, h0, c0, params) its inputs, J its Jacobian at z, u gradients of its
/// outputs and v a direction of z. Computed forward and backward once in dual numbers, z + eps v
/// and u: the eps part of the outputs is J v, and that of the gradient J^T u is H v, with H = sum
/// over k of u_k times the Hessian of output k. H is symmetric, so this is also what the gradient
/// of the gradient needs. At kinks (relu, clips) second derivatives are 0, as their one-sided
/// slopes are constant.
///
/// Shapes, layouts and padding as in ForwardArgs; all memory is the host's, of the spec's dtype.
/// float16 and bfloat16 are computed in float32, and every `math` as float32: what it rounds counts
/// as not rounded.
struct TangentArgs {
  RnnSpec spec;
  std::int64_t max_time = 0, batch = 0;
  bool time_major = true;
  const std::int32_t* sequence_lengths = nullptr;
  bool training = false;  // as in the call: whether there is dropout
  DropoutKey dropout;
  struct Inputs {
    const void* x = nullptr;
    const void* h0 = nullptr;
    const void* c0 = nullptr;
    const void* params = nullptr;  // params_size(spec) elements
  };
  Inputs at;         // z; null states are zeros
  Inputs direction;  // v; null: zeros
  struct Gradients {
    const void* y = nullptr;
    const void* hn = nullptr;
    const void* cn = nullptr;
  };
  Gradients gradients;  // u; null: zeros
  struct Outputs {
    void* y = nullptr;
    void* hn = nullptr;
    void* cn = nullptr;
  };
  Outputs moved;  // J v; null: not wanted
  struct Curvature {
    void* x = nullptr;
    void* h0 = nullptr;
    void* c0 = nullptr;
    void* params = nullptr;
    bool any() const { return x || h0 || c0 || params; }
  };
  Curvature curvature;  // H v; null: not wanted
};

}  // namespace openrnn
