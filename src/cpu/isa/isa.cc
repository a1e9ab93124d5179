#include "cpu/isa/isa.h"

#include <atomic>
#include <cstdlib>

#include "base/message.h"
#include "cpu/isa/processor.h"
#include "cpu/isa/tiles.h"
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
  const bool amx = name == "amx" && avx512_amx_kernels();
  throw EngineError(message("[", call, "] instruction set is '", name,
                            "', expected one that this processor runs: ", known,
                            amx ? "; tiles of AMX: " + tile_permission() : std::string()));
}

// The one place that reads the variable; empty when it is not set.
std::string_view wanted_isa() {
  const char* text = std::getenv("OPENRNN_ISA");
  return text ? text : "";
}

const KernelTable& first_choice() {
  if (const std::string_view wanted = wanted_isa(); !wanted.empty()) {
    return find_table("OPENRNN_ISA", wanted);
  }
  return *usable_tables().back();
}

constinit std::atomic<const KernelTable*> chosen{nullptr};
// Whether the last choice was a force_isa.
constinit std::atomic<bool> forced{false};

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
  const KernelTable* const table = name.empty() ? nullptr : &find_table("force_isa", name);
  forced.store(table != nullptr, std::memory_order_relaxed);
  chosen.store(table, std::memory_order_release);
}

bool may_use_tiles_of(const KernelTable& table) {
  if (!table.tiles) return false;
  // The emulation needs no permission.
  if (&table != avx512_amx_kernels() || may_use_tiles()) return true;
  const bool by_variable = wanted_isa() == "amx";
  if (by_variable || forced.load(std::memory_order_relaxed)) {
    throw EngineError(message("[", by_variable ? "OPENRNN_ISA" : "force_isa",
                              "] instruction set is 'amx', expected its tiles to be granted; they "
                              "are ",
                              tile_permission()));
  }
  const KernelTable* before = &table;
  chosen.compare_exchange_strong(before, avx512_kernels());
  return false;
}

}  // namespace openrnn::cpu
