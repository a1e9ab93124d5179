// Runs the engine's calls by graphs where possible.
#pragma once

#include <list>
#include <map>

#include "cudnn/graphs/recorded_call.h"

namespace openrnn::cudnn {

/// Calls of one key: the first runs without a graph and measures the memory; later ones are
/// recorded.
struct CallRecord {
  CallKey key;
  std::optional<BlockSizes> blocks;
  std::map<GivenArrays, BlockSizes> gradient_blocks;
  std::string refused, gradient_refused;  // why they cannot be recorded
  std::vector<std::shared_ptr<RecordedCall>> calls;
};

/// What a forward call of the cache saves.
class GraphSaved final : public SavedForward {
 public:
  GraphSaved(std::shared_ptr<CallRecord> record, std::shared_ptr<RecordedCall> call,
             std::unique_ptr<const CudnnSaved> own)
      : record_(std::move(record)), call_(std::move(call)), own_(std::move(own)) {}
  ~GraphSaved() override {
    if (call_) call_->release();
  }
  CallRecord& record() const noexcept { return *record_; }
  /// Null: it ran without a graph.
  RecordedCall* call() const noexcept { return call_.get(); }
  const CudnnSaved& saved() const noexcept { return call_ ? call_->saved() : *own_; }

 private:
  std::shared_ptr<CallRecord> record_;
  std::shared_ptr<RecordedCall> call_;
  std::unique_ptr<const CudnnSaved> own_;
};

/// A bounded number of graphs of one GPU; the least recently used is evicted first. Its calls have
/// the results of run_network and run_gradient, bit by bit, and their errors. Lives as long as the
/// context. Thread-safe.
class GraphCache {
 public:
  static GraphCache& of(const Context& context);

  void forward(const std::shared_ptr<const CudnnPacked>& packed, const ForwardArgs& args);
  std::unique_ptr<SavedForward> forward_saving(const std::shared_ptr<const CudnnPacked>& packed,
                                               const ForwardArgs& args);
  void backward(const GraphSaved& saved, const BackwardArgs& args);
  /// Forgets all calls; graphs in use are kept until they are released. Returns whether there was a
  /// graph.
  bool clear();
  /// The same, unless another thread is using the cache.
  bool clear_if_free();

 private:
  using Record = std::shared_ptr<CallRecord>;
  using Packed = std::shared_ptr<const CudnnPacked>;
  Record find(CallKey key);
  std::shared_ptr<RecordedCall> recorded(CallRecord& record, const Packed& packed,
                                         const ForwardArgs& args);
  std::shared_ptr<RecordedCall> run_recorded(CallRecord& record, const Packed& packed,
                                             const ForwardArgs& args);
  void run_unrecorded(CallRecord& record, const Packed& packed, const ForwardArgs& args,
                      CudnnSaved* saved);
  bool run_recorded_gradient(const GraphSaved& saved, const BackwardArgs& args);
  void bound();

  // Recursive: an allocation inside may clear the cache.
  std::recursive_mutex mutex_;
  std::list<Record> records_;  // most recently used first
};

}  // namespace openrnn::cudnn
