// Objects of the process that outlive every other one.
#pragma once

#include <atomic>
#include <memory>

namespace openrnn::cudnn {

/// The object of `slot`, made by the first who asks and never destroyed. Not a static local: a fork
/// while another thread makes one leaves the child waiting for it for ever.
template <class T>
T& process_wide(std::atomic<T*>& slot) {
  if (T* known = slot.load(std::memory_order_acquire)) return *known;
  auto mine = std::make_unique<T>();
  T* known = nullptr;
  if (slot.compare_exchange_strong(known, mine.get(), std::memory_order_acq_rel)) {
    known = mine.release();
  }
  return *known;
}

}  // namespace openrnn::cudnn
