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
  /// Records nothing on it until it is resumed; false when it is not open here.
  bool pause(const Recording& tape);
  /// Nothing where it was closed meanwhile.
  void resume(const Recording& tape) noexcept;
  bool any() const noexcept { return count_.load(std::memory_order_relaxed) > 0; }
  /// Whether one records inside another: then operations keep what gradients of gradients read.
  bool nested() const noexcept { return count_.load(std::memory_order_relaxed) > 1; }
  void record(const std::shared_ptr<const Node>& node) const;

 private:
  struct Open {
    std::shared_ptr<Recording> tape;
    bool paused = false;
  };
  Open* find(const Recording& tape) noexcept;
  void count() noexcept;

  mutable std::mutex mutex_;
  std::vector<Open> tapes_;
  std::atomic<std::size_t> count_{0};  // that record
};

/// While it exists, a tape does not record on this thread: it computes its own gradients.
class Pause {
 public:
  explicit Pause(const Recording& tape);
  ~Pause();
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

 private:
  OpenTapes& tapes_;
  const Recording* paused_;  // null: it was not open here
};

/// Makes tensors with history; tapes that are open record it.
struct Recorder {
  static std::vector<Tensor> record(std::string op, const std::vector<Tensor>& inputs,
                                    std::vector<DeviceArray> outputs, BackwardFunction backward,
                                    SelectiveBackward selective, GradientFunction gradient,
                                    RowFunction rows);
  /// Results of operations of `from` on what came from there, and on `others`, whose gradient is an
  /// UnsupportedError that says `why`.
  static std::vector<Tensor> refuse(const Node& from, const std::vector<Tensor>& others,
                                    std::vector<DeviceArray> outputs, std::string why);
  static Edge edge_of(const Tensor& tensor);
};

}  // namespace openrnn::graph
