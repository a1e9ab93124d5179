#include "base/message.h"
#include "engine/cudnn_entry.h"

namespace openrnn {
namespace {

[[noreturn]] void refuse(int ordinal) {
  throw EngineError(message("[device] 'gpu:", ordinal, "' cannot be used: ", cudnn_missing()));
}

}  // namespace

std::string cudnn_missing(int) {
  return "this build has no cuDNN engine; build where CMake finds CUDA 13 (nvcc) and the headers "
         "of "
         "cuDNN 9; running it needs an NVIDIA GPU and its driver";
}

int gpu_count() { return 0; }

const Device& gpu_device(int ordinal) { refuse(ordinal); }

const Engine& gpu_engine(int ordinal) { refuse(ordinal); }

std::string gpu_description(int ordinal) { refuse(ordinal); }

}  // namespace openrnn
