// Gradients that travel while the backward pass goes on.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "graph/tape/listen.h"
#include "train/group/group.h"

namespace openrnn::train {

/// Sums gradients over the processes while the last own part of a step computes the others. What
/// becomes complete when is learned in one step, and rank 0's order is the plan of all: ranges of
/// elements, in messages of some size. A rank whose ranges come in another order, or that has no
/// rows, keeps to the plan all the same. Bits are those of Group::sum alone.
class Overlap final : public graph::GradientListener {
 public:
  /// The group must outlive it, and take calls of any thread.
  explicit Overlap(Group& group) : group_(group) {}
  ~Overlap() override;
  Overlap(const Overlap&) = delete;
  Overlap& operator=(const Overlap&) = delete;

  /// Begins a step.
  void begin(const std::vector<Variable>& variables);
  /// Its last own part, which has rows; those before it are in `sum`.
  void last_part(const GradientSum& sum, Optimizer& optimizer, const GradientTape& tape,
                 const Tensor& loss, double share);
  /// The whole step of all ranks. `any`: an own part has had rows.
  GradientSum::Step finish(const GradientSum& sum, bool any);

  void ready(std::uint64_t leaf, DeviceArray& gradient, std::int64_t begin,
             std::int64_t end) noexcept override;

 private:
  /// Elements of the gradient of a variable.
  struct Range {
    std::int64_t variable = 0, begin = 0, end = 0;
    bool holds(const Range& other) const {
      return variable == other.variable && begin <= other.begin && other.end <= end;
    }
    bool meets(const Range& other) const {
      return variable == other.variable && begin < other.end && other.begin < end;
    }
  };
  /// Ranges of one dtype that travel together.
  struct Message {
    std::size_t first = 0, last = 0;  // of plan_
    DType dtype = DType::kFloat32;
  };

  void work() noexcept;
  void stop() noexcept;
  bool complete(const Message& message) const;
  void send(const Message& message, Adding adding);
  void complete_leaf(bool any);
  std::vector<Range> order_heard(const std::vector<DeviceArray>& gradients) const;
  void make_plan(const std::vector<DeviceArray>& gradients);
  DType dtype_of(std::int64_t variable) const;

  Group& group_;
  std::vector<Variable> variables_;
  std::unordered_map<std::uint64_t, std::int64_t> index_;  // of variables, by leaf
  std::vector<Range> plan_;                                // empty: not made yet
  std::vector<Message> messages_;

  // Of the step.
  const TreeSum* earlier_ = nullptr;
  PartValues leaf_;            // of the last part, with the loss; summed in place
  std::vector<bool> present_;  // of leaf_: this rank has a gradient
  bool ran_ = false;           // the last part had rows
  std::size_t next_ = 0;       // of messages_
  std::thread thread_;
  std::exception_ptr error_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::vector<Range> heard_;    // without a plan
  std::vector<bool> complete_;  // of plan_
  std::vector<void*> places_;   // of gradients that were complete early, by variable
  // Of these: a pass that fails frees what it has while the thread may read it.
  std::vector<std::shared_ptr<const void>> kept_;
};

}  // namespace openrnn::train
