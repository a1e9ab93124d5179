#include "cudnn/stand_in/kernels/block_of_fibers.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <exception>
#include <new>

openrnn::stand_in::Dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace openrnn::stand_in {
namespace {

constexpr std::size_t kStackBytes = std::size_t{128} * 1024;
constexpr std::size_t kGuardWords = 64;
constexpr std::uint32_t kNan = 0x7FF7A5A5u, kGuard = 0xFEEDC0DEu;
BlockOfFibers* active = nullptr;

}  // namespace

// A stack of its own, entered once; after that each side leaves by a jump to the other, as a switch
// of contexts asks the system every time. It outlives the block and waits for the next one.
struct BlockOfFibers::Fiber {
  ucontext_t context{};
  jmp_buf here, scheduler;
  void* stack = nullptr;
  Dim3 index;
  bool entered = false;
  bool busy = false;  // a thread stands still on it

  Fiber() {
    stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED) throw std::bad_alloc();
    // The lowest page: a stack that grows too far stops there.
    mprotect(stack, 4096, PROT_NONE);
    getcontext(&context);
    context.uc_stack = {.ss_sp = stack, .ss_flags = 0, .ss_size = kStackBytes};
    const auto address = reinterpret_cast<std::uintptr_t>(this);
    // A pointer goes through in two halves, as the arguments are ints.
    makecontext(&context, reinterpret_cast<void (*)()>(&enter), 2,
                static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
  }
  // Both come back when the other side leaves.
  void leave() {
    if (_setjmp(here) == 0) _longjmp(scheduler, 1);
  }
  void run() {
    if (_setjmp(scheduler) != 0) return;
    if (entered) _longjmp(here, 1);
    entered = true;
    setcontext(&context);
  }
};

// One for a block without barriers, else one a thread. Never destroyed, as nothing ends them.
std::vector<BlockOfFibers::Fiber*>& BlockOfFibers::fibers() {
  static auto* all = new std::vector<Fiber*>;
  return *all;
}

BlockOfFibers::BlockOfFibers(Dim3 size, std::size_t shared_bytes, bool reversed)
    : size_(size),
      threads_(size.x * size.y * size.z),
      reversed_(reversed),
      shared_((shared_bytes + 3) / 4 + kGuardWords),
      shared_words_((shared_bytes + 3) / 4) {
  active = this;
}

BlockOfFibers::~BlockOfFibers() { active = nullptr; }

void BlockOfFibers::enter(unsigned high, unsigned low) {
  // NOLINTNEXTLINE(*no-int-to-ptr): makecontext's arguments are ints
  auto* fiber = reinterpret_cast<Fiber*>((static_cast<std::uintptr_t>(high) << 32) | low);
  while (true) {
    active->take_threads(*fiber);
    fiber->leave();
  }
}

// A thread that reaches no barrier leaves its fiber to the next thread.
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
  threadIdx = fiber.index;
  fiber.run();
}

void BlockOfFibers::wait() { running_->leave(); }

std::string BlockOfFibers::run(const Body& body) {
  shared_.assign(shared_words_, kNan);
  shared_.resize(shared_words_ + kGuardWords, kGuard);
  body_ = &body;
  next_thread_ = finished_ = 0;
  error_.clear();
  std::size_t used = 0;
  // Every thread up to its end or its first barrier.
  while (next_thread_ < threads_) {
    if (used == fibers().size()) fibers().push_back(new Fiber);
    resume(*fibers()[used++]);
  }
  // From barrier to barrier: all threads are there, or none.
  while (finished_ < threads_) {
    if (finished_ > 0 && error_.empty()) error_ = "some threads leave out a barrier";
    for (std::size_t i = 0; i < used; ++i) {
      if (fibers()[i]->busy) resume(*fibers()[i]);
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
