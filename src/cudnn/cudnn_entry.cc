#include "engine/cudnn_entry.h"

#include "base/message.h"
#include "cudnn/gpu/context.h"

namespace openrnn {

std::string cudnn_missing(int ordinal) { return cudnn::Context::missing(ordinal); }

int gpu_count() {
  const cudnn::Libraries& all = cudnn::libraries();
  return all.missing.empty() && !cudnn::forked() ? all.gpus : 0;
}

std::string gpu_description(int ordinal) {
  const cudnn::Context& gpu = cudnn::Context::of(ordinal);
  const cudnn::Libraries& all = cudnn::libraries();
  return message("cuDNN ", cudnn::cudnn_version_text(all.cudnn_version), ", CUDA driver ",
                 cudnn::cuda_version_text(all.driver_version), ", ", gpu.gpu_name());
}

}  // namespace openrnn
