#include "engine/cudnn_entry.h"

#include <array>
#include <atomic>

#include "base/message.h"
#include "cudnn/cudnn_engine.h"
#include "cudnn/device/gpu.h"

namespace openrnn {

namespace {

void check_usable(int ordinal) {
  const std::string reason = cudnn_missing(ordinal);
  if (reason.empty()) return;
  throw EngineError(message("[device] 'gpu:", ordinal, "' cannot be used: ", reason));
}

}  // namespace

std::string cudnn_missing(int ordinal) { return cudnn::Context::missing(ordinal); }

int gpu_count() {
  const cudnn::Libraries& all = cudnn::libraries();
  return all.missing.empty() && !cudnn::forked() ? all.gpus : 0;
}

// Published as a whole and never destroyed: arrays may be freed after every static object.
const Device& gpu_device(int ordinal) {
  static constinit std::array<std::atomic<const cudnn::GpuDevice*>, cudnn::kMostGpus> known{};
  cudnn::Context& context = cudnn::Context::of(ordinal);
  auto& slot = known[static_cast<std::size_t>(ordinal)];
  if (const cudnn::GpuDevice* found = slot.load(std::memory_order_acquire)) return *found;
  auto mine = std::make_unique<const cudnn::GpuDevice>(context, &cudnn::cudnn_engine(ordinal));
  const cudnn::GpuDevice* found = nullptr;
  if (slot.compare_exchange_strong(found, mine.get(), std::memory_order_acq_rel)) {
    found = mine.release();
  }
  return *found;
}

const Engine& gpu_engine(int ordinal) {
  check_usable(ordinal);
  return cudnn::cudnn_engine(ordinal);
}

std::string gpu_description(int ordinal) {
  check_usable(ordinal);
  const cudnn::Libraries& all = cudnn::libraries();
  return message("cuDNN ", cudnn::cudnn_version_text(all.cudnn_version), ", CUDA driver ",
                 cudnn::cuda_version_text(all.driver_version), ", ",
                 cudnn::Context::gpu_name(ordinal));
}

}  // namespace openrnn
