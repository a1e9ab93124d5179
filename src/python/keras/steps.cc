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
void Steps::spread(const T* y, T* to, const Columns& columns, bool zero) const {
  for (std::int64_t row = 0; row < batch_; ++row) {
    const std::int64_t start = row * time_ * columns.width + columns.first;
    // From the end, so that in place nothing is overwritten that is still to be read. `k` is the
    // output that is shown: of the last step that counts up to here, or of the next one on.
    std::int64_t k = length(row) - (columns.reversed ? 0 : 1);
    for (std::int64_t step = time_ - 1; step >= 0; --step) {
      T* const here = to + start + step * columns.width;
      const bool counted = counts(row, step);
      if (counted && columns.reversed) --k;
      const bool none = k < 0 || k == length(row);
      if (none || (!counted && zero)) {
        std::fill_n(here, columns.count, T{0});
      } else if (const T* const shown = y + start + k * columns.width; shown != here) {
        std::copy_n(shown, columns.count, here);
      }
      if (counted && !columns.reversed) --k;
    }
  }
}

template <class T>
void Steps::collect(const T* dy, T* to, const Columns& columns, bool zero) const {
  for (std::int64_t row = 0; row < batch_; ++row) {
    const std::int64_t start = row * time_ * columns.width + columns.first;
    const std::int64_t onward = columns.reversed ? -1 : 1;
    std::int64_t k = columns.reversed ? length(row) : -1;
    bool begun = false;
    for (std::int64_t walked = 0; walked < time_; ++walked) {
      const std::int64_t step = columns.reversed ? time_ - 1 - walked : walked;
      const T* const here = dy + start + step * columns.width;
      if (counts(row, step)) {
        k += onward;
        begun = true;
        std::copy_n(here, columns.count, to + start + k * columns.width);
      } else if (begun && !zero) {
        T* const shown = to + start + k * columns.width;
        for (std::int64_t u = 0; u < columns.count; ++u) shown[u] += here[u];
      }
    }
  }
}

template void Steps::spread<float>(const float*, float*, const Columns&, bool) const;
template void Steps::spread<double>(const double*, double*, const Columns&, bool) const;
template void Steps::collect<float>(const float*, float*, const Columns&, bool) const;
template void Steps::collect<double>(const double*, double*, const Columns&, bool) const;

}  // namespace openrnn::python::keras
