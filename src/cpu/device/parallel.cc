#include "cpu/device/parallel.h"

#include <algorithm>

#include "base/message.h"
#include "cpu/threading/thread_lease.h"
#include "cpu/tuning/tuning.h"

namespace openrnn::cpu {

void parallel_ranges(std::int64_t size, std::int64_t grain, std::int64_t cost,
                     const std::function<void(std::int64_t begin, std::int64_t end)>& body) {
  if (size <= 0) return;
  const double work =
      static_cast<double>(size) * static_cast<double>(std::max<std::int64_t>(cost, 1));
  ThreadLease lease(threads_for(work, kAloneElements, num_threads()));
  lease.run([&](int thread) {
    const Share part(size, grain, thread, lease.threads());
    if (part.first < part.last) body(part.first, part.last);
  });
}

void refuse_dtype(const char* call, DType dtype) {
  throw TypeError(
      message("[", call, "] dtype is ", dtype_name(dtype), ", expected a floating dtype"));
}

}  // namespace openrnn::cpu
