#include "cpu/isa/tiles.h"

#include <atomic>
#include <cerrno>
#include <system_error>

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "base/message.h"
#include "cpu/isa/processor.h"

namespace openrnn::cpu {
namespace {

// Linux gives a process the large state of tiles on demand only. From then on every alternate
// signal stack has to hold it, so it is asked for as late as can be.
int ask_linux() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0 ? 0 : errno;
#else
  return ENOSYS;
#endif
}

constexpr int kNotAsked = -1, kGranted = 0;
constinit TileSource source{keeps_amx_tiles, ask_linux};
// kNotAsked, kGranted, or an errno.
constinit std::atomic<int> answer{kNotAsked};

}  // namespace

bool has_tiles() { return source.present(); }

bool may_use_tiles() {
  if (!has_tiles()) return false;
  int known = answer.load(std::memory_order_relaxed);
  if (known == kNotAsked) {
    const int asked = source.ask();
    // If two threads ask at once, the first answer counts for both.
    if (answer.compare_exchange_strong(known, asked)) known = asked;
  }
  return known == kGranted;
}

bool tiles_refused() { return answer.load(std::memory_order_relaxed) > kGranted; }

std::string tile_permission() {
  if (!has_tiles()) return "this processor, or its operating system, has no tiles";
  const int known = answer.load(std::memory_order_relaxed);
  if (known == kNotAsked) return "not asked yet";
  if (known == kGranted) return "granted";
  if (known == ENOSPC) {
    return "refused: a thread has an alternate signal stack (sigaltstack) too small for their "
           "state";
  }
  return message("refused: ", std::generic_category().message(known));
}

TileSource assume_tiles(const TileSource& other) noexcept {
  const TileSource before = source;
  source = other;
  answer.store(kNotAsked);
  return before;
}

}  // namespace openrnn::cpu
