#include "spec.h"

#include <cmath>

namespace openrnn::testapi {

RnnSpec to_spec(const ApiSpec& api) {
  RnnSpec spec;
  spec.mode = parse_rnn_mode(api.mode);
  spec.input_mode = parse_input_mode(api.input_mode);
  spec.direction = parse_direction(api.direction);
  spec.dtype = parse_dtype(api.dtype);
  spec.num_layers = api.num_layers;
  spec.num_units = api.num_units;
  spec.input_size = api.input_size;
  spec.num_proj = api.num_proj;
  spec.training.dropout = api.dropout;
  if (!std::isnan(api.clip_low)) spec.cell_clip = {api.clip_low, api.clip_high};
  return spec;
}

}  // namespace openrnn::testapi
