// One backward step: dh = carry + da R (+ dy), and the gate gradients of the same units while dh is
// in L1. Included inside the namespace of an instruction set.
//
// | what                    | shape                                               |
// |-------------------------|-----------------------------------------------------|
// | s.a                     | [rows] pointers to gate gradients of the step after |
// | s.carry, s.dy, s.dc     | [rows] pointers to rows of [U]                      |
// | s.gates, s.da           | [rows] pointers to rows of [G][U] (gru: [4][U])     |
// | s.c, s.c_prev, s.h_prev | [rows] pointers to rows of [U]                      |
// | tile                    | [rows of the tile][vectors][L]: dh                  |
#pragma once

template <class V>
struct LstmGrad {
  using T = typename V::T;

  /// Whether the clamp let the cell through: 1 or 0.
  static V passed(const BackwardStep<T>& s, V raw) {
    const V zero = V::broadcast(T(0)), one = V::broadcast(T(1));
    const V low = V::broadcast(s.clip_low), high = V::broadcast(s.clip_high);
    return select_less(raw, low, zero, select_less(high, raw, zero, one));
  }
  static void list(const BackwardStep<T>& s, int64_t row, int64_t unit, Lines<T>& lines) {
    lines.add_gates(s.gates[row] + unit, 4, s.units);
    lines.add_gates(s.da[row] + unit, 4, s.units);
    lines.add(s.c_prev[row] + unit);
  }
  /// tanh(c) and dh.
  static Begun<V> begin(const BackwardStep<T>& s, const UnitPlace& at, V dh) {
    return {tanh(load_some<V>(s.c[at.row] + at.unit, at.count)), dh};
  }
  static void end(const BackwardStep<T>& s, const UnitPlace& at, const Begun<V>& begun) {
    const V one = V::broadcast(T(1)), zero = V::broadcast(T(0));
    const V tc = begun.first, dh = begun.second;
    const T* gates = s.gates[at.row] + at.unit;
    const V i = load_some<V>(gates, at.count);
    const V f = load_some<V>(gates + s.units, at.count);
    const V g = load_some<V>(gates + 2 * s.units, at.count);
    const V o = load_some<V>(gates + 3 * s.units, at.count);
    const V c_prev = load_some<V>(s.c_prev[at.row] + at.unit, at.count);
    T* carried = s.dc[at.row] + at.unit;
    V dc = fma(dh * o, fma(zero - tc, tc, one), load_some<V>(carried, at.count));
    if (s.clip) dc = dc * passed(s, fma(f, c_prev, i * g));
    T* da = s.da[at.row] + at.unit;
    store_some<V>((dc * g) * (i * (one - i)), da, at.count);
    store_some<V>((dc * c_prev) * (f * (one - f)), da + s.units, at.count);
    store_some<V>((dc * i) * fma(zero - g, g, one), da + 2 * s.units, at.count);
    store_some<V>((dh * tc) * (o * (one - o)), da + 3 * s.units, at.count);
    store_some<V>(dc * f, carried, at.count);
  }
};

/// The row of gate gradients is [n, r, z, n * r]: the first three are the input's side, the last
/// three the recurrent side.
template <class V>
struct GruGrad {
  using T = typename V::T;

  static void list(const BackwardStep<T>& s, int64_t row, int64_t unit, Lines<T>& lines) {
    lines.add_gates(s.gates[row] + unit, 4, s.units);
    lines.add_gates(s.da[row] + unit, 4, s.units);
    lines.add(s.h_prev[row] + unit);
  }
  static void finish(const BackwardStep<T>& s, const UnitPlace& at, V dh) {
    const V one = V::broadcast(T(1)), zero = V::broadcast(T(0));
    const T* gates = s.gates[at.row] + at.unit;
    const V r = load_some<V>(gates, at.count);
    const V z = load_some<V>(gates + s.units, at.count);
    const V n = load_some<V>(gates + 2 * s.units, at.count);
    const V hn = load_some<V>(gates + 3 * s.units, at.count);
    const V old = load_some<V>(s.h_prev[at.row] + at.unit, at.count);
    const V dn = (dh * (one - z)) * fma(zero - n, n, one);
    const V dz = (dh * (old - n)) * (z * (one - z));
    const V dr = (dn * hn) * (r * (one - r));
    T* da = s.da[at.row] + at.unit;
    store_some<V>(dn, da, at.count);
    store_some<V>(dr, da + s.units, at.count);
    store_some<V>(dz, da + 2 * s.units, at.count);
    store_some<V>(dn * r, da + 3 * s.units, at.count);
    store_some<V>(dh * z, s.carry[at.row] + at.unit, at.count);
  }
};

template <class V>
struct TanhGrad {
  using T = typename V::T;
  static void list(const BackwardStep<T>& s, int64_t row, int64_t unit, Lines<T>& lines) {
    lines.add(s.gates[row] + unit);
    lines.add(s.da[row] + unit);
  }
  static void finish(const BackwardStep<T>& s, const UnitPlace& at, V dh) {
    const V h = load_some<V>(s.gates[at.row] + at.unit, at.count);
    const V slope = fma(V::broadcast(T(0)) - h, h, V::broadcast(T(1)));
    store_some<V>(dh * slope, s.da[at.row] + at.unit, at.count);
  }
};

