#include "base/message.h"
#include "engine/cudnn_entry.h"

namespace openrnn {

std::string cudnn_missing() {
  return "this build has no cuDNN engine; build with the room cudnn, which needs an NVIDIA GPU, "
         "its driver, CUDA 13 and cuDNN 9";
}

const Engine& cudnn_engine() {
  throw EngineError(message("[engine] 'cudnn' cannot run: ", cudnn_missing()));
}

}  // namespace openrnn
