// Parts of small whole models.
#pragma once

#include <openrnn/layers_graph.h>

namespace openrnn {

/// A model with the network 'gru' and no layer.
inline MappedModel gru_model(std::int64_t units, std::int64_t width) {
  const RnnSpec spec{.mode = RnnMode::kGru, .num_units = units, .input_size = width};
  MappedModel model;
  model.networks.push_back(
      {.name = "gru", .spec = spec, .params = initialize_params(ParamsLayout(spec), 7)});
  return model;
}

/// The input 'ids' of rows of any length.
inline MappedLayer ids_layer() {
  return {
      .name = "ids",
      .kind = "input",
      .options = {{"shape", std::vector<std::int64_t>{-1, -1}}, {"dtype", std::string("int32")}}};
}

}  // namespace openrnn
