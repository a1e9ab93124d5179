// The pool of the process through forks, and until this code is unloaded.
#include <pthread.h>

#include <new>
#include <type_traits>

#include "cpu/threading/affinity.h"
#include "cpu/threading/spin.h"
#include "cpu/threading/thread_lease.h"
#include "cpu/threading/thread_pool.h"

namespace openrnn::cpu {

constinit ThreadPool pool;
static_assert(std::is_trivially_destructible_v<ThreadPool>);

void end_workers() noexcept {
  pool.ending.fetch_add(1);
  for (unsigned round = 0; pool.taken.test_and_set(std::memory_order_acquire); ++round) {
    relax(round);
  }
  pool.dismiss();
  pool.taken.clear(std::memory_order_release);
  pool.ending.fetch_sub(1);
}

namespace {

// The threads of a parent do not exist in a forked child, nor does the lease that had the pool
// there: a child starts with a new one. Registered before main, so that no fork comes in between.
[[maybe_unused]] const int at_fork = pthread_atfork(nullptr, nullptr, [] {
  new (&pool) ThreadPool;
  new (&placement) Placement;
  ThreadLease::forget();
});

// When the process ends, or a plug-in that this code is part of is unloaded: no thread may be left
// in the code. Later calls run on their own thread alone. A signal's handler may exit() inside a
// job: then the pool cannot be waited for.
struct AtUnload {
  ~AtUnload() {
    if (ThreadLease::is_held_here()) return;
    pool.ending.fetch_add(1);
    end_workers();
  }
};
const AtUnload at_unload;

}  // namespace
}  // namespace openrnn::cpu
