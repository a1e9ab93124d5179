// Objects that are never destroyed.
#pragma once

#include <atomic>
#include <memory>

namespace openrnn::cudnn {

/// The object of `slot`, made at first use and never destroyed. Not a static local: after a fork
/// while another thread initializes one, the child would wait for ever.
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
