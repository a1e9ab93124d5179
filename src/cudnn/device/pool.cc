#include "cudnn/device/pool.h"

#include "cudnn/gpu/context.h"

namespace openrnn::cudnn {

std::shared_ptr<void> Pool::allocate(std::size_t bytes) {
  const Context::Current current(context_);
  CUdeviceptr block = 0;
  check(libraries().driver.memory_alloc(&block, bytes ? bytes : 1), "cuMemAlloc");
  return {reinterpret_cast<void*>(block), [this](void* memory) {
            if (forked()) return;
            const Context::Current mine(context_);
            libraries().driver.memory_free(device_address(memory));
          }};
}

}  // namespace openrnn::cudnn
