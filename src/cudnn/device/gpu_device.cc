#include <array>
#include <atomic>

#include "cudnn/device/gpu.h"
#include "engine/cudnn_entry.h"

namespace openrnn {

// Published as a whole and never destroyed, as arrays may die after every static object; of two
// made at once, one stays.
const Device& gpu_device(int ordinal) {
  static constinit std::array<std::atomic<const cudnn::GpuDevice*>, 64> known{};
  // Refuses an ordinal beyond the list too.
  cudnn::Context& context = cudnn::Context::of(ordinal);
  auto& slot = known[static_cast<std::size_t>(ordinal)];
  if (const auto* found = slot.load(std::memory_order_acquire)) return *found;
  auto mine = std::make_unique<const cudnn::GpuDevice>(context);
  const cudnn::GpuDevice* found = nullptr;
  if (slot.compare_exchange_strong(found, mine.get(), std::memory_order_acq_rel)) {
    return *mine.release();
  }
  return *found;
}

}  // namespace openrnn
