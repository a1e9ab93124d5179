#include "cpu/isa.h"

#include <atomic>
#include <cstdlib>

#include "base/message.h"
#include "cpu/run/processor.h"
#include "openrnn/base.h"

namespace openrnn::cpu {
namespace {

bool usable(const KernelTable* table) {
  // Tiles may be missing from this build.
  return table && processor_runs(table->name) && (!table->tiles || table->tiles());
}

// Widest last; those of another processor family are null.
std::vector<const KernelTable*> usable_tables() {
  std::vector<const KernelTable*> found;
  for (const KernelTable* table :
       {scalar_kernels(), neon_kernels(), avx2_kernels(), avx512_kernels(), avx512_amx_kernels()}) {
    if (usable(table)) found.push_back(table);
  }
  return found;
}

const KernelTable& find_table(std::string_view call, std::string_view name) {
  std::string known;
  for (const KernelTable* table : usable_tables()) {
    if (table->name == name) return *table;
    known += message(known.empty() ? "" : ", ", table->name);
  }
  // Only when asked for: slow, and to repeat what another machine computed.
  const KernelTable* emulated = avx512_amx_emulated_kernels();
  if (usable(emulated) && name == emulated->name) return *emulated;
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
  if (arithmetic == kAmx) return table.tiles()->amx;
  if (arithmetic == kBf16x3) return table.tiles()->bf16x3;
  if (const DotTable* instructions = table.dots ? table.dots() : nullptr) {
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
