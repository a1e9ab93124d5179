// A network's spec as plain C.
#pragma once

#include "openrnn/spec.h"

extern "C" {

struct ApiSpec {
  const char *mode, *input_mode, *direction, *dtype;
  std::int64_t num_layers, num_units, input_size, num_proj;
  double dropout;
  double clip_low, clip_high;  // no clip when both are NaN
  const char* options;         // "name=value;name=low:high", or null
};

}  // extern "C"

namespace openrnn::testapi {

RnnSpec to_spec(const ApiSpec& api);

}  // namespace openrnn::testapi
