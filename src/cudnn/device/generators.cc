#include "cudnn/device/generators.h"

#include <algorithm>
#include <list>

#include "cudnn/gpu/process_wide.h"

namespace openrnn::cudnn {
namespace {

// Per GPU; each takes some MiB of its memory.
constexpr std::size_t kMostGenerators = 16;

struct Generator {
  int ordinal = 0;
  std::uint64_t seed = 0;
  std::shared_ptr<void> states;
};

struct Generators {
  std::mutex mutex;
  std::list<Generator> all;  // most recently used first
};
constinit std::atomic<Generators*> generators{nullptr};

// Another seed for every call that may make one.
std::uint64_t seed_of(const OwnDropout& dropout) {
  return dropout.seed * 0x9E3779B97F4A7C15u + dropout.call;
}

// Moves the one of the seed to the front; a new one without states if there is none.
Generator& generator_of(std::list<Generator>& all, int ordinal, std::uint64_t seed) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Generator& each) {
    return each.ordinal == ordinal && each.seed == seed;
  });
  if (found != all.end()) {
    all.splice(all.begin(), all, found);
    return all.front();
  }
  const auto here = [&](const Generator& each) { return each.ordinal == ordinal; };
  if (static_cast<std::size_t>(std::count_if(all.begin(), all.end(), here)) >= kMostGenerators) {
    all.erase(std::prev(std::find_if(all.rbegin(), all.rend(), here).base()));
  }
  all.push_front({ordinal, seed, nullptr});
  return all.front();
}

}  // namespace

std::shared_ptr<void> set_dropout(Context& context, cudnnHandle_t handle,
                                  cudnnDropoutDescriptor_t descriptor, const OwnDropout& dropout) {
  const CudnnApi& cudnn = libraries().cudnn;
  const auto rate = static_cast<float>(dropout.rate);
  std::size_t bytes = 0;
  const auto make = [&](const std::shared_ptr<void>& states) {
    check(cudnn.set_dropout(descriptor, handle, rate, states.get(), bytes, seed_of(dropout)),
          "cudnnSetDropoutDescriptor");
    return states;
  };
  if (dropout.rate == 0.0) return make(nullptr);
  check(cudnn.dropout_states_size(handle, &bytes), "cudnnDropoutGetStatesSize");
  if (dropout.alone) return make(context.allocate(bytes));
  // Locked until the work is enqueued: no call may precede the one that makes its generator.
  Generators& known = process_wide(generators);
  const std::lock_guard lock(known.mutex);
  Generator& generator = generator_of(known.all, context.ordinal(), dropout.seed);
  if (dropout.call == 0 || !generator.states) {
    return generator.states = make(context.allocate(bytes));
  }
  check(cudnn.restore_dropout(descriptor, handle, rate, generator.states.get(), bytes,
                              seed_of(dropout)),
        "cudnnRestoreDropoutDescriptor");
  return generator.states;
}

}  // namespace openrnn::cudnn
