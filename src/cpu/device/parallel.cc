#include "cpu/device/parallel.h"

#include <algorithm>

#include "base/message.h"
#include "cpu/gemm.h"

namespace openrnn::cpu {

void parallel_ranges(std::int64_t size, std::int64_t grain, std::int64_t cost,
                     const std::function<void(std::int64_t begin, std::int64_t end)>& body) {
  if (size <= 0) return;
  (void)grain;
  (void)cost;
  const FlushSubnormals flush;
  body(0, size);
}

void refuse_dtype(const char* call, DType dtype) {
  throw TypeError(
      message("[", call, "] dtype is ", dtype_name(dtype), ", expected a floating dtype"));
}

}  // namespace openrnn::cpu
