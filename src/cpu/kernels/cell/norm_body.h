// Layer normalization around the finishers of cell_body.h: a row at a time, from its products to
// its state, and back. Included inside the namespace of an instruction set, after cell_body.h.
//
// | what                | shape                                                             |
// |---------------------|-------------------------------------------------------------------|
// | products, inputs    | [blocks of L units][G][L] of a row                                |
// | gains of gates      | the same                                                          |
// | saved rows          | NormRow: normalized values [G][U] of each side, [U] of the cell   |
// | gradients of sums   | [G][U] (gru: n, r, z, n r), then [U] of the normalized cell       |
// | gate gradients, out | [G][U] of sums; of products the input's side, then the recurrent  |
//
// A sum over a row has one order on every processor: kMostLanes chains, that of unit u being u %
// kMostLanes, each with its units ascending; the chains of the gates are added in slot order, then
// the chains in halves. Mean first, then the variance around it.
#pragma once

inline float root(float x) { return __builtin_sqrtf(x); }
inline double root(double x) { return __builtin_sqrt(x); }

/// `visit(part, unit)` for the vectors of a row, of which kParts make kMostLanes units; `part` is a
/// constant where the compiler unrolls, so that chains stay in registers.
template <class V>
constexpr int kParts = kMostLanes / V::kLanes;
template <class V, class Visit>
__attribute__((always_inline)) inline void each_vector(int64_t units, Visit visit) {
  for (int64_t first = 0; first < units; first += kMostLanes) {
#pragma GCC unroll 16
    for (int part = 0; part < kParts<V>; ++part) {
      const int64_t unit = first + part * V::kLanes;
      if (unit < units) visit(part, unit);
    }
  }
}

/// The chains of G gates.
template <class V, int G>
struct Chains {
  using T = typename V::T;
  V at[G][kParts<V>];

  Chains() {
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) {
#pragma GCC unroll 16
      for (int part = 0; part < kParts<V>; ++part) at[g][part] = V::broadcast(0);
    }
  }
  /// The sum of `count` gates from `first` on.
  T sum(int64_t first, int64_t count) const {
    alignas(64) T chains[kMostLanes];
    for (int part = 0; part < kParts<V>; ++part) {
      V all = at[first][part];
      for (int64_t g = first + 1; g < first + count; ++g) all = all + at[g][part];
      all.store(chains + part * V::kLanes);
    }
    for (int64_t half = kMostLanes / 2; half > 0; half /= 2) {
      for (int64_t i = 0; i < half; ++i) chains[i] += chains[i + half];
    }
    return chains[0];
  }
};

/// Zero in the lanes beyond `count`.
template <class V>
inline V inside(V x, int64_t count) {
  if (count >= V::kLanes) return x;
  alignas(64) typename V::T lanes[V::kLanes];
  x.store(lanes);
  return V::load(lanes, count);
}

/// Mean and 1 / sqrt(variance + epsilon) of each gate's group.
template <class T>
struct Moments {
  T mean[4], inverse[4];
};

/// Of G vectors of gates at `row`, those of the next L units `step` further.
template <class V, int G>
inline Moments<typename V::T> moments(const NormOptions<typename V::T>& norm,
                                      const typename V::T* row, int64_t step, int64_t units) {
  using T = typename V::T;
  constexpr int L = V::kLanes;
  Moments<T> found;
  Chains<V, G> sums, squares;
  each_vector<V>(
      units, [&](int part, int64_t unit) __attribute__((always_inline)) {
        const T* at = row + unit / L * step;
#pragma GCC unroll 4
        for (int g = 0; g < G; ++g) {
          sums.at[g][part] = sums.at[g][part] + load_some<V>(at + g * L, units - unit);
        }
      });
  for (int64_t n = 0; n < norm.groups; ++n) {
    const int64_t first = norm.begins[n], count = norm.begins[n + 1] - first;
    const T mean = sums.sum(first, count) / static_cast<T>(count * units);
    for (int64_t g = first; g < first + count; ++g) found.mean[g] = mean;
  }
  each_vector<V>(
      units, [&](int part, int64_t unit) __attribute__((always_inline)) {
        const T* at = row + unit / L * step;
#pragma GCC unroll 4
        for (int g = 0; g < G; ++g) {
          const V x = load_some<V>(at + g * L, units - unit);
          const V d = inside(x - V::broadcast(found.mean[g]), units - unit);
          squares.at[g][part] = fma(d, d, squares.at[g][part]);
        }
      });
  for (int64_t n = 0; n < norm.groups; ++n) {
    const int64_t first = norm.begins[n], count = norm.begins[n + 1] - first;
    const T variance = squares.sum(first, count) / static_cast<T>(count * units);
    const T inverse = T(1) / root(variance + norm.epsilon);
    for (int64_t g = first; g < first + count; ++g) found.inverse[g] = inverse;
  }
  return found;
}

/// The whole of one vector as one group.
template <class T>
inline NormOptions<T> alone(T epsilon) {
  return {.groups = 1, .begins = {0, 1}, .epsilon = epsilon};
}

