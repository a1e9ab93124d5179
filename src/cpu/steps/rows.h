// Rows of the caller's arrays and of the engine's own, and which thread has which rows of the
// batch.
//
// T steps, B rows, L layers, D directions. The caller's sequences are [T][B][width] or
// [B][T][width], its states [L*D][B][width] or [B][L*D][width]; the engine's grids are [time or
// layer][B][width].
#pragma once

#include <algorithm>
#include <array>

#include "cpu/isa/arithmetic.h"
#include "cpu/kernels/kernels.h"
#include "cpu/plan/plan.h"
#include "openrnn/engine.h"

namespace openrnn::cpu {

/// Rows in two dimensions: time (or pseudo-layer) and batch. A step of 0 keeps one row only.
template <class T>
struct Grid {
  T* base = nullptr;
  std::int64_t step = 0, row = 0;

  T* at(std::int64_t t, std::int64_t b) const { return base + t * step + b * row; }
  /// The same rows from time `t` on; without a base there are none.
  Grid after(std::int64_t t) const { return base ? Grid{at(t, 0), step, row} : *this; }
};

/// Rows of the caller's values: T, or 16 bits each.
template <class T>
struct UserRows {
  const void* base = nullptr;
  Storage storage = kStorageWide;
  std::int64_t step = 0, row = 0;  // elements

  /// The same rows from element `k` of each on.
  UserRows from(std::int64_t k) const {
    const auto bytes =
        static_cast<std::size_t>(k) * (storage != kStorageWide ? sizeof(std::uint16_t) : sizeof(T));
    return {static_cast<const char*>(base) + bytes, storage, step, row};
  }
  /// The same rows from time `t` on; without a base there are none.
  UserRows after(std::int64_t t) const { return base ? from(t * step) : *this; }
  const T* direct(std::int64_t t, std::int64_t b) const {
    return static_cast<const T*>(base) + t * step + b * row;
  }
  /// Copies `count` elements of a row, widened where they are stored in 16 bits.
  void load(const KernelTable& table, std::int64_t t, std::int64_t b, std::int64_t count,
            T* out) const {
    if constexpr (sizeof(T) == sizeof(float)) {
      if (storage != kStorageWide) {
        const auto* from = static_cast<const std::uint16_t*>(base) + t * step + b * row;
        return table.storage[storage].widen(from, out, count);
      }
    }
    std::copy_n(direct(t, b), count, out);
  }
  /// Writes a row of zeros when `from` is null. Only for memory that the caller may write.
  void store(const KernelTable& table, std::int64_t t, std::int64_t b, std::int64_t count,
             const T* from) const {
    if constexpr (sizeof(T) == sizeof(float)) {
      if (storage != kStorageWide) {
        auto* to = static_cast<std::uint16_t*>(const_cast<void*>(base)) + t * step + b * row;
        if (from) return table.storage[storage].narrow(from, to, count);
        std::fill_n(to, count, std::uint16_t{0});
        return;
      }
    }
    T* to = const_cast<T*>(direct(t, b));
    if (!from) {
      std::fill_n(to, count, T{0});
    } else if (from != to) {
      std::copy_n(from, count, to);
    }
  }
};

/// The caller's x, y or their gradients: [T, B, width] or [B, T, width].
template <class T>
UserRows<T> sequence_rows(const void* base, const RnnSpec& spec, const ForwardArgs& args,
                          std::int64_t width) {
  const Storage storage = storage_of(spec.dtype);
  return args.time_major ? UserRows<T>{base, storage, args.batch * width, width}
                         : UserRows<T>{base, storage, width, args.max_time * width};
}

/// The caller's states: [L*D, B, width] or [B, L*D, width].
template <class T>
UserRows<T> state_rows(const void* base, const RnnSpec& spec, const ForwardArgs& args,
                       std::int64_t width) {
  const Storage storage = storage_of(spec.dtype);
  return args.time_major ? UserRows<T>{base, storage, args.batch * width, width}
                         : UserRows<T>{base, storage, width, spec.num_pseudo_layers() * width};
}

/// Rows of the batch by falling length, divided into row groups.
class Rows {
 public:
  Rows() = default;
  /// `order` has room for the batch.
  Rows(const ForwardArgs& args, const Plan& plan, std::int32_t* order);

  std::int64_t length(std::int64_t b) const { return lengths_ ? lengths_[b] : max_time_; }
  // Without lengths a group is a block of adjacent rows; with them snake-order load balancing deals
  // rows by falling length to the groups, so that every group has as much to do.
  std::int64_t count(int group) const {
    if (!lengths_) return first(group + 1) - first(group);
    const std::int64_t whole = batch_ / groups_;
    return whole + (place(group, whole) < batch_ ? 1 : 0);
  }
  std::int64_t row(int group, std::int64_t i) const {
    return order_[lengths_ ? place(group, i) : first(group) + i];
  }

 private:
  // The first groups have more where it is uneven.
  std::int64_t first(std::int64_t group) const { return (batch_ * group + groups_ - 1) / groups_; }
  std::int64_t place(int group, std::int64_t i) const {
    return i * groups_ + (i % 2 == 0 ? group : groups_ - 1 - group);
  }

  const std::int32_t* lengths_ = nullptr;
  std::int32_t* order_ = nullptr;
  std::int64_t max_time_ = 0, batch_ = 0;
  int groups_ = 1;
};

/// Sizes that scratch memory depends on.
struct Room {
  std::int64_t batch = 0, max_time = 0;
  int threads = 1;
};

/// What a layer leaves, at [t][b]; without saving, c and h~ keep one row a batch row.
template <class T>
struct LayerStore {
  Grid<T> out;    // [T][B][D*O]
  Grid<T> input;  // what the next layer reads: out, or out with dropout
  std::array<Grid<T>, 2> c, h_tilde, gates;
  std::array<Grid<T>, 2> projected;  // [T][B][P] before proj_clip, of a saving pass
  std::array<Grid<T>, 2> norms;      // [T][B] rows of NormRow, of a saving pass
  std::array<Grid<T>, 2> c_now;      // as c: the cells before zoneout, which o and h see
  std::array<Grid<T>, 2> operand;    // [step][B][O], of the last operand_steps: masked states
  std::int64_t operand_steps = 1;

  /// Steps [t, t + steps) of direction `d`, and the outputs of both, of a longer store.
  void take_steps(const LayerStore& whole, std::size_t d, std::int64_t t, std::int64_t steps) {
    out = whole.out.after(t);
    operand_steps = std::max<std::int64_t>(steps, 1);
    for (auto part :
         {&LayerStore::c, &LayerStore::h_tilde, &LayerStore::gates, &LayerStore::projected,
          &LayerStore::norms, &LayerStore::c_now, &LayerStore::operand}) {
      (this->*part)[d] = (whole.*part)[d].after(t);
    }
  }
  /// What enters the product of a step where that is not h; steps from where a direction begins.
  T* entering(std::size_t direction, std::int64_t step, std::int64_t b) const {
    return operand[direction].at(step % operand_steps, b);
  }
};

}  // namespace openrnn::cpu
