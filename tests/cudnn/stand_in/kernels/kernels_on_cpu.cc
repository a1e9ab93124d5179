#include "cudnn/stand_in/kernels/kernels_on_cpu.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <stdexcept>

#include "cudnn/stand_in/kernels/block_of_fibers.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace openrnn::stand_in {
namespace {

std::map<std::string, Bind>& registry() {
  static std::map<std::string, Bind> kernels;
  return kernels;
}

// Kernels are compiled with subnormal results of float flushed. This flushes those of double too,
// which a GPU keeps.
class Flush {
 public:
#if defined(__x86_64__)
  Flush() : saved_(_mm_getcsr()) { _mm_setcsr(0x9FC0u); }
  ~Flush() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
#endif
};

void refuse(const std::string& name, const std::string& what) {
  throw std::runtime_error("kernel '" + name + "': " + what);
}

// What every GPU from compute capability 7.5 on can launch without asking for more.
void check_sizes(const std::string& name, const Launch& launch) {
  const Dim3 g = launch.grid, b = launch.block;
  if (g.x == 0 || g.y == 0 || g.z == 0 || b.x == 0 || b.y == 0 || b.z == 0) {
    refuse(name, "a size of the launch is 0");
  }
  if (g.x > 0x7FFFFFFFu || g.y > 65535 || g.z > 65535) refuse(name, "the grid is too large");
  if (b.x > 1024 || b.y > 1024 || b.z > 64 || std::uint64_t{b.x} * b.y * b.z > 1024) {
    refuse(name, "the block has more than 1024 threads");
  }
  if (launch.shared_bytes > std::size_t{48} * 1024) {
    refuse(name, "more than 48 KiB of shared memory");
  }
}

bool reversed() {
  const char* order = std::getenv("STAND_IN_THREADS");
  return order != nullptr && std::string(order) == "reverse";
}

}  // namespace

void add_kernel(const std::string& name, Bind bind) { registry()[name] = std::move(bind); }

bool has_kernel(const std::string& name) { return registry().contains(name); }

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (const auto& [name, bind] : registry()) names.push_back(name);
  return names;
}

void translate_words(const Launch& launch, void* argument, std::size_t bytes) {
  if (launch.translate == nullptr) return;
  auto* at = static_cast<unsigned char*>(argument);
  for (std::size_t i = 0; i + sizeof(std::uint64_t) <= bytes; i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, at + i, sizeof word);
    word = launch.translate(word);
    std::memcpy(at + i, &word, sizeof word);
  }
}

void run_body(const std::string& name, const Launch& launch, const Body& body) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const Flush flush;
  BlockOfFibers block(launch.block, launch.shared_bytes, reversed());
  gridDim = launch.grid;
  blockDim = launch.block;
  const std::uint64_t blocks = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t at = reversed() ? blocks - 1 - i : i;
    blockIdx = {static_cast<unsigned>(at % launch.grid.x),
                static_cast<unsigned>(at / launch.grid.x % launch.grid.y),
                static_cast<unsigned>(at / launch.grid.x / launch.grid.y)};
    if (const std::string error = block.run(body); !error.empty()) refuse(name, error);
  }
}

std::function<void()> prepare_kernel(const std::string& name, const Launch& launch) {
  const auto found = registry().find(name);
  if (found == registry().end()) refuse(name, "is not there");
  check_sizes(name, launch);
  Launch sizes = launch;
  sizes.arguments = nullptr;
  return [name, sizes, body = found->second(launch)] { run_body(name, sizes, body); };
}

void run_kernel(const std::string& name, const Launch& launch) { prepare_kernel(name, launch)(); }

}  // namespace openrnn::stand_in
