#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "openrnn/ops_rnn.h"

namespace openrnn::ops {
namespace {

bool serves(const PackedParams& packed, const RnnSpec& spec, PackFor purpose) {
  return packed.spec() == spec && (packed.purpose() == purpose || purpose == PackFor::kInference);
}

// Read when an object is made, as TensorFlow does when it constructs a kernel.
bool reset_each_call_wanted() {
  const char* text = std::getenv("TF_CUDNN_RESET_RND_GEN_STATE");
  if (!text) return false;
  const std::string value(text);
  return value == "1" || value == "true" || value == "True" || value == "TRUE";
}

// Owner of the parameters' memory for the engine to read in place, if the elements cannot change: a
// variable's cannot, since a write copies them first while they are shared. Those of another owner
// cannot during a call, so they serve a call that neither saves nor is kept for the next.
std::shared_ptr<const void> lender_of(const Tensor& params, PackFor purpose) {
  const bool one_call = params.leaf_id() == 0 && purpose == PackFor::kInference;
  return params.value().borrowed() && !one_call ? nullptr : params.value().share();
}

}  // namespace

// What is cached does not share the variable's memory, or its next update would have to copy it.
std::shared_ptr<const PackedParams> PackedCache::get(const Engine& engine, const ValidSpec& spec,
                                                     const Tensor& params, PackFor purpose) {
  const ConstArrayView view{params.value().data(), params.dtype(), params.shape()};
  const std::lock_guard lock(mutex_);
  if (params.leaf_id() != 0 && packed_ && engine_ == &engine && leaf_id_ == params.leaf_id() &&
      version_ == params.version() && serves(*packed_, spec, purpose)) {
    const auto again = packed_->over(params.value().share());
    return again ? again : packed_;
  }
  // Free the old one first: it may be as large as the new one.
  packed_.reset();
  std::shared_ptr<const PackedParams> packed =
      engine.pack(spec, view, {purpose, 0, lender_of(params, purpose)});
  ++packings_;
  if (params.leaf_id() == 0) return packed;
  packed_ = packed->over(nullptr);
  if (!packed_) packed_ = packed;
  engine_ = &engine;
  leaf_id_ = params.leaf_id();
  version_ = params.version();
  return packed;
}

std::uint64_t PackedCache::packings() const {
  const std::lock_guard lock(mutex_);
  return packings_;
}

DropoutState::DropoutState(std::pair<std::int64_t, std::int64_t> seeds)
    : seed_((static_cast<std::uint64_t>(seeds.first) << 32) |
            static_cast<std::uint64_t>(seeds.second)),
      reset_each_call_(reset_each_call_wanted()) {}

DropoutState DropoutState::of(std::uint64_t seed, std::uint64_t calls) {
  DropoutState state(
      {static_cast<std::int64_t>(seed >> 32U), static_cast<std::int64_t>(seed & 0xFFFFFFFFU)});
  state.calls_ = calls;
  return state;
}

std::uint64_t DropoutState::next_call() {
  // Two models may run one layer at the same time.
  return std::atomic_ref(calls_).fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t DropoutState::next_call_of(const PartScope& scope) {
  if (scope.step() != step_of_parts_) {
    step_of_parts_ = scope.step();
    calls_before_ = calls_;
    calls_of_part_ = 0;
  } else if (scope.part().first_row != first_row_) {
    calls_of_part_ = 0;
  }
  first_row_ = scope.part().first_row;
  const std::uint64_t call = calls_before_ + calls_of_part_++;
  // Parts may draw different numbers of masks; none of them is drawn again by the next step.
  calls_ = std::max(calls_, call + 1);
  return call;
}

DropoutKey DropoutState::next() {
  const PartScope* const scope = PartScope::current();
  const std::uint64_t call = scope ? next_call_of(*scope) : next_call();
  DropoutKey key{.seed = seed_, .call = reset_each_call_ ? 0 : call};
  if (scope) {
    key.first_row = scope->part().first_row;
    key.whole_batch = scope->part().whole_batch;
  }
  return key;
}

}  // namespace openrnn::ops
