#include "cudnn/stand_in/block_of_fibers.h"

#include <sys/mman.h>

#include <exception>
#include <new>

openrnn::stand_in::Dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace openrnn::stand_in {
namespace {

constexpr std::size_t kStackBytes = 128 * 1024;
constexpr std::size_t kGuardWords = 64;
constexpr std::uint32_t kNan = 0x7FF7A5A5u, kGuard = 0xFEEDC0DEu;
BlockOfFibers* active = nullptr;

}  // namespace

struct BlockOfFibers::Fiber {
  ucontext_t context{};
  void* stack = nullptr;
  Dim3 index;
  bool busy = false;  // a thread runs on it, or stands still
  bool waits = false;

  Fiber() {
    stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED) throw std::bad_alloc();
    // The lowest page: a stack that grows too far stops there.
    mprotect(stack, 4096, PROT_NONE);
  }
  ~Fiber() { munmap(stack, kStackBytes); }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
};

BlockOfFibers::BlockOfFibers(Dim3 size, std::size_t shared_bytes, bool reversed)
    : size_(size),
      threads_(size.x * size.y * size.z),
      reversed_(reversed),
      shared_((shared_bytes + 3) / 4 + kGuardWords),
      shared_words_((shared_bytes + 3) / 4) {
  active = this;
}

BlockOfFibers::~BlockOfFibers() { active = nullptr; }

// A pointer goes through makecontext in two halves, as its arguments are ints.
void BlockOfFibers::enter(unsigned high, unsigned low) {
  auto* fiber = reinterpret_cast<Fiber*>((static_cast<std::uintptr_t>(high) << 32) | low);
  active->take_threads(*fiber);
}

// A thread that meets no barrier leaves its fiber to the next one.
void BlockOfFibers::take_threads(Fiber& fiber) {
  while (next_thread_ < threads_) {
    const unsigned i = reversed_ ? threads_ - 1 - next_thread_ : next_thread_;
    ++next_thread_;
    fiber.busy = true;
    fiber.index = {i % size_.x, i / size_.x % size_.y, i / size_.x / size_.y};
    threadIdx = fiber.index;
    try {
      (*body_)();
    } catch (const std::exception& error) {
      error_ = error.what();
    }
    fiber.busy = false;
    ++finished_;
  }
}

void BlockOfFibers::resume(Fiber& fiber) {
  running_ = &fiber;
  fiber.waits = false;
  threadIdx = fiber.index;
  swapcontext(&scheduler_, &fiber.context);
}

void BlockOfFibers::wait() {
  Fiber& fiber = *running_;
  fiber.waits = true;
  swapcontext(&fiber.context, &scheduler_);
}

std::string BlockOfFibers::run(const Body& body) {
  shared_.assign(shared_words_, kNan);
  shared_.resize(shared_words_ + kGuardWords, kGuard);
  body_ = &body;
  next_thread_ = finished_ = 0;
  error_.clear();
  std::size_t used = 0;
  // Every thread up to its end or its first barrier.
  while (next_thread_ < threads_) {
    if (used == fibers_.size()) fibers_.push_back(std::make_unique<Fiber>());
    Fiber& fiber = *fibers_[used++];
    getcontext(&fiber.context);
    fiber.context.uc_stack = {.ss_sp = fiber.stack, .ss_flags = 0, .ss_size = kStackBytes};
    fiber.context.uc_link = &scheduler_;
    const auto address = reinterpret_cast<std::uintptr_t>(&fiber);
    makecontext(&fiber.context, reinterpret_cast<void (*)()>(&enter), 2,
                static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
    resume(fiber);
  }
  // From barrier to barrier: all threads are there, or none.
  while (finished_ < threads_) {
    if (finished_ > 0 && error_.empty()) error_ = "some threads leave out a barrier";
    for (std::size_t i = 0; i < used; ++i) {
      if (fibers_[i]->busy) resume(*fibers_[i]);
    }
  }
  for (std::size_t i = shared_words_; i < shared_.size(); ++i) {
    if (shared_[i] != kGuard) error_ = "wrote beyond its shared memory";
  }
  return error_;
}

void sync_threads() { active->wait(); }
void* shared_memory() { return active->shared(); }

}  // namespace openrnn::stand_in
