#include "cudnn/device/readings.h"

namespace openrnn::cudnn {

/// Pinned memory and the event after its copy.
struct Readings::Slot {
  explicit Slot(std::size_t size) : bytes(size) {
    check(libraries().driver.host_alloc(&memory, size, 0), "cuMemHostAlloc");
  }
  ~Slot() {
    if (!forked()) libraries().driver.host_free(memory);
  }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  void* memory = nullptr;
  std::size_t bytes;
  Event copied;
};

struct Readings::Free {
  std::mutex mutex;
  std::vector<std::unique_ptr<Slot>> slots;
};

class Readings::Late final : public Reading {
 public:
  Late(Context& context, std::shared_ptr<Free> free, std::unique_ptr<Slot> slot)
      : context_(context), free_(std::move(free)), slot_(std::move(slot)) {}
  ~Late() override {
    // The next user of the slot copies after this copy: the GPU keeps the order.
    const std::lock_guard lock(free_->mutex);
    free_->slots.push_back(std::move(slot_));
  }
  const void* bytes() override {
    const Context::Current current(context_);
    slot_->copied.wait();
    return slot_->memory;
  }

 private:
  Context& context_;
  std::shared_ptr<Free> free_;
  std::unique_ptr<Slot> slot_;
};

Readings::Readings(Context& context) : context_(context), free_(std::make_shared<Free>()) {}
Readings::~Readings() = default;

std::unique_ptr<Readings::Slot> Readings::take(std::size_t bytes) {
  {
    const std::lock_guard lock(free_->mutex);
    for (auto slot = free_->slots.begin(); slot != free_->slots.end(); ++slot) {
      if ((*slot)->bytes < bytes) continue;
      std::unique_ptr<Slot> found = std::move(*slot);
      free_->slots.erase(slot);
      return found;
    }
  }
  return std::make_unique<Slot>(bytes);
}

std::unique_ptr<Reading> Readings::begin(const void* from, std::size_t bytes) {
  std::unique_ptr<Slot> slot = take(bytes);
  context_.copy_out_later(slot->memory, from, bytes);
  slot->copied.record(context_);
  return std::make_unique<Late>(context_, free_, std::move(slot));
}

}  // namespace openrnn::cudnn
