// A recurrent call and its gradient in dual numbers, on the vector units.
#pragma once

#include "openrnn/engine_tangent.h"

namespace openrnn::cpu {

/// In the dtype of the network, float16 and bfloat16 in float32; products are those of the cpu
/// device, so the bits are the same for any number of threads and on every processor.
void tangent(const TangentArgs& args);
/// Whether it has the options of a network: not layer normalization, nor a GRU's projection.
bool has_tangent(const RnnSpec& spec);

}  // namespace openrnn::cpu