/// One side of a row: what it normalizes, its gains, and where backward finds it.
template <class V, int G>
struct NormSide {
  using T = typename V::T;
  static constexpr int L = V::kLanes;
  const T* row;
  int64_t step;
  const T* gain;
  Moments<T> at;
  T *hats, *inverses;  // null: not saved

  /// Writes the products with the gains of the units of a vector.
  void apply(int64_t unit, int64_t units, T* out) const {
    const T* from = row + unit / L * step;
    const T* gains = gain + unit * G;
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) {
      const V hat =
          (V::load(from + g * L) - V::broadcast(at.mean[g])) * V::broadcast(at.inverse[g]);
      if (hats) store_some<V>(hat, hats + g * units + unit, units - unit);
      (hat * V::load(gains + g * L)).store(out + g * L);
    }
  }
  void save_inverses() const {
    for (int g = 0; inverses && g < G; ++g) inverses[g] = at.inverse[g];
  }
};

/// The cell of a row, from its sums [U] on: normalizes it, and finishes the step.
template <class V>
void normalize_cell(const ForwardStep<typename V::T>& s, const NormForward<typename V::T>& n,
                    int64_t row) {
  using T = typename V::T;
  const NormOptions<T>& norm = s.options->norm;
  T* const saved = n.saved ? n.saved[row] : nullptr;
  const Moments<T> at = moments<V, 1>(alone(norm.epsilon), s.c[row], V::kLanes, s.units);
  for (int64_t unit = 0; unit < s.units; unit += V::kLanes) {
    const int64_t count = s.units - unit;
    V c = load_some<V>(s.c[row] + unit, count);
    const V hat = (c - V::broadcast(at.mean[0])) * V::broadcast(at.inverse[0]);
    if (saved) store_some<V>(hat, saved + n.place.cell + unit, count);
    V seen = fma(hat, V::load(norm.cell_gain + unit), V::load(norm.cell_bias + unit));
    if (norm.carries_cell) {
      c = seen = rounded(s.round_c, seen);
      store_some<V>(c, s.c[row] + unit, count);
    }
    const V o_sum = load_some<V>(s.gates[row] + unit + 3 * s.units, count);
    LstmWithOptions<V>::put_out(s, {row, unit, count, nullptr, nullptr, nullptr}, o_sum, c, seen);
  }
  if (saved) saved[n.place.cell_inverse] = at.inverse[0];
}

/// The units of a vector up to their cells, which are not finished before all of the row are there.
template <class V>
void update_cell(const ForwardStep<typename V::T>& s, const CellPlace<typename V::T>& at) {
  V c = LstmWithOptions<V>::update(s, at);
  if (!s.options->norm.carries_cell) c = rounded(s.round_c, c);
  store_some<V>(c, s.c[at.row] + at.unit, at.count);
  store_some<V>(pre_activation<V>(at, 3), s.gates[at.row] + at.unit + 3 * s.units, at.count);
}

/// The rows of a step, of which the products are there: `Cell` finishes the units of a vector.
template <class V, int G, class Cell>
void norm_forward(const ForwardStep<typename V::T>& s, const NormForward<typename V::T>& n) {
  using T = typename V::T;
  constexpr int64_t L = V::kLanes;
  const NormOptions<T>& norm = s.options->norm;
  alignas(64) T tile[G * L], pre[G * L] = {};
  for (int64_t row = n.first; row < s.rows; row += n.stride) {
    const T* const input = n.inputs ? n.inputs[row] : n.input + row * n.input_row;
    T* const product = n.products[row];
    T* const saved = n.saved ? n.saved[row] : nullptr;
    if (!norm.products) {
      for (int64_t block = 0; block < (s.units + L - 1) / L; ++block) {
        T* const sum = product + block * G * L;
        for (int64_t i = 0; i < G * L; i += L) {
          (V::load(sum + i) + V::load(input + block * n.input_step + i)).store(sum + i);
        }
      }
    }
    const auto side = [&](const T* from, int64_t step, const T* gain, int64_t hats, int64_t at) {
      const NormSide<V, G> made{from,
                                step,
                                gain,
                                moments<V, G>(norm, from, step, s.units),
                                saved ? saved + hats : nullptr,
                                saved ? saved + at : nullptr};
      made.save_inverses();
      return made;
    };
    const int64_t own = norm.products ? n.place.recurrent : n.place.input;
    const int64_t own_inverse = norm.products ? n.place.recurrent_inverse : n.place.input_inverse;
    const NormSide<V, G> sums = side(product, G * L, norm.gain[norm.products], own, own_inverse);
    const NormSide<V, G> inputs = norm.products ? side(input, n.input_step, norm.gain[0],
                                                       n.place.input, n.place.input_inverse)
                                                : sums;
    for (int64_t unit = 0; unit < s.units; unit += L) {
      sums.apply(unit, s.units, tile);
      if (norm.products) inputs.apply(unit, s.units, pre);
      const CellPlace<T> at{row, unit, s.units - unit, tile, pre, s.bias + unit * G};
      if (norm.normalizes_cell) {
        update_cell<V>(s, at);
      } else {
        Cell::forward(s, at);
      }
    }
    if (norm.normalizes_cell) normalize_cell<V>(s, n, row);
  }
}
