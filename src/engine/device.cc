#include "openrnn/engine.h"

namespace openrnn {

double Device::total_of_squares(std::span<const ConstArrayView> arrays) const {
  double total = 0.0;
  for (const ConstArrayView& array : arrays) {
    total += sum_of_squares(array.dtype, array.size(), array.data);
  }
  return total;
}

}  // namespace openrnn
