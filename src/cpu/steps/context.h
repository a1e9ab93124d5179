// State that the threads of a pass share, forward and backward, and that of one thread.
#pragma once

#include "base/counter.h"
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
  Barrier* row_barriers;        // [row group]
  Barrier* step_barriers;       // [row group][direction group]
  std::int64_t first_time = 0;  // of step 0, where this is a chunk of a longer call

  const RnnSpec& spec() const noexcept { return packed.spec(); }
  bool dropping() const noexcept { return args.training && spec().training.dropout > 0.0; }
  bool drops_state() const noexcept { return args.training && spec().training.drops_state(); }
  bool drops_candidate() const noexcept {
    return args.training && spec().training.drops_candidate();
  }
  /// Whether a step has masks or zoneout inside.
  bool masks_steps() const noexcept {
    return drops_state() || drops_candidate() || spec().zoneout > 0.0 || spec().zoneout_cell > 0.0;
  }
  /// Whether the gradient of h is made apart from the cell's own product.
  bool splits_state() const noexcept { return drops_state() || spec().zoneout > 0.0; }

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
    fill_mask(mask_of_step(MaskOf::kLayer, layer, t, b), spec().training.dropout, {0, width}, mask);
    packed.kernels().multiply(mask, values, width);
  }

  /// One row of a mask; the row is the call's own.
  struct MaskPlace {
    MaskOf of;
    std::int64_t layer, time, row;
  };
  /// That of a step, whose time is that of the whole call.
  MaskPlace mask_of_step(MaskOf of, std::int64_t layer, std::int64_t t, std::int64_t row) const {
    return {of, layer, first_time + t, row};
  }
  /// These units of a row of dropout_mask.
  void fill_mask(const MaskPlace& at, double rate, const Range& units, T* out) const {
    const DropoutKey key = key_of(args.dropout, at.of);
    const auto words = counter::dropout_words(key.seed, key.call);
    const std::uint64_t threshold = counter::dropout_threshold(rate);
    // A table, as a branch on a random bit is mispredicted half the time.
    const std::array<T, 2> choice{counter::dropout_scale<T>(rate), T{0}};
    for (std::int64_t unit = units.first / 4 * 4; unit < units.last; unit += 4) {
      const auto random = counter::dropout_group(
          words, static_cast<std::uint32_t>(at.layer), static_cast<std::uint32_t>(at.time),
          static_cast<std::uint32_t>(args.dropout.first_row + at.row),
          static_cast<std::uint32_t>(unit / 4));
      const std::int64_t last = std::min<std::int64_t>(unit + 4, units.last);
      for (std::int64_t n = std::max(unit, units.first); n < last; ++n) {
        out[n - units.first] = choice[random[static_cast<std::size_t>(n - unit)] < threshold];
      }
    }
  }
  /// Zoneout of some units of a row, all pointers at the first of them; `mask` has room for them.
  void zone_out(const MaskPlace& at, double rate, const Range& units, T* mask, const T* before,
                const T* now, T* out) const {
    if (args.training) fill_mask(at, rate, units, mask);
    packed.kernels().zone_out({.mask = args.training ? mask : nullptr,
                               .rate = static_cast<T>(rate),
                               .rest = static_cast<T>(1.0 - rate),
                               .before = before,
                               .now = now,
                               .out = out,
                               .count = units.count()});
    if constexpr (sizeof(T) == sizeof(float)) {
      const bool rounds = is_16_bit_float(spec().dtype) && !args.training;
      if (rounds) packed.table().storage[storage_of(spec().dtype)].round(out, units.count());
    }
  }
  /// Divides the gradient `d` of what that put out among the step's own, in its place, and
  /// `before`.
  void zone_out_gradient(const MaskPlace& at, double rate, const Range& units, T* mask, T* d,
                         T* before) const {
    if (args.training) fill_mask(at, rate, units, mask);
    packed.kernels().zone_out_gradient({.mask = args.training ? mask : nullptr,
                                        .rate = static_cast<T>(rate),
                                        .rest = static_cast<T>(1.0 - rate),
                                        .d = d,
                                        .before = before,
                                        .count = units.count()});
  }
};

}  // namespace openrnn::cpu
