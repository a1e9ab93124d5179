#include "cpu/isa.h"

#include <atomic>
#include <cstdlib>

#include "base/message.h"
#include "cpu/run/processor.h"
#include "openrnn/base.h"

namespace openrnn::cpu {
namespace {

// That of AVX-512 with two arithmetics more; null where this build has none of it.
template <const TileTable* (*tiles)()>
const KernelTable* with_tiles(const char* name) {
  if (!avx512_kernels() || !tiles()) return nullptr;
  static const KernelTable table = [name] {
    KernelTable all = *avx512_kernels();
    all.name = name;
    all.f32[kAmx] = tiles()->amx;
    all.f32[kBf16x3] = tiles()->bf16x3;
    return all;
  }();
  return &table;
}

bool is_avx512(const KernelTable& table) {
  const std::string_view name = table.name;
  return name == "avx512" || name == "amx" || name == "amx_emulated";
}

// Widest last; those of another processor family are null.
std::vector<const KernelTable*> usable_tables() {
  std::vector<const KernelTable*> usable;
  for (const KernelTable* table : {scalar_kernels(), neon_kernels(), avx2_kernels(),
                                   avx512_kernels(), with_tiles<amx_kernels>("amx")}) {
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
  // Only when asked for: slow, and to repeat what another machine computed.
  const KernelTable* emulated = with_tiles<amx_emulated_kernels>("amx_emulated");
  if (emulated && name == emulated->name && processor_runs(name)) return *emulated;
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
  if (instructions && is_avx512(table)) {
    if (arithmetic == kDot && bf16_dot_pays()) return instructions->dot;
    if (arithmetic == kInt8 && has_byte_products()) return instructions->int8;
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
