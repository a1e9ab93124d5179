#include "cpu/isa/processor.h"

#include <atomic>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "cpu/isa/tiles.h"

namespace openrnn::cpu {

#if defined(__x86_64__)
namespace {

struct Cpuid {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  explicit Cpuid(unsigned leaf, unsigned subleaf = 0) {
    __get_cpuid_count(leaf, subleaf, &eax, &ebx, &ecx, &edx);
  }
};

// clang 14's __builtin_cpu_supports knows neither f16c nor what follows.
bool has_f16c() { return (Cpuid(1).ecx & bit_F16C) != 0; }
bool has_bf16_dot() { return (Cpuid(7, 1).eax & (1u << 5)) != 0; }

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && has_f16c();
}

// The registers that the operating system keeps for a thread: 17 is the configuration of tiles, 18
// their data.
bool keeps_tiles() {
  constexpr unsigned kTiles = (1u << 17) | (1u << 18);
  if ((Cpuid(1).ecx & bit_OSXSAVE) == 0) return false;
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kTiles) == kTiles;
}

// Palette 1: 8 tiles of 16 rows of 64 bytes, as the kernels take them.
bool has_wanted_tiles() {
  if (Cpuid(0).eax < 0x1D || Cpuid(0x1D).eax < 1) return false;
  const Cpuid palette(0x1D, 1);
  const unsigned tile_bytes = palette.eax >> 16, row_bytes = palette.ebx & 0xFFFF;
  const unsigned tiles = palette.ebx >> 16, rows = palette.ecx & 0xFFFF;
  return tile_bytes == 1024 && row_bytes == 64 && tiles == 8 && rows == 16;
}

bool has_amx() {
  // Bit 22: products of bfloat16; bit 24: tiles.
  constexpr unsigned kAmx = (1u << 22) | (1u << 24);
  return (Cpuid(7).edx & kAmx) == kAmx && has_avx512() && has_bf16_dot() && has_wanted_tiles() &&
         keeps_tiles();
}

// A cached answer: under a hypervisor cpuid takes microseconds. Not a static local: after a fork
// while another thread initializes one, the child would wait for ever.
class Answer {
 public:
  explicit constexpr Answer(bool (*ask)()) : ask_(ask) {}
  bool get() {
    int known = known_.load(std::memory_order_relaxed);
    if (known == kUnknown) {
      known = ask_() ? 1 : 0;
      known_.store(known, std::memory_order_relaxed);
    }
    return known == 1;
  }

 private:
  static constexpr int kUnknown = -1;
  bool (*ask_)();
  std::atomic<int> known_{kUnknown};
};

constinit Answer amx(has_amx);
constinit Answer byte_products([] { return (Cpuid(7).ecx & (1u << 11)) != 0; });
// Twice the rate of float32 on AMD's processors, half of it on Intel's, which have AMX.
constinit Answer dot_pays([] {
  return has_bf16_dot() && has_byte_products() && __builtin_cpu_is("amd");
});

}  // namespace

bool processor_runs(std::string_view name) {
  if (name == "avx2") {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  }
  if (name == "avx512" || name == "amx_emulated") return has_avx512();
  if (name == "amx") return !tiles_refused() && has_tiles();
  return name == "scalar";
}

bool keeps_amx_tiles() { return amx.get(); }
bool has_byte_products() { return byte_products.get(); }
bool bf16_dot_pays() { return dot_pays.get(); }

#else
bool keeps_amx_tiles() { return false; }
bool processor_runs(std::string_view name) { return name == "scalar" || name == "neon"; }
bool has_byte_products() { return false; }
bool bf16_dot_pays() { return false; }
#endif

}  // namespace openrnn::cpu
