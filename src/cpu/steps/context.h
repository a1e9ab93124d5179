// State that the threads of a pass share, forward and backward, and that of one thread.
#pragma once

#include "cpu/pack/packed.h"
#include "cpu/plan/plan.h"
#include "cpu/steps/rows.h"
#include "cpu/threading/barrier.h"

namespace openrnn::cpu {

/// One thread: its place in the plan, and its rows of the batch.
struct StepMember {
  int thread = 0;
  Place place;
  int index = 0, members = 1;  // among the threads of its row group
  std::int64_t rows = 0;       // of the row group
};

/// The call, its weights and how its threads divide it. B rows by falling length; a step is counted
/// from where a direction begins, so the time of a step of the backward direction depends on the
/// row.
template <class T>
struct StepContext {
  const CpuPacked<T>& packed;
  const ForwardArgs& args;  // of forward, whose shapes, lengths and dropout backward has, too
  Plan plan;
  Rows rows;
  Barrier* row_barriers;   // [row group]
  Barrier* step_barriers;  // [row group][direction group]

  const RnnSpec& spec() const noexcept { return packed.spec(); }
  bool dropping() const noexcept { return args.training && spec().training.dropout > 0.0; }

  StepMember member(int thread) const noexcept {
    const Place place = plan.place(thread);
    return {thread, place, plan.member(place), plan.row_members(), rows.count(place.row_group)};
  }
  Barrier& row_barrier(const StepMember& me) const noexcept {
    return row_barriers[me.place.row_group];
  }
  Barrier& step_barrier(const StepMember& me) const noexcept {
    return step_barriers[me.place.row_group * plan.dir_groups + me.place.dir_group];
  }

  /// Row i of the member's group, as a row of the batch.
  std::int64_t row(const StepMember& me, std::int64_t i) const {
    return rows.row(me.place.row_group, i);
  }
  /// How many rows of the member's group are longer than `step`; they come first.
  std::int64_t active(const StepMember& me, std::int64_t step) const {
    if (me.rows == 0 || rows.length(row(me, me.rows - 1)) > step) return me.rows;
    std::int64_t low = 0, high = me.rows - 1;
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (rows.length(row(me, middle)) > step) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
  /// The time of a step of row `b` of the batch.
  std::int64_t time_of(std::int64_t direction, std::int64_t step, std::int64_t b) const {
    return direction == 0 ? step : rows.length(b) - 1 - step;
  }

  /// Fills the clipping of a ForwardStep or a BackwardStep.
  template <class Step>
  void set_clip(Step& step) const {
    step.clip = spec().cell_clip.has_value();
    if (!step.clip) return;
    step.clip_low = static_cast<T>((*spec().cell_clip)[0]);
    step.clip_high = static_cast<T>((*spec().cell_clip)[1]);
  }
  /// Multiplies a row of the output of `layer`, or of its gradient, by its dropout mask; `mask` has
  /// room for one row.
  void drop(std::int64_t layer, std::int64_t t, std::int64_t b, T* mask, T* values) const {
    const std::int64_t width = spec().output_size();
    const DropoutRow at{static_cast<std::uint32_t>(layer), static_cast<std::uint32_t>(t),
                        static_cast<std::uint32_t>(b)};
    dropout_mask<T>(args.dropout, at, spec().training.dropout,
                    {mask, static_cast<std::size_t>(width)});
    packed.kernels().multiply(mask, values, width);
  }
};

}  // namespace openrnn::cpu
