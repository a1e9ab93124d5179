#include "cudnn/graphs/graph_cache.h"

#include <algorithm>

#include "base/message.h"
#include "cudnn/gpu/detour.h"
#include "cudnn/gpu/log.h"
#include "cudnn/gpu/process_wide.h"

namespace openrnn::cudnn {
namespace {

// A training loop has one call, or two if a step's tape exists until the next step has its own;
// validation and a second model double that. Each keeps the memory of its call.
constexpr std::size_t kMostGraphs = 8;
constexpr std::size_t kMostOfOneKey = 2;
// Keys take little memory, and calls of other shapes in between should not evict graphs.
constexpr std::size_t kMostRecords = 64;

using Caches = std::array<GraphCache, kMostGpus>;
constinit std::atomic<Caches*> all_caches{nullptr};

void tell_unrecorded(std::string_view what, const std::string& call, std::string_view why) {
  log_debug(message("runs ", what, " of ", call, " without a graph: ", why));
}

/// Runs `work`; returns the blocks that it used.
template <class Function>
BlockSizes block_sizes_of(Context& context, const Function& work) {
  Arena arena(context.pool());
  const Detour detour(context, arena);
  work();
  return arena.sizes();
}

}  // namespace

GraphCache& GraphCache::of(const Context& context) {
  return process_wide(all_caches)[static_cast<std::size_t>(context.ordinal())];
}

GraphCache::Record GraphCache::find(CallKey key) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(records_.begin(), records_.end(),
                                  [&key](const Record& each) { return each->key == key; });
  if (found != records_.end()) {
    records_.splice(records_.begin(), records_, found);
  } else {
    records_.push_front(std::make_shared<CallRecord>());
    records_.front()->key = std::move(key);
    if (records_.size() > kMostRecords) records_.pop_back();
  }
  return records_.front();
}

bool GraphCache::clear() {
  const std::lock_guard lock(mutex_);
  const bool any = std::any_of(records_.begin(), records_.end(),
                               [](const Record& each) { return !each->calls.empty(); });
  records_.clear();
  return any;
}

// Only try the lock: its owner may be waiting for memory.
bool GraphCache::clear_if_free() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock.owns_lock() && clear();
}

void GraphCache::bound() {
  std::size_t graphs = 0;
  for (const Record& each : records_) {
    graphs += each->calls.size();
    // A graph whose saved call is in use is kept by that.
    if (graphs > kMostGraphs) each->calls.clear();
  }
}

/// An idle graph of the record, made if necessary; null: none is possible now.
std::shared_ptr<RecordedCall> GraphCache::recorded(CallRecord& record, const Packed& packed,
                                                   const ForwardArgs& args) {
  for (const auto& call : record.calls) {
    if (call->is_idle()) return call;
  }
  std::string why = record.refused;
  if (!record.blocks) why = "it is the first of its kind";
  if (record.calls.size() >= kMostOfOneKey) why = "what its graphs have saved is still in use";
  if (why.empty()) {
    try {
      auto call = std::make_shared<RecordedCall>(packed, args, record.key, *record.blocks);
      log_debug(message("recorded a call of ", call->text()));
      packed->context().set_spare(
          [](const Context& context) { return GraphCache::of(context).clear_if_free(); });
      record.calls.push_back(call);
      bound();
      return call;
    } catch (const EngineError& error) {
      why = record.refused = error.what();
    }
  }
  tell_unrecorded("a call", call_text(args, record.key.saving), why);
  return nullptr;
}

std::shared_ptr<RecordedCall> GraphCache::run_recorded(CallRecord& record, const Packed& packed,
                                                       const ForwardArgs& args) {
  const std::lock_guard lock(mutex_);
  auto call = recorded(record, packed, args);
  if (call) call->forward(packed, args);
  return call;
}

// The first call of a key measures the memory that it needs.
void GraphCache::run_unrecorded(CallRecord& record, const Packed& packed, const ForwardArgs& args,
                                CudnnSaved* saved) {
  std::unique_lock lock(mutex_);
  const bool known = record.blocks.has_value();
  lock.unlock();
  if (known) return run_network(packed, args, saved);
  BlockSizes sizes = block_sizes_of(packed->context(), [&] { run_network(packed, args, saved); });
  lock.lock();
  record.blocks = std::move(sizes);
}

void GraphCache::forward(const Packed& packed, const ForwardArgs& args) {
  const Context::Current current(packed->context());
  if (const std::string why = unrecordable(args); !why.empty()) {
    tell_unrecorded("a call", call_text(args, false), why);
    return run_network(packed, args, nullptr);
  }
  const Record record = find(key_of(*packed, args, false));
  if (!run_recorded(*record, packed, args)) run_unrecorded(*record, packed, args, nullptr);
}

std::unique_ptr<SavedForward> GraphCache::forward_saving(const Packed& packed,
                                                         const ForwardArgs& args) {
  const Context::Current current(packed->context());
  if (const std::string why = unrecordable(args); !why.empty()) {
    tell_unrecorded("a call", call_text(args, true), why);
    auto own = std::make_unique<CudnnSaved>();
    run_network(packed, args, own.get());
    return own;
  }
  const Record record = find(key_of(*packed, args, true));
  if (auto call = run_recorded(*record, packed, args)) {
    return std::make_unique<GraphSaved>(record, std::move(call), nullptr);
  }
  auto own = std::make_unique<CudnnSaved>();
  run_unrecorded(*record, packed, args, own.get());
  return std::make_unique<GraphSaved>(record, nullptr, std::move(own));
}

/// By the graph, unless other arrays are given; recorded if possible.
bool GraphCache::run_recorded_gradient(const GraphSaved& saved, const BackwardArgs& args) {
  const std::lock_guard lock(mutex_);
  CallRecord& record = saved.record();
  RecordedCall* const call = saved.call();
  if (!call || !call->may_run_gradient()) return false;
  const auto blocks = record.gradient_blocks.find(given_of(args, record.key.spec));
  const bool known = blocks != record.gradient_blocks.end();
  if (!call->has_gradient() && known && record.gradient_refused.empty()) {
    try {
      call->record_gradient(args, blocks->second);
      log_debug(message("recorded the gradient of ", call->text()));
    } catch (const EngineError& error) {
      record.gradient_refused = error.what();
    }
  }
  if (call->run_gradient(args)) return true;
  tell_unrecorded("the gradient", call->text(),
                  !known                            ? "it is the first of its kind"
                  : record.gradient_refused.empty() ? "its graph is of other arrays"
                                                    : record.gradient_refused);
  call->spend_gradient();
  return false;
}

void GraphCache::backward(const GraphSaved& saved, const BackwardArgs& args) {
  Context& context = saved.saved().packed->context();
  const Context::Current current(context);
  if (run_recorded_gradient(saved, args)) return;
  auto& blocks = saved.record().gradient_blocks;
  const GivenArrays given = given_of(args, saved.record().key.spec);
  std::unique_lock lock(mutex_);
  const bool known = blocks.contains(given);
  lock.unlock();
  if (known) return run_gradient(saved.saved(), args);
  BlockSizes sizes = block_sizes_of(context, [&] { run_gradient(saved.saved(), args); });
  lock.lock();
  blocks.try_emplace(given, std::move(sizes));
}

}  // namespace openrnn::cudnn
