#include "cpu/memory/block.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

#include "base/out_of_memory.h"

namespace openrnn::cpu {
namespace {

constexpr int kKept = 8;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

struct Piece {
  void* data = nullptr;
  std::size_t bytes = 0;
};

std::size_t alignment(std::size_t bytes) { return bytes >= kHugePage ? kHugePage : 64; }

std::size_t rounded(std::size_t bytes) {
  const std::size_t grain = bytes >= kHugePage ? kHugePage : 4096;
  return (bytes + grain - 1) / grain * grain;
}

void release(Piece piece) {
  ::operator delete (piece.data, std::align_val_t{alignment(piece.bytes)});
}

// Pieces that were given back, the newest last.
class Pool {
 public:
  Piece take(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    Piece* best = nullptr;
    for (Piece& piece : kept_) {
      // One that is much too large would be missed where it fits.
      if (piece.bytes < bytes || piece.bytes / 2 > bytes) continue;
      if (!best || piece.bytes < best->bytes) best = &piece;
    }
    return best ? std::exchange(*best, {}) : Piece{};
  }
  /// Keeps `piece` and returns the oldest, which has to go.
  Piece keep(Piece piece) {
    const std::scoped_lock lock(mutex_);
    std::rotate(kept_.begin(), kept_.begin() + 1, kept_.end());
    return std::exchange(kept_.back(), piece);
  }
  void hold() { mutex_.lock(); }
  void release() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
  std::array<Piece, kKept> kept_;
};

// Never destroyed: blocks may outlive every other object of the program.
constinit Pool pool;
static_assert(std::is_trivially_destructible_v<Pool>);

// A plug-in that is unloaded leaves nothing behind.
struct AtUnload {
  ~AtUnload() {
    for (int i = 0; i < kKept; ++i) {
      if (const Piece old = pool.keep({}); old.data) release(old);
    }
  }
};
const AtUnload at_unload;

// A forked child must find the pool whole, whatever another thread of the parent was doing.
[[maybe_unused]] const int at_fork =
    pthread_atfork([] { pool.hold(); }, [] { pool.release(); }, [] { pool.release(); });

}  // namespace

Block::Block(std::size_t bytes) {
  if (bytes == 0) return;
  bytes_ = rounded(bytes);
  const Piece used = pool.take(bytes_);
  data_ = used.data;
  if (data_) {
    bytes_ = used.bytes;
    return;
  }
  data_ = ::operator new (bytes_, std::align_val_t{alignment(bytes_)}, std::nothrow);
  if (!data_) throw OutOfMemory(bytes_);
  if (bytes_ >= kHugePage) madvise(data_, bytes_, MADV_HUGEPAGE);
}

Block::Block(Block&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Block& Block::operator=(Block&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Block::~Block() {
  if (!data_) return;
  const Piece old = pool.keep({data_, bytes_});
  if (old.data) release(old);
}

}  // namespace openrnn::cpu
