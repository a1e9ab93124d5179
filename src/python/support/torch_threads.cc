#include "python/support/torch_threads.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>

namespace openrnn::python {
namespace {

// The entry points of an `omp parallel` that a compiler has translated: libgomp has them, and
// Intel's and LLVM's libraries for what GCC compiled.
using Parallel = void (*)(void (*region)(void*), void* data, unsigned threads, unsigned flags);
using ThreadNumber = int (*)();

constinit std::atomic<Parallel> parallel{nullptr};
constinit std::atomic<ThreadNumber> thread_number{nullptr};

struct Region {
  void (*part)(void* context, int member);
  void* context;
};

void run_parallel(int count, void (*part)(void* context, int member), void* context) {
  Region region{part, context};
  const auto run = [](void* data) {
    const Region& mine = *static_cast<const Region*>(data);
    mine.part(mine.context, thread_number.load(std::memory_order_relaxed)());
  };
  parallel.load(std::memory_order_relaxed)(run, &region, static_cast<unsigned>(count), 0);
}

}  // namespace

bool find_torch_threads(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);  // kept for ever
  if (!library) return false;
  const auto number = reinterpret_cast<ThreadNumber>(dlsym(library, "omp_get_thread_num"));
  const auto found = reinterpret_cast<Parallel>(dlsym(library, "GOMP_parallel"));
  if (!number || !found) return false;
  thread_number.store(number);
  parallel.store(found);
  static const int at_fork = pthread_atfork(nullptr, nullptr, [] { parallel.store(nullptr); });
  return at_fork == 0;
}

HostThreads torch_threads() noexcept {
  return parallel.load(std::memory_order_acquire) ? run_parallel : nullptr;
}

}  // namespace openrnn::python
