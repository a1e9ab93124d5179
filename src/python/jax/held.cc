#include "python/jax/held.h"

#include <map>
#include <mutex>
#include <random>

#include "base/hash/content_hash.h"

namespace openrnn::python::jax {
namespace {

struct Held {
  std::string text;
  std::uintptr_t address = 0;
  std::uint64_t hash = 0;
  std::shared_ptr<const PackedParams> packed = nullptr;
};

struct Registry {
  std::mutex mutex;
  std::map<Token, Held> all;
  // Tokens of another process, in an array that was stored, are not found here.
  std::random_device words;
};

// Never destroyed: threads of XLA may still run when the process ends.
Registry& registry() {
  static auto* const found = new Registry;
  return *found;
}

std::uint64_t hash_of(const Network& network, const void* params) {
  const auto bytes = static_cast<std::size_t>(network.params) * dtype_size(network.spec->dtype);
  return content_hash(params, bytes, 0);
}

}  // namespace

Token hold(std::string_view text, const void* params, std::uintptr_t address) {
  const auto network = network_of("openrnn.jax", text);
  const ConstArrayView view{params, network->spec->dtype, {network->params}};
  Held held{.text = std::string(text),
            .address = address,
            .hash = hash_of(*network, params),
            .packed = network->engine->pack(network->spec, view, PackFor::kInference)};
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  Token token{};
  while (token == Token{} || known.all.count(token) != 0) token = {known.words(), known.words()};
  known.all.emplace(token, std::move(held));
  return token;
}

void drop(const Token& token) {
  Held freed;  // outside of the lock
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  const auto found = known.all.find(token);
  if (found == known.all.end()) return;
  freed = std::move(found->second);
  known.all.erase(found);
}

std::int64_t count_held() {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  return static_cast<std::int64_t>(known.all.size());
}

std::shared_ptr<const PackedParams> find_held(const Token& token, std::string_view text,
                                              const Network& network, const void* params) {
  if (token == Token{}) return nullptr;
  std::uint64_t hash = 0;
  std::shared_ptr<const PackedParams> packed;
  {
    Registry& known = registry();
    const std::lock_guard lock(known.mutex);
    const auto found = known.all.find(token);
    if (found == known.all.end() || found->second.text != text) return nullptr;
    // The held memory lives, as the entry is there, and so does the operand: one address, one
    // array.
    const auto at = reinterpret_cast<std::uintptr_t>(params);  // NOLINT
    if (found->second.address == at) return found->second.packed;
    hash = found->second.hash;
    packed = found->second.packed;
  }
  return hash_of(network, params) == hash ? packed : nullptr;
}

}  // namespace openrnn::python::jax
