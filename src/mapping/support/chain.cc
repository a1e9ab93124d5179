#include "mapping/support/chain.h"

#include "base/excerpt.h"
#include "base/message.h"

namespace openrnn::mapping {

void refuse_held(const MappedLayer& layer, const std::string& what, std::string_view format) {
  throw UnsupportedError(message("[save_networks] the layer '", excerpt(layer.name), "' has ", what,
                                 ", which ", format, " cannot hold"));
}

void require_chain(const MappedModel& model, std::string_view format) {
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const MappedLayer& layer = model.layers[i];
    const bool follows = i == 0 ? layer.inputs.empty()
                                : layer.inputs.size() == 1 && layer.inputs[0].index == 0 &&
                                      layer.inputs[0].layer == model.layers[i - 1].name;
    if (!follows) refuse_held(layer, "inputs other than the layer before it", format);
  }
  if (model.outputs.size() != 1 || model.outputs[0].index != 0 ||
      model.outputs[0].layer != model.layers.back().name) {
    throw UnsupportedError(
        message("[save_networks] the model has outputs other than its last "
                "layer's, which ",
                format, " cannot hold"));
  }
}

}  // namespace openrnn::mapping
