// A stream stepped from a thread that must not block, such as an audio callback: it takes no lock,
// allocates nothing and makes no system call. Blocks of samples pass through lock-free rings. Links
// openrnn::core only.
#include <openrnn/runtime.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <new>
#include <thread>

// Counts allocations of the callback; a program would do this in its tests.
static thread_local bool counting = false;
static std::atomic<long> allocations{0};

static void* counted(void* memory) {
  if (counting) ++allocations;
  if (!memory) throw std::bad_alloc();
  return memory;
}
// Not inline: a compiler that sees malloc behind new takes the pair for a mistake.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  return counted(std::malloc(bytes ? bytes : 1));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto grain = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(grain, (bytes + grain - 1) / grain * grain));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment,
                                     const std::nothrow_t&) noexcept try {
  return operator new(bytes, alignment);
} catch (const std::bad_alloc&) {
  return nullptr;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace {

constexpr std::size_t kBlock = 64;  // samples of one callback
constexpr std::size_t kBlocks = 200;
constexpr std::size_t kRing = 8;  // blocks in flight
using Block = std::array<float, kBlock>;

/// A queue from one thread to one other. Each side writes one counter and only reads the other's.
template <class T, std::size_t kSize>
class Ring {
 public:
  bool push(const T& item) noexcept {
    const std::size_t at = pushed_.load(std::memory_order_relaxed);
    if (at - popped_.load(std::memory_order_acquire) == kSize) return false;
    items_[at % kSize] = item;
    pushed_.store(at + 1, std::memory_order_release);
    return true;
  }
  bool pop(T& item) noexcept {
    const std::size_t at = popped_.load(std::memory_order_relaxed);
    if (at == pushed_.load(std::memory_order_acquire)) return false;
    item = items_[at % kSize];
    popped_.store(at + 1, std::memory_order_release);
    return true;
  }

 private:
  std::array<T, kSize> items_{};
  alignas(64) std::atomic<std::size_t> pushed_{0};
  alignas(64) std::atomic<std::size_t> popped_{0};
};

/// The audio callback: one block in, one block out.
class Callback {
 public:
  explicit Callback(std::shared_ptr<const openrnn::PackedModel> model)
      : session_(model),
        h_(static_cast<std::size_t>(model->spec().num_pseudo_layers() *
                                    model->spec().hidden_size())),
        c_(static_cast<std::size_t>(model->spec().num_pseudo_layers() * model->spec().num_units)) {
    session_.prepare(/*max_batch=*/1, /*max_time=*/kBlock);
    // Warm-up: every page is touched before the first real block.
    Block silence{};
    (*this)(silence, silence);
    h_.assign(h_.size(), 0.0F);
    c_.assign(c_.size(), 0.0F);
  }
  void operator()(const Block& in, Block& out) noexcept {
    openrnn::ForwardArgs args;
    args.max_time = kBlock;
    args.batch = 1;
    args.x = in.data();
    args.y = out.data();
    args.h0 = args.hn = h_.data();
    args.c0 = args.cn = c_.data();
    session_.run(args);  // throws only for wrong arguments
  }

 private:
  openrnn::InferenceSession session_;
  std::vector<float> h_, c_;
};

openrnn::RnnSpec effect() {
  openrnn::RnnSpec spec;
  spec.mode = openrnn::RnnMode::kLstm;
  spec.num_units = 32;
  spec.num_proj = 1;  // one sample in, one sample out
  spec.input_size = 1;
  return spec;
}

float sample(std::size_t n) { return std::sin(0.05F * static_cast<float>(n)); }

/// All blocks in one call, to compare with.
std::vector<float> offline(const std::shared_ptr<const openrnn::PackedModel>& model) {
  std::vector<float> x(kBlocks * kBlock), y(x.size());
  for (std::size_t n = 0; n < x.size(); ++n) x[n] = sample(n);
  openrnn::InferenceSession session(model);
  openrnn::ForwardArgs args;
  args.max_time = static_cast<std::int64_t>(x.size());
  args.batch = 1;
  args.x = x.data();
  args.y = y.data();
  session.run(args);
  return y;
}

}  // namespace

int main() {
  const openrnn::RnnSpec spec = effect();
  // Weights would come from a file; here they are random.
  const openrnn::Array params = openrnn::initialize_params(openrnn::ParamsLayout(spec), /*seed=*/1);
  const auto model = std::make_shared<openrnn::PackedModel>(
      spec, params.view(), openrnn::ModelOptions{.max_threads = 1});  // starts no thread, ever
  Callback callback(model);

  Ring<Block, kRing> to_card, from_card;
  long lost = 0;
  std::thread card([&] {
    // A real one would have a real-time priority (SCHED_FIFO) and locked memory (mlockall).
    Block in, out;
    for (std::size_t done = 0; done < kBlocks;) {
      counting = true;
      const bool ready = to_card.pop(in);
      if (ready) {
        callback(in, out);
        // No waiting: a full ring drops the block.
        if (!from_card.push(out)) ++lost;
        ++done;
      }
      counting = false;
      if (!ready) std::this_thread::yield();  // a card waits for its clock here
    }
  });

  std::vector<float> heard;
  for (std::size_t given = 0, taken = 0; taken < kBlocks;) {
    Block block;
    if (given < kBlocks && given - taken < kRing) {
      for (std::size_t i = 0; i < kBlock; ++i) block[i] = sample(given * kBlock + i);
      if (to_card.push(block)) ++given;
    }
    if (from_card.pop(block)) {
      heard.insert(heard.end(), block.begin(), block.end());
      ++taken;
    } else {
      std::this_thread::yield();
    }
  }
  card.join();

  const bool equal = heard == offline(model);
  std::cout << "blocks: " << kBlocks << "\nallocations in the callback: " << allocations
            << "\nblocks lost: " << lost
            << "\nthe same bits as in one call: " << (equal ? "yes" : "no") << '\n';
  return equal && allocations == 0 && lost == 0 ? 0 : 1;
}
