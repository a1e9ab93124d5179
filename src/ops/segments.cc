#include "ops/segments.h"

#include <algorithm>

#include "openrnn/ops.h"
#include "ops/support/support.h"

namespace openrnn::ops {
namespace {

// A call's steps as segments: sequences without masked steps or resets inside.
class Segments {
 public:
  Segments(const RnnInputs& in, std::int64_t max_time, std::int64_t batch)
      : in_(in), max_time_(max_time), batch_(batch) {
    for (std::int64_t b = 0; b < batch; ++b) cut_row(b);
    for (const Segment& segment : segments_) {
      longest_ = std::max(longest_, static_cast<std::int64_t>(segment.steps.size()));
    }
  }

  std::int64_t count() const { return static_cast<std::int64_t>(segments_.size()); }
  /// Steps of the gathered call: one more than the longest segment has, so that each has padding,
  /// whose output is 0.
  std::int64_t time() const { return longest_ + 1; }
  std::vector<std::int32_t> lengths() const {
    std::vector<std::int32_t> all;
    for (const Segment& s : segments_) all.push_back(static_cast<std::int32_t>(s.steps.size()));
    return all;
  }
  /// For [time(), count()]: the row of x, as [T * B, I], that each step reads; padding reads any.
  std::vector<std::int32_t> inputs() const {
    std::vector<std::int32_t> from(static_cast<std::size_t>(time() * count()), 0);
    for (std::int64_t s = 0; s < count(); ++s) {
      const std::vector<std::int64_t>& steps = segment(s).steps;
      for (std::size_t k = 0; k < steps.size(); ++k) {
        from[static_cast<std::size_t>(place(static_cast<std::int64_t>(k), s))] =
            step_of_call(steps[k], segment(s).row);
      }
    }
    return from;
  }
  /// For each step of the call: the row of the gathered output, as [time() * count(), .], that it
  /// puts out; `backward` says which output is the last one.
  std::vector<std::int32_t> outputs(bool zero_masked, bool backward) const {
    // Padding of the first segment.
    std::vector<std::int32_t> from(static_cast<std::size_t>(max_time_ * batch_),
                                   place(longest_, 0));
    for (std::int64_t s = 0; s < count(); ++s) {
      const Segment& own = segment(s);
      const auto size = static_cast<std::int64_t>(own.steps.size());
      std::int64_t k = 0;  // steps of the segment before t
      for (std::int64_t t = own.first; t < own.last; ++t) {
        const bool computed = k < size && own.steps[static_cast<std::size_t>(k)] == t;
        const std::int64_t last = backward ? k : k - 1;
        if (computed) {
          from[static_cast<std::size_t>(step_of_call(t, own.row))] = place(k, s);
          ++k;
        } else if (!zero_masked && last >= 0 && last < size) {
          from[static_cast<std::size_t>(step_of_call(t, own.row))] = place(last, s);
        }
      }
    }
    return from;
  }
  /// The row of the batch whose initial state each segment begins with; `zeros` where none's.
  std::vector<std::int32_t> first_states(std::int32_t zeros) const {
    std::vector<std::int32_t> rows;
    for (std::int64_t s = 0; s < count(); ++s) {
      const bool begins = s == 0 || segment(s - 1).row != segment(s).row;
      const bool initial = (begins && !segment(s).put_back) || in_.flags.reset_to_initial;
      rows.push_back(initial ? static_cast<std::int32_t>(segment(s).row) : zeros);
    }
    return rows;
  }
  /// The last segment of each row of the batch.
  std::vector<std::int32_t> last_of_rows() const {
    std::vector<std::int32_t> last(static_cast<std::size_t>(batch_));
    for (std::int64_t s = 0; s < count(); ++s) {
      last[static_cast<std::size_t>(segment(s).row)] = static_cast<std::int32_t>(s);
    }
    return last;
  }

 private:
  struct Segment {
    std::int64_t row = 0, first = 0, last = 0;  // steps [first, last) of the call
    bool put_back = false;                      // begins with a reset
    std::vector<std::int64_t> steps;            // those that are computed
  };

  const Segment& segment(std::int64_t s) const { return segments_[static_cast<std::size_t>(s)]; }
  std::int32_t place(std::int64_t k, std::int64_t s) const {
    return static_cast<std::int32_t>(k * count() + s);
  }
  std::int32_t step_of_call(std::int64_t t, std::int64_t b) const {
    return static_cast<std::int32_t>(in_.time_major ? t * batch_ + b : b * max_time_ + t);
  }
  bool flag(const std::vector<bool>& flags, std::int64_t t, std::int64_t b, bool otherwise) const {
    return flags.empty() ? otherwise : flags[static_cast<std::size_t>(step_of_call(t, b))];
  }
  void cut_row(std::int64_t b) {
    const std::int64_t length =
        in_.sequence_lengths ? (*in_.sequence_lengths)[static_cast<std::size_t>(b)] : max_time_;
    segments_.push_back({.row = b});
    for (std::int64_t t = 0; t < length; ++t) {
      if (flag(in_.flags.reset, t, b, false)) {
        segments_.back().last = t;
        if (t > 0) segments_.push_back({.row = b, .first = t});
        segments_.back().put_back = true;
      }
      if (flag(in_.flags.mask, t, b, true)) segments_.back().steps.push_back(t);
    }
    segments_.back().last = length;
  }

