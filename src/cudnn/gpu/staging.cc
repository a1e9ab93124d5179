#include "cudnn/gpu/staging.h"

#include <algorithm>
#include <cstring>

#include "cudnn/gpu/event.h"

namespace openrnn::cudnn {
namespace {

// Copying a chunk takes longer than starting a copy, and eight chunks hide that time.
constexpr std::size_t kSlotBytes = std::size_t{1} << 20;
constexpr std::size_t kSlots = 8;

}  // namespace

class Staging::Slot {
 public:
  Slot() { check(libraries().driver.host_alloc(&memory_, kSlotBytes, 0), "cuMemHostAlloc"); }
  ~Slot() {
    if (!forked()) libraries().driver.host_free(memory_);
  }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  void* memory() const noexcept { return memory_; }
  void mark(CUstream stream) { done_.record(stream); }
  bool is_done() const { return done_.is_done(); }
  void wait() const { done_.wait(); }

 private:
  void* memory_ = nullptr;
  Event done_;
};

Staging::Staging(Context& context) : context_(context) {}
Staging::~Staging() = default;

std::unique_ptr<Staging::Slot> Staging::take() {
  std::unique_ptr<Slot> slot;
  bool is_done = false;
  {
    const std::lock_guard lock(mutex_);
    if (!slots_.empty()) is_done = slots_.front()->is_done();
    if (is_done || slots_.size() >= kSlots) {
      slot = std::move(slots_.front());
      slots_.pop_front();
    }
  }
  if (!slot) return std::make_unique<Slot>();
  if (!is_done) slot->wait();
  return slot;
}

void Staging::put(std::unique_ptr<Slot> slot) {
  const std::lock_guard lock(mutex_);
  slots_.push_back(std::move(slot));
}

void Staging::upload(CUstream stream, void* to, const void* host, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kSlotBytes) {
    const std::size_t count = std::min(kSlotBytes, bytes - at);
    std::unique_ptr<Slot> slot = take();
    std::memcpy(slot->memory(), static_cast<const std::byte*>(host) + at, count);
    context_.copy_in(stream, static_cast<std::byte*>(to) + at, slot->memory(), count);
    slot->mark(stream);
    put(std::move(slot));
  }
}

void Staging::download(void* host, const void* from, std::size_t bytes) {
  // Large arrays are copied faster by the driver itself than in chunks that wait for each other.
  if (bytes > kSlotBytes) return context_.copy_out(host, from, bytes);
  std::unique_ptr<Slot> slot = take();
  context_.copy_out(slot->memory(), from, bytes);
  std::memcpy(host, slot->memory(), bytes);
  put(std::move(slot));
}

}  // namespace openrnn::cudnn
