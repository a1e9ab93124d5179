#include "openrnn/device.h"

namespace openrnn {

StridedCopy collapsed(const StridedCopy& copy) {
  StridedCopy result{.element = copy.element,
                     .shape = {},
                     .from = copy.from,
                     .from_strides = {},
                     .to = copy.to,
                     .to_strides = {}};
  const auto add = [&result](std::int64_t size, std::int64_t from, std::int64_t to) {
    result.shape.push_back(size);
    result.from_strides.push_back(from);
    result.to_strides.push_back(to);
  };
  for (std::size_t d = 0; d < copy.shape.size(); ++d) {
    const std::int64_t size = copy.shape[d], from = copy.from_strides[d], to = copy.to_strides[d];
    if (size == 1) continue;
    if (!result.shape.empty() && result.from_strides.back() == from * size &&
        result.to_strides.back() == to * size) {
      result.shape.back() *= size;
      result.from_strides.back() = from;
      result.to_strides.back() = to;
    } else {
      add(size, from, to);
    }
  }
  if (result.shape.empty()) add(1, 1, 1);
  return result;
}

}  // namespace openrnn
