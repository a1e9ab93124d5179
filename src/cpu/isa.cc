#include "cpu/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <atomic>
#include <cstdlib>

#include "base/message.h"
#include "openrnn/base.h"

namespace openrnn::cpu {
namespace {

#if defined(__x86_64__)
// clang 14's __builtin_cpu_supports does not know f16c.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
// clang 14 does not know these names either.
unsigned leaf7(unsigned subleaf, bool in_eax) {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid_count(7, subleaf, &eax, &ebx, &ecx, &edx)) return 0;
  return in_eax ? eax : ecx;
}
// Asked once: under a hypervisor each question takes microseconds.
const bool kVnni = (leaf7(0, false) & (1u << 11)) != 0;
// Twice the rate of float32 on AMD's processors, half of it on Intel's, which have AMX.
const bool kDotPays = (leaf7(1, true) & (1u << 5)) != 0 && kVnni && __builtin_cpu_is("amd");
#else
constexpr bool kVnni = false, kDotPays = false;
#endif

bool processor_runs(std::string_view name) {
#if defined(__x86_64__)
  if (name == "avx2") {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  }
  if (name == "avx512") {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && has_f16c();
  }
#endif
  return name == "scalar" || name == "neon";
}

// Widest last; those of another processor family are null.
std::vector<const KernelTable*> usable_tables() {
  std::vector<const KernelTable*> usable;
  for (const KernelTable* table :
       {scalar_kernels(), neon_kernels(), avx2_kernels(), avx512_kernels()}) {
    if (table && processor_runs(table->name)) usable.push_back(table);
  }
  return usable;
}

const KernelTable& find_table(std::string_view call, std::string_view name) {
  std::string known;
  for (const KernelTable* table : usable_tables()) {
    if (table->name == name) return *table;
    known += message(known.empty() ? "" : ", ", table->name);
  }
  throw EngineError(message("[", call, "] instruction set is '", name,
                            "', expected one that this processor runs: ", known));
}

const KernelTable& first_choice() {
  const char* forced = std::getenv("OPENRNN_ISA");
  if (forced && *forced) return find_table("OPENRNN_ISA", forced);
  return *usable_tables().back();
}

std::atomic<const KernelTable*> chosen{nullptr};

}  // namespace

const KernelTable& kernels() {
  const KernelTable* table = chosen.load(std::memory_order_acquire);
  if (table) return *table;
  const KernelTable& first = first_choice();
  // A force_isa in between wins.
  return chosen.compare_exchange_strong(table, &first) ? first : *table;
}

template <>
const Kernels<float>& kernels_for<float>(const KernelTable& table, Arithmetic arithmetic) {
  const DotTable* instructions = avx512_dot_kernels();
  if (instructions && std::string_view(table.name) == "avx512") {
    if (arithmetic == kDot && kDotPays) return instructions->dot;
    if (arithmetic == kInt8 && kVnni) return instructions->int8;
  }
  return table.f32[arithmetic];
}

template <>
const Kernels<double>& kernels_for<double>(const KernelTable& table, Arithmetic) {
  return table.f64;
}

std::string_view isa_name() { return kernels().name; }

std::vector<std::string_view> available_isas() {
  std::vector<std::string_view> names;
  for (const KernelTable* table : usable_tables()) names.emplace_back(table->name);
  return names;
}

void force_isa(std::string_view name) {
  chosen.store(&find_table("force_isa", name), std::memory_order_release);
}

}  // namespace openrnn::cpu
