#include "cpu/threading/share.h"

#include <algorithm>

#include "openrnn/base.h"

namespace openrnn::cpu {

int most_threads(int max_threads) {
  return max_threads > 0 ? std::min(num_threads(), max_threads) : num_threads();
}

int threads_for(double work, double alone, int most) noexcept {
  if (work < alone) return 1;
  return static_cast<int>(std::min(static_cast<double>(most), 2 * work / alone));
}

Share::Share(std::int64_t size, std::int64_t grain, int index, int count) {
  // The first members have more where it is uneven: the caller, member 0, need not be woken.
  const std::int64_t grains = (size + grain - 1) / grain;
  const auto bound = [&](std::int64_t i) {
    return std::min(size, (grains * i + count - 1) / count * grain);
  };
  first = bound(index);
  last = bound(index + 1);
}

}  // namespace openrnn::cpu
