// Asks cuDNN for the table of params/cudnn_layout.h.
#pragma once

#include "cudnn/rnn/weights.h"
#include "params/cudnn_layout.h"

namespace openrnn::testing {

/// Throws: EngineError where there is no GPU, or cuDNN has a matrix of another shape.
inline std::string layout_table(const std::vector<RnnSpec>& specs) {
  cudnn::Context& context = cudnn::Context::of(0);
  const cudnn::Context::Current current(context);
  std::string text;
  for (const RnnSpec& spec : specs) {
    const auto map = cudnn::weight_map(context, spec);
    text += layout_line(spec, map->size, map->offsets) + "\n";
  }
  return text;
}

}  // namespace openrnn::testing
