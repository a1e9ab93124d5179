#include "cli/bench/company.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include "base/message.h"
#include "cli/bench/passes.h"

namespace openrnn::cli {
namespace {

constexpr int kCalls = 200, kFewestCalls = 5, kRounds = 5;

#if defined(__linux__)
/// The first CPUs that this process may use, as many as threads.
cpu_set_t first_processors(int threads, int& last) {
  cpu_set_t allowed, first;
  CPU_ZERO(&first);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return first;
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&first) < threads; ++cpu) {
    if (!CPU_ISSET(static_cast<std::size_t>(cpu), &allowed)) continue;
    CPU_SET(static_cast<std::size_t>(cpu), &first);
    last = cpu;
  }
  return first;
}

[[noreturn]] void spin_on(int processor, pid_t parent) {
  // Ends with its parent, however that ends. Nothing of the library may be called here.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(static_cast<std::size_t>(processor), &own);
  if (getppid() != parent || sched_setaffinity(0, sizeof(own), &own) != 0) _exit(1);
  for (volatile unsigned count = 0;;) count = count + 1;
}
#endif

}  // namespace

#if defined(__linux__)
BusyProcess::BusyProcess(int threads) {
  const cpu_set_t mine = first_processors(threads, processor_);
  const pid_t parent = getpid();
  if (CPU_COUNT(&mine) == 0 || sched_setaffinity(0, sizeof(mine), &mine) != 0 ||
      (child_ = fork()) < 0) {
    throw IoError(message("[bench] the busy process cannot be started: ", std::strerror(errno)));
  }
  if (child_ == 0) spin_on(processor_, parent);
}
#else
BusyProcess::BusyProcess(int) {
  throw IoError("[bench] --company is for Linux only, where a process can be bound to a CPU");
}
#endif

BusyProcess::~BusyProcess() {
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

std::vector<InCompany> measure_in_company(const BenchConfig& config, int threads, double seconds) {
  Passes passes(config);
  std::vector<InCompany> results;
  for (const Passes::Pass& pass : passes.all()) {
    set_num_threads(1);
    pass.work();
    const double once = seconds_of(pass.work);
    const int calls = std::clamp(static_cast<int>(seconds / once), kFewestCalls, kCalls);
    std::vector<double> one, several;
    for (int round = 0; round < kRounds; ++round) {
      for (const bool alone : {true, false}) {
        set_num_threads(alone ? 1 : threads);
        std::vector<double>& times = alone ? one : several;
        for (int i = 0; i < calls / kRounds; ++i) times.push_back(seconds_of(pass.work));
      }
    }
    results.push_back(
        {pass.name, median(one) * 1e3, median(several) * 1e3, static_cast<int>(one.size())});
  }
  set_num_threads(threads);
  return results;
}

}  // namespace openrnn::cli
