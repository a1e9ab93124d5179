#include "python/keras/steps.h"

#include <algorithm>
#include <cstring>

namespace openrnn::python::keras {

Steps::Steps(const bool* mask, std::int64_t batch, std::int64_t time, bool backwards)
    : batch_(batch), time_(time), backwards_(backwards), in_place_(!backwards || time < 2) {
  if (mask == nullptr) return;
  mask_.assign(mask, mask + batch * time);
  // The usual mask of a batch without padding.
  if (std::find(mask_.begin(), mask_.end(), 0) == mask_.end()) {
    mask_.clear();
    return;
  }
  lengths_.assign(static_cast<std::size_t>(batch), 0);
  for (std::int64_t row = 0; row < batch; ++row) {
    std::int32_t& length = lengths_[static_cast<std::size_t>(row)];
    for (std::int64_t step = 0; step < time; ++step) {
      if (!counts(row, step)) continue;
      in_place_ = in_place_ && length == step;
      ++length;
    }
  }
}

void Steps::gather(const void* x, void* to, std::size_t width) const {
  const auto* const from = static_cast<const std::byte*>(x);
  auto* const place = static_cast<std::byte*>(to);
  for (std::int64_t row = 0; row < batch_; ++row) {
    std::int64_t k = 0;
    for (std::int64_t step = 0; step < time_; ++step) {
      if (!counts(row, step)) continue;
      std::memcpy(place + static_cast<std::size_t>(row * time_ + k++) * width,
                  from + static_cast<std::size_t>(row * time_ + at(step)) * width, width);
    }
  }
}

void Steps::scatter(const void* dx, void* to, std::size_t width) const {
  const auto* const from = static_cast<const std::byte*>(dx);
  auto* const place = static_cast<std::byte*>(to);
  for (std::int64_t row = 0; row < batch_; ++row) {
    std::int64_t k = 0;
    for (std::int64_t step = 0; step < time_; ++step) {
      std::byte* const here = place + static_cast<std::size_t>(row * time_ + at(step)) * width;
      if (counts(row, step)) {
        std::memcpy(here, from + static_cast<std::size_t>(row * time_ + k++) * width, width);
      } else {
        std::memset(here, 0, width);
      }
    }
  }
}

template <class T>
void Steps::spread(const T* y, T* to, std::int64_t units, bool zero) const {
  for (std::int64_t row = 0; row < batch_; ++row) {
    const T* const from = y + row * time_ * units;
    T* const place = to + row * time_ * units;
    // From the end, so that in place nothing is overwritten that is still to be read.
    std::int64_t k = length(row) - 1;
    for (std::int64_t step = time_ - 1; step >= 0; --step) {
      T* const here = place + step * units;
      const bool counted = counts(row, step);
      if (k < 0 || (!counted && zero)) {
        std::fill_n(here, units, T{0});
      } else if (const T* const shown = from + k * units; shown != here) {
        std::copy_n(shown, units, here);
      }
      if (counted) --k;
    }
  }
}

template <class T>
void Steps::collect(const T* dy, T* to, std::int64_t units, bool zero) const {
  for (std::int64_t row = 0; row < batch_; ++row) {
    const T* const from = dy + row * time_ * units;
    T* const place = to + row * time_ * units;
    std::int64_t k = -1;
    for (std::int64_t step = 0; step < time_; ++step) {
      const T* const here = from + step * units;
      if (counts(row, step)) {
        ++k;
        std::copy_n(here, units, place + k * units);
      } else if (k >= 0 && !zero) {
        for (std::int64_t u = 0; u < units; ++u) place[k * units + u] += here[u];
      }
    }
  }
}

template void Steps::spread<float>(const float*, float*, std::int64_t, bool) const;
template void Steps::spread<double>(const double*, double*, std::int64_t, bool) const;
template void Steps::collect<float>(const float*, float*, std::int64_t, bool) const;
template void Steps::collect<double>(const double*, double*, std::int64_t, bool) const;

}  // namespace openrnn::python::keras
