// What the open tapes of a thread record.
#pragma once

#include <atomic>
#include <mutex>

#include "openrnn/graph.h"

namespace openrnn::graph {

using Nodes = std::vector<std::shared_ptr<const Node>>;

/// The operations of one tape, which alone keeps them. Thread-safe.
class Recording {
 public:
  void add(const std::shared_ptr<const Node>& node);
  /// By growing id, which is the order of time.
  Nodes nodes() const;
  bool holds(const Node& node) const;

 private:
  mutable std::mutex mutex_;
  Nodes nodes_;
};

/// The tapes that record on one thread. Thread-safe: another thread may close one.
class OpenTapes {
 public:
  static const std::shared_ptr<OpenTapes>& of_this_thread();
  void open(std::shared_ptr<Recording> tape);
  void close(const Recording& tape) noexcept;
  bool any() const noexcept { return count_.load(std::memory_order_relaxed) > 0; }
  void record(const std::shared_ptr<const Node>& node) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Recording>> tapes_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace openrnn::graph