template <class V>
struct ReluGrad {
  using T = typename V::T;
  static void list(const BackwardStep<T>& s, int64_t row, int64_t unit, Lines<T>& lines) {
    TanhGrad<V>::list(s, row, unit, lines);
  }
  static void finish(const BackwardStep<T>& s, const UnitPlace& at, V dh) {
    const V h = load_some<V>(s.gates[at.row] + at.unit, at.count);
    const V zero = V::broadcast(T(0));
    store_some<V>(select_less(zero, h, dh, zero), s.da[at.row] + at.unit, at.count);
  }
};

/// Of a cell with options.
template <class V>
struct GradWithOptions {
  using T = typename V::T;
  static void list(const BackwardStep<T>& s, int64_t row, int64_t unit, Lines<T>& lines) {
    lines.add_gates(s.gates[row] + unit, s.saved_gates, s.units);
    lines.add_gates(s.da[row] + unit, s.gradient_gates, s.units);
    if (s.before) lines.add(s.before[row] + unit);
  }
  static void finish(const BackwardStep<T>& s, const UnitPlace& at, V dh) {
    alignas(64) T values[V::kLanes];
    dh.store(values);
    s.finish(s, at, values);
  }
};

template <class V, class Grad>
void finish_gradients(const BackwardStep<typename V::T>& s, const Group& g, int64_t row,
                      int64_t rows, const typename V::T* tile,
                      Finishing<V, Grad, BackwardStep<typename V::T>>& finishing) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t n = 0; n < g.vectors * g.panels; ++n, tile += V::kLanes) {
      const int64_t unit = (g.vector + n) * V::kLanes;
      const UnitPlace at{row + r, unit, s.units - unit};
      V dh = V::load(tile);
      if (s.dy) dh = dh + load_some<V>(s.dy[row + r] + unit, at.count);
      finishing.add(s, at, dh);
    }
  }
}

template <class V>
void load_carry(const BackwardStep<typename V::T>& s, const Group& g, int64_t row, int64_t rows,
                typename V::T* tile) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t n = 0; n < g.vectors * g.panels; ++n, tile += V::kLanes) {
      const int64_t unit = (g.vector + n) * V::kLanes;
      load_some<V>(s.carry[row + r] + unit, s.units - unit).store(tile);
    }
  }
}

/// Lists the cache lines to prefetch while a tile multiplies: what finishing it will read and
/// write, but for what L2 has: c was c_prev a step ago, and one row of dc and carry serves all
/// steps.
template <class V, class Grad>
void list_gradients(const BackwardStep<typename V::T>& s, const Group& g, int64_t row, int64_t rows,
                    Lines<typename V::T>& lines, TileCall<typename V::T>& tile) {
  using T = typename V::T;
  constexpr int64_t kStep = V::kLanes > Lines<T>::kNumbers ? V::kLanes : Lines<T>::kNumbers;
  const int64_t first = g.vector * V::kLanes, last = first + g.vectors * V::kLanes;
  lines.count = 0;
  for (int64_t r = row; r < row + rows; ++r) {
    for (int64_t unit = first; unit < last; unit += kStep) {
      Grad::list(s, r, unit, lines);
      if (s.dy) lines.add(s.dy[r] + unit);
    }
  }
  lines.give_to(tile);
}

template <class V, class Grad, class Op>
void backward_step(const BackwardStep<typename V::T>& s) {
  using T = typename V::T;
  constexpr int L = V::kLanes;
  Scratch<T, L> scratch;
  Lines<T> lines;
  const T* const* a = s.w.k > 0 ? Op::stage(s.w, s.a, s.rows) : s.a;
  Finishing<V, Grad, BackwardStep<T>> finishing;
  Walk<T> walk(s.w, s.rows);
  Group g;
  while (walk.next(g)) {
    const RowBlocks blocks(s.rows, most_rows<V, Op>(g.vectors));
    const int64_t width = g.vectors * L;
    TileCall<T> tile{};
    tile.k = s.w.k;
    tile.a_step = 1;
    tile.b = walk.weights(g) + g.vector % s.w.width * L;
    tile.b_step = s.w.b_step;
    tile.b_panel = s.w.b_panel;
    tile.accumulate = s.start_at_carry;
    tile.out = scratch.tile;
    tile.out_row = width * g.panels;
    tile.out_panel = width;
    int64_t row = 0;
    for (int64_t block = 0; block < blocks.count; row += blocks.size(block++)) {
      const int64_t rows = blocks.size(block);
      walk.look_ahead(g, block, blocks.count, tile);
      tile.a = a + row;
      if (s.start_at_carry) load_carry<V>(s, g, row, rows, scratch.tile);
      if (fetching_pays(g, rows, s.w.k, kFetchBackwardK)) {
        list_gradients<V, Grad>(s, g, row, rows, lines, tile);
        run_tile<V, Op, true>(g, rows, tile);
      } else {
        run_tile<V, Op>(g, rows, tile);
      }
      finish_gradients<V, Grad>(s, g, row, rows, scratch.tile, finishing);
    }
  }
  finishing.rest(s);
}
