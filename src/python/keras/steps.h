// The steps of a call that count, row by row: Keras's masks and go_backwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace openrnn::python::keras {

/// A direction's columns of the outputs. One that is `reversed` walks the steps from the last to
/// the first, and its outputs stand in the order of time.
struct Columns {
  std::int64_t first = 0, count = 0, width = 0;
  bool reversed = false;
};

/// A row's steps in the order in which Keras's loop walks them; those that its mask leaves are a
/// sequence of their own, which the engine computes. Outputs are in the order of the walk.
class Steps {
 public:
  Steps() = default;
  /// mask [B, T], null: every step counts.
  Steps(const bool* mask, std::int64_t batch, std::int64_t time, bool backwards);

  std::int64_t batch() const { return batch_; }
  std::int64_t time() const { return time_; }
  /// [B]; null where every step counts.
  const std::int32_t* lengths() const { return lengths_.empty() ? nullptr : lengths_.data(); }
  std::int64_t length(std::int64_t row) const {
    return lengths_.empty() ? time_ : lengths_[static_cast<std::size_t>(row)];
  }
  /// Whether the engine can read x where it lies.
  bool in_place() const { return in_place_; }
  /// Whether a row's last step counts, of a reversed direction the first one.
  bool ends(std::int64_t row, bool reversed) const {
    return time_ > 0 && counts(row, reversed ? 0 : time_ - 1);
  }

  /// x [B, T, width bytes] -> each row's sequence.
  void gather(const void* x, void* to, std::size_t width) const;
  /// dx of each row's sequence -> [B, T, width]; 0 where a step does not count.
  void scatter(const void* dx, void* to, std::size_t width) const;
  /// y of each row's sequence [B, T, width] -> Keras's outputs in those columns: where a step does
  /// not count the output before it, 0 if there is none or `zero`. In place, too, if in_place().
  template <class T>
  void spread(const T* y, T* to, const Columns& columns, bool zero) const;
  /// Its gradient, which is a sum over the steps that show one output.
  template <class T>
  void collect(const T* dy, T* to, const Columns& columns, bool zero) const;

 private:
  std::int64_t at(std::int64_t step) const { return backwards_ ? time_ - 1 - step : step; }
  bool counts(std::int64_t row, std::int64_t step) const {
    return mask_.empty() || mask_[static_cast<std::size_t>(row * time_ + at(step))] != 0;
  }

  std::int64_t batch_ = 0, time_ = 0;
  bool backwards_ = false, in_place_ = true;
  std::vector<std::uint8_t> mask_ = {};
  std::vector<std::int32_t> lengths_ = {};
};

}  // namespace openrnn::python::keras
