#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>

#include "cudnn/stand_in/order/order.h"

namespace openrnn::stand_in {
namespace {

constexpr std::size_t kGuard = 256;
constexpr unsigned char kGuardByte = 0xA5, kFresh = 0xFF;  // all ones are NaN in every type

struct Block {
  unsigned char* memory;  // with a guard at each end
  std::size_t bytes;
  Uses uses = {};
};

struct Memory {
  std::recursive_mutex mutex;
  std::map<std::uint64_t, Block> blocks;  // by host address of the first byte
  std::size_t used = 0;
};

// Never destroyed: arrays may die after it would be.
Memory& memory() {
  static auto* all = new Memory;
  return *all;
}

std::size_t total() { return static_cast<std::size_t>(setting("STAND_IN_MEMORY", 1L << 32)); }

Block* block_of(std::uint64_t host) {
  auto& blocks = memory().blocks;
  auto after = blocks.upper_bound(host);
  if (after == blocks.begin()) return nullptr;
  --after;
  return host < after->first + after->second.bytes ? &after->second : nullptr;
}

void check_guard(const Block& block) {
  for (std::size_t i = 0; i < kGuard; ++i) {
    if (block.memory[i] != kGuardByte || block.memory[kGuard + block.bytes + i] != kGuardByte) {
      throw std::runtime_error("a block of " + std::to_string(block.bytes) +
                               " bytes was written beyond its ends");
    }
  }
}

}  // namespace

long setting(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtol(text, nullptr, 0) : otherwise;
}

std::uint64_t allocate(std::size_t bytes) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  if (bytes == 0 || all.used + bytes > total()) return 0;
  auto* start = static_cast<unsigned char*>(
      std::aligned_alloc(kGuard, (bytes + 2 * kGuard + kGuard - 1) / kGuard * kGuard));
  if (!start) return 0;
  std::memset(start, kGuardByte, kGuard);
  std::memset(start + kGuard, kFresh, bytes);
  std::memset(start + kGuard + bytes, kGuardByte, kGuard);
  const auto host = reinterpret_cast<std::uint64_t>(start + kGuard);
  all.blocks[host] = {start, bytes};
  all.used += bytes;
  return host | kTag;
}

bool release(std::uint64_t address) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto found = (address & kTag) ? all.blocks.find(address & ~kTag) : all.blocks.end();
  if (found == all.blocks.end()) return false;
  const Block block = found->second;
  all.blocks.erase(found);
  all.used -= block.bytes;
  check_guard(block);
  std::memset(block.memory, kFresh, block.bytes + 2 * kGuard);
  std::free(block.memory);
  return true;
}

void memory_info(std::size_t* free, std::size_t* all) {
  const std::lock_guard lock(memory().mutex);
  *all = total();
  *free = *all > memory().used ? *all - memory().used : 0;
}

bool contains(std::uint64_t address, std::size_t bytes) {
  const std::lock_guard lock(memory().mutex);
  if (!(address & kTag)) return false;
  const std::uint64_t host = address & ~kTag;
  const Block* block = block_of(host);
  if (!block) return false;
  const auto start = reinterpret_cast<std::uint64_t>(block->memory) + kGuard;
  return bytes <= block->bytes && host - start <= block->bytes - bytes;
}

void* host_of(std::uint64_t address, std::size_t bytes) {
  if (!contains(address, bytes)) {
    throw std::runtime_error(
        "an operation reaches outside its block of the device's memory, or "
        "takes a pointer of the host for one of the device");
  }
  const std::lock_guard lock(memory().mutex);
  if (Block* const block = block_of(address & ~kTag)) use(block->uses);
  return reinterpret_cast<void*>(address & ~kTag);  // NOLINT(*no-int-to-ptr): the driver's form
}

std::uint64_t translate(std::uint64_t word) { return contains(word, 1) ? word & ~kTag : word; }

void check_guards() {
  const std::lock_guard lock(memory().mutex);
  for (const auto& [host, block] : memory().blocks) check_guard(block);
}

}  // namespace openrnn::stand_in
