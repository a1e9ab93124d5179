// The sequences that masks and resets cut the rows of a call into.
#pragma once

#include <vector>

#include "openrnn/ops_rnn.h"

namespace openrnn::ops {

/// A call's steps as segments: sequences without masked steps or resets inside. Groups of them are
/// calls of their own, each with the rows [time(g), count(g)]; the rows of all groups follow each
/// other. Without resets there is one group, whose segments are the rows of the batch. With them
/// groups are of segments of like length, so that padding is at most about as much as the steps.
class Segments {
 public:
  Segments(const RnnInputs& in, std::int64_t max_time, std::int64_t batch);

  std::size_t groups() const { return groups_.size(); }
  std::int64_t count(std::size_t g) const { return std::ssize(groups_[g].members); }
  /// One more step than the longest segment has, so that each has padding, whose output is 0.
  std::int64_t time(std::size_t g) const { return groups_[g].longest + 1; }
  std::vector<std::int32_t> lengths(std::size_t g) const;
  /// The row of x, as [T * B, I], that each step reads; padding reads any.
  std::vector<std::int32_t> inputs(std::size_t g) const;
  /// The row of the batch whose initial state each segment begins with; `zeros` where none's.
  std::vector<std::int32_t> first_states(std::size_t g, std::int32_t zeros) const;

  /// For each step of the call: the row of the outputs of all groups that it puts out; `backward`
  /// says which output is the last one.
  std::vector<std::int32_t> outputs(bool zero_masked, bool backward) const;
  /// The last segment of each row of the batch, among those of all groups.
  std::vector<std::int32_t> last_of_rows() const;

 private:
  struct Segment {
    std::int64_t row = 0, first = 0, last = 0;  // steps [first, last) of the call
    bool put_back = false;                      // begins with a reset
    std::vector<std::int64_t> steps;            // those that are computed
    std::size_t group = 0;
    std::int64_t member = 0;  // of the group
    std::int64_t size() const { return std::ssize(steps); }
  };
  struct Group {
    std::vector<std::size_t> members;       // segments
    std::int64_t longest = 0;               // steps
    std::int64_t first = 0, first_row = 0;  // segments and rows of the groups before
  };

  void cut_row(std::int64_t b);
  void form_groups();
  void add_group(std::vector<std::size_t> members, std::int64_t longest);
  /// Step k of a segment among the rows of all groups.
  std::int32_t place(const Segment& segment, std::int64_t k) const {
    const Group& group = groups_[segment.group];
    return static_cast<std::int32_t>(group.first_row + k * count(segment.group) + segment.member);
  }
  std::int32_t step_of_call(std::int64_t t, std::int64_t b) const {
    return static_cast<std::int32_t>(in_.time_major ? t * batch_ + b : b * max_time_ + t);
  }
  bool flag(const std::vector<bool>& flags, std::int64_t t, std::int64_t b, bool otherwise) const {
    return flags.empty() ? otherwise : flags[static_cast<std::size_t>(step_of_call(t, b))];
  }

  const RnnInputs& in_;
  std::int64_t max_time_, batch_;
  std::vector<Segment> segments_;  // by row, then time
  std::vector<Group> groups_;
};

}  // namespace openrnn::ops
