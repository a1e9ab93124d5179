// What finishes a product's units, in two halves where a cell has them: the second half waits for
// the first for some hundred cycles, so the first of the next units comes between. Included inside
// the namespace of an instruction set, before the steps.
#pragma once

/// Whether vectors are cache lines, which can be written past the caches.
template <class V>
constexpr bool has_stream() {
  return requires(V v, typename V::T * p) { v.stream(p); };
}

/// Stores what backward reads.
template <class V, class Step>
inline void keep(const Step& s, V v, typename V::T* p, int64_t n) {
  if constexpr (has_stream<V>()) {
    if (s.streams) return v.stream(p);
  }
  store_some(v, p, n);
}

/// Lets other threads see what a step has streamed; at its end.
template <class V, class Step>
inline void end_streams(const Step& s) {
  if constexpr (has_stream<V>()) {
    if (s.streams) V::fence();
  }
}

/// What the first half hands on to the second: each cell says what they are.
template <class V>
struct Begun {
  V first, second;
};

/// Of the units of one step, one vector of them after the other; `rest` ends the last.
template <class V, class Cell, class Step>
class Finishing {
 public:
  /// `sums`: what else the cell begins with.
  template <class Place, class... Sums>
  void add(const Step& s, const Place& at, Sums... sums) {
    if constexpr (kHalves) {
      const Begun<V> begun = Cell::begin(s, at, sums...);
      rest(s);
      // As vectors: a compiler may copy a struct in halves, which wait to be read as one.
      begun.first.store(first_);
      begun.second.store(second_);
      at_ = {at.row, at.unit, at.count};
    } else {
      Cell::finish(s, at, sums...);
    }
  }
  void rest(const Step& s) {
    if constexpr (kHalves) {
      if (at_.count > 0) Cell::end(s, at_, {V::load(first_), V::load(second_)});
      at_.count = 0;
    }
  }

 private:
  using T = typename V::T;
  static constexpr bool kHalves = requires { &Cell::begin; };

  UnitPlace at_{};  // of units that have begun; count 0: none
  alignas(64) T first_[V::kLanes], second_[V::kLanes];
};