  const RnnInputs& in_;
  std::int64_t max_time_, batch_, longest_ = 0;
  std::vector<Segment> segments_;
};

Tensor indices(const std::vector<std::int32_t>& values, const Shape& shape) {
  return Tensor(ConstArrayView{values.data(), DType::kInt32, shape});
}

// Rows of the leading axis of [N, ..] as [shape.., ..].
Tensor rows_of(const Tensor& from, const std::vector<std::int32_t>& rows, const Shape& shape) {
  const std::int64_t leading = from.shape()[0];
  const std::int64_t width = leading > 0 ? shape_size(from.shape()) / leading : 0;
  Shape result = shape;
  result.insert(result.end(), from.shape().begin() + 1, from.shape().end());
  return reshape(embedding_lookup(reshape(from, {leading, width}), indices(rows, shape)), result);
}

// A state as [B, L*D, .].
Tensor batch_first(const Tensor& state, bool time_major) {
  return time_major ? transpose_leading(state) : state;
}

// The states that the segments begin with, time-major.
Tensor gathered_state(const Segments& segments, const Tensor& state, const RnnInputs& in) {
  if (state.empty()) return state;
  if (in.flags.reset.empty()) return in.time_major ? state : transpose_leading(state);
  const Tensor rows = batch_first(state, in.time_major);
  Shape zero = rows.shape();
  zero[0] = 1;
  const Array zeros(state.dtype(), zero);
  const Tensor with_zeros = concat({rows, Tensor(zeros.view())}, 0);
  const auto none = static_cast<std::int32_t>(rows.shape()[0]);
  return transpose_leading(rows_of(with_zeros, segments.first_states(none), {segments.count()}));
}

// The states of the rows, in the layout of the call.
Tensor final_state(const Segments& segments, const Tensor& state, const RnnInputs& in) {
  if (state.empty()) return state;
  Tensor result = state;
  if (!in.flags.reset.empty()) {
    const std::vector<std::int32_t> last = segments.last_of_rows();
    result = rows_of(transpose_leading(state), last, {static_cast<std::int64_t>(last.size())});
    if (in.time_major) result = transpose_leading(result);
  } else if (!in.time_major) {
    result = transpose_leading(state);
  }
  const StateLayout layout = in.time_major ? StateLayout::kTimeMajor : StateLayout::kBatchMajor;
  return std::move(result).with_state_layout(layout);
}

// The gathered output [time, count, D * .] at the steps of the call.
Tensor scattered(const Segments& segments, const Tensor& output, std::int64_t directions,
                 const RnnInputs& in, bool zero_masked) {
  const Shape steps{in.x.shape()[0], in.x.shape()[1]};
  const std::int64_t width = output.shape()[2];
  const Tensor rows = reshape(output, {segments.time() * segments.count(), width});
  if (zero_masked || directions == 1) {
    return rows_of(rows, segments.outputs(zero_masked, false), steps);
  }
  const std::vector<Tensor> halves = split(rows, 1, {width / 2, width / 2});
  return concat({rows_of(halves[0], segments.outputs(false, false), steps),
                 rows_of(halves[1], segments.outputs(false, true), steps)},
                2);
}

}  // namespace

void check_flags(std::string_view call, const StepFlags& flags, std::int64_t max_time,
                 std::int64_t batch) {
  const auto check = [&](std::string_view name, const std::vector<bool>& given) {
    if (given.empty() || static_cast<std::int64_t>(given.size()) == max_time * batch) return;
    throw ArgumentError(message("[", call, "] ", name, " has ", given.size(),
                                " elements, expected one a step: ", max_time, " times ", batch));
  };
  check("mask", flags.mask);
  check("reset", flags.reset);
}

RnnOutputs run_in_segments(const RnnSpec& spec, const RnnInputs& in,
                           const std::function<RnnOutputs(const RnnInputs&)>& run) {
  const Shape& shape = in.x.shape();
  const std::int64_t max_time = shape[in.time_major ? 0 : 1], batch = shape[in.time_major ? 1 : 0];
  const Segments segments(in, max_time, batch);
  RnnInputs gathered = in;
  gathered.flags = {};
  gathered.time_major = true;
  gathered.sequence_lengths = segments.lengths();
  gathered.x = rows_of(reshape(in.x, {max_time * batch, shape[2]}), segments.inputs(),
                       {segments.time(), segments.count()});
  gathered.h0 = gathered_state(segments, in.h0, in);
  gathered.c0 = gathered_state(segments, in.c0, in);
  const RnnOutputs found = run(gathered);
  RnnOutputs out;
  const bool zero_masked = in.flags.zero_output_for_mask;
  out.output = scattered(segments, found.output, spec.num_dirs(), in, zero_masked);
  out.h = final_state(segments, found.h, in);
  out.c = final_state(segments, found.c, in);
  for (const Tensor& layer : found.layer_outputs) {
    out.layer_outputs.push_back(scattered(segments, layer, spec.num_dirs(), in, zero_masked));
  }
  // A cell is a state: 0 where no step was computed.
  for (const Tensor& layer : found.layer_cells) {
    out.layer_cells.push_back(scattered(segments, layer, spec.num_dirs(), in, true));
  }
  return out;
}

}  // namespace openrnn::ops
