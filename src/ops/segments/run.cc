#include <optional>

#include "openrnn/ops.h"
#include "ops/segments/cut.h"
#include "ops/segments/segments.h"
#include "ops/support/support.h"

namespace openrnn::ops {
namespace {

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

// The states that the segments of a group begin with, time-major.
Tensor gathered_state(const Segments& segments, std::size_t g, const Tensor& state,
                      const RnnInputs& in) {
  if (state.empty()) return state;
  if (in.flags.reset.empty()) return in.time_major ? state : transpose_leading(state);
  const Tensor rows = batch_first(state, in.time_major);
  Shape zero = rows.shape();
  zero[0] = 1;
  const Array zeros(state.dtype(), zero);
  const Tensor with_zeros = concat({rows, Tensor(zeros.view())}, 0);
  const auto none = static_cast<std::int32_t>(rows.shape()[0]);
  return transpose_leading(
      rows_of(with_zeros, segments.first_states(g, none), {segments.count(g)}));
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

// The outputs of all groups [rows, D * .] at the steps of the call.
Tensor scattered(const Segments& segments, const Tensor& rows, std::int64_t directions,
                 const RnnInputs& in, bool zero_masked) {
  const Shape steps{in.x.shape()[0], in.x.shape()[1]};
  const std::int64_t width = rows.shape()[1];
  if (zero_masked || directions == 1) {
    return rows_of(rows, segments.outputs(zero_masked, false), steps);
  }
  const std::vector<Tensor> halves = split(rows, 1, {width / 2, width / 2});
  return concat({rows_of(halves[0], segments.outputs(false, false), steps),
                 rows_of(halves[1], segments.outputs(false, true), steps)},
                2);
}

// One of a call's results, of all groups, as `from` gives it.
template <class From>
Tensor joined(const std::vector<RnnOutputs>& parts, std::int64_t axis, const From& from) {
  std::vector<Tensor> all;
  for (const RnnOutputs& part : parts) {
    const Tensor each = from(part);
    if (each.empty()) return each;
    all.push_back(axis == 0 ? reshape(each, {each.shape()[0] * each.shape()[1], each.shape()[2]})
                            : each);
  }
  return all.size() == 1 ? all[0] : concat(all, axis);
}

// Masks of each group's own. Where none are drawn, a group has no rows of a whole batch.
DropoutKey key_of_group(DropoutKey key, std::size_t g, bool draws) {
  key.seed += g * 0xA0761D6478BD642FU;
  if (!draws) key.first_row = key.whole_batch = 0;
  return key;
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
  const Tensor x = reshape(in.x, {max_time * batch, shape[2]});
  const bool draws = in.training && spec.draws_masks();
  std::optional<DropoutKey> drawn;  // one key for the call
  std::vector<RnnOutputs> parts;
  for (std::size_t g = 0; g < segments.groups(); ++g) {
    RnnInputs gathered = in;
    gathered.flags = {};
    gathered.time_major = true;
    gathered.sequence_lengths = segments.lengths(g);
    gathered.x = rows_of(x, segments.inputs(g), {segments.time(g), segments.count(g)});
    gathered.h0 = gathered_state(segments, g, in.h0, in);
    gathered.c0 = gathered_state(segments, g, in.c0, in);
    gathered.dropout = key_of_group(in.dropout, g, draws);
    if (in.next_dropout) {
      gathered.next_dropout = [&drawn, &in, g, draws] {
        if (!drawn) drawn = in.next_dropout();
        return key_of_group(*drawn, g, draws);
      };
    }
    parts.push_back(run(gathered));
  }
  const bool zero_masked = in.flags.zero_output_for_mask;
  const auto at_steps = [&](bool zeros, const auto& from) {
    return scattered(segments, joined(parts, 0, from), spec.num_dirs(), in, zeros);
  };
  const auto final_of = [&](const auto& from) {
    return final_state(segments, joined(parts, 1, from), in);
  };
  RnnOutputs out;
  out.output = at_steps(zero_masked, [](const RnnOutputs& part) { return part.output; });
  out.h = final_of([](const RnnOutputs& part) { return part.h; });
  out.c = final_of([](const RnnOutputs& part) { return part.c; });
  for (std::size_t l = 0; l < parts[0].layer_outputs.size(); ++l) {
    out.layer_outputs.push_back(
        at_steps(zero_masked, [l](const RnnOutputs& part) { return part.layer_outputs[l]; }));
  }
  // A cell is a state: 0 where no step was computed.
  for (std::size_t l = 0; l < parts[0].layer_cells.size(); ++l) {
    out.layer_cells.push_back(
        at_steps(true, [l](const RnnOutputs& part) { return part.layer_cells[l]; }));
  }
  return out;
}

}  // namespace openrnn::ops
