// One forward step: the recurrent product, and the cell finished while its tile is in L1. Included
// inside the namespace of an instruction set.
//
// | what                   | shape                                           |
// |------------------------|-------------------------------------------------|
// | s.h_prev, s.c_prev     | [rows] pointers to rows of [U]                  |
// | s.operand, s.mask      | the same, where they are not null               |
// | s.h, s.c               | the same, written                               |
// | s.pre                  | [panel][pre_rows][G][L], the input's side       |
// | s.gates                | [rows] pointers to rows of [G][U] (gru: [4][U]) |
// | tile, pre, bias of one | [G][L], of the units of one row                 |
//
// lstm: c = f c_prev + i g, h = o tanh(c). gru: h = z h_prev + (1 - z) n, n = tanh(x side + r * (h
// side)), each side with a bias. Plain: h = tanh or relu of the sum.
#pragma once

/// The sum that goes into a gate's activation: recurrent side, input side, bias.
template <class V>
inline V pre_activation(const CellPlace<typename V::T>& at, int gate) {
  const int64_t n = int64_t{gate} * V::kLanes;
  return (V::load(at.tile + n) + V::load(at.pre + n)) + V::load(at.bias + n);
}

/// A state as it will be stored; doubles are stored as they are.
template <class V>
inline V rounded(Storage storage, V a) {
  if constexpr (sizeof(typename V::T) == sizeof(float)) {
    if (storage == kStorageHalf) return round_half(a);
    if (storage == kStorageBf16) return nearest_bf16(a);
  }
  return a;
}

template <class V>
struct LstmCell {
  using T = typename V::T;
  static constexpr int kGates = 4;

  static void save(const ForwardStep<T>& s, const CellPlace<T>& at, V i, V f, V g, V o) {
    T* gates = s.gates[at.row] + at.unit;
    keep<V>(s, i, gates, at.count);
    keep<V>(s, f, gates + s.units, at.count);
    keep<V>(s, g, gates + 2 * s.units, at.count);
    keep<V>(s, o, gates + 3 * s.units, at.count);
  }
  static void list(const ForwardStep<T>& s, int64_t row, int64_t unit, Lines<T>& lines) {
    if (!s.streams) lines.add_gates(s.gates[row] + unit, 4, s.units);
    lines.add(s.c[row] + unit);
    lines.add(s.h[row] + unit);
  }
  /// The cell and o.
  static Begun<V> begin(const ForwardStep<T>& s, const CellPlace<T>& at) {
    const V i = sigmoid(pre_activation<V>(at, 0));
    const V f = sigmoid(pre_activation<V>(at, 1));
    const V g = tanh(pre_activation<V>(at, 2));
    const V o = sigmoid(pre_activation<V>(at, 3));
    V c = fma(f, load_some<V>(s.c_prev[at.row] + at.unit, at.count), i * g);
    if (s.clip) {
      const V low = V::broadcast(s.clip_low), high = V::broadcast(s.clip_high);
      c = select_less(c, low, low, select_less(high, c, high, c));
    }
    c = rounded(s.round_c, c);
    if (s.gates) save(s, at, i, f, g, o);
    store_some<V>(c, s.c[at.row] + at.unit, at.count);
    return {c, o};
  }
  static void end(const ForwardStep<T>& s, const UnitPlace& at, const Begun<V>& begun) {
    const V h = rounded(s.round_h, begun.second * tanh(begun.first));
    store_some<V>(h, s.h[at.row] + at.unit, at.count);
  }
};

template <class V>
struct GruCell {
  using T = typename V::T;
  static constexpr int kGates = 3;

  static void list(const ForwardStep<T>& s, int64_t row, int64_t unit, Lines<T>& lines) {
    if (!s.streams) lines.add_gates(s.gates[row] + unit, 4, s.units);
    lines.add(s.h[row] + unit);
  }
  /// The sum of n, and z.
  static Begun<V> begin(const ForwardStep<T>& s, const CellPlace<T>& at) {
    constexpr int L = V::kLanes;
    const V r = sigmoid(pre_activation<V>(at, 0));
    const V z = sigmoid(pre_activation<V>(at, 1));
    // The two sides of n have a bias each.
    const V hn = V::load(at.tile + 2 * L) + V::load(s.hn_bias + at.unit);
    if (s.gates) {
      T* gates = s.gates[at.row] + at.unit;
      keep<V>(s, r, gates, at.count);
      keep<V>(s, z, gates + s.units, at.count);
      keep<V>(s, hn, gates + 3 * s.units, at.count);
    }
    return {fma(r, hn, V::load(at.pre + 2 * L) + V::load(at.bias + 2 * L)), z};
  }
  static void end(const ForwardStep<T>& s, const UnitPlace& at, const Begun<V>& begun) {
    const V n = tanh(begun.first), z = begun.second;
    const V old = load_some<V>(s.h_prev[at.row] + at.unit, at.count);
    // z = 1 keeps the old state exactly.
    const V h = fma(z, old, (V::broadcast(T(1)) - z) * n);
    if (s.gates) keep<V>(s, n, s.gates[at.row] + at.unit + 2 * s.units, at.count);
    store_some<V>(rounded(s.round_h, h), s.h[at.row] + at.unit, at.count);
  }
};

template <class V, V (*activation)(V)>
struct PlainCell {
  using T = typename V::T;
  static constexpr int kGates = 1;

  static void list(const ForwardStep<T>& s, int64_t row, int64_t unit, Lines<T>& lines) {
    if (!s.streams) lines.add(s.gates[row] + unit);
    lines.add(s.h[row] + unit);
  }
  static void finish(const ForwardStep<T>& s, const CellPlace<T>& at) {
    V h = activation(pre_activation<V>(at, 0));
    if (s.gates) keep<V>(s, h, s.gates[at.row] + at.unit, at.count);
    h = rounded(s.round_h, h);
    store_some<V>(h, s.h[at.row] + at.unit, at.count);
  }
};

/// A cell with options of G gates in this product, from gate `kFirst` on of `kOfAll`.
template <class V, int G, int kOfAll = G, int kFirst = 0>
struct CellWithOptions {
  using T = typename V::T;
  static constexpr int kGates = G, kAllGates = kOfAll, kFirstGate = kFirst;

  static void list(const ForwardStep<T>& s, int64_t row, int64_t unit, Lines<T>& lines) {
    // A GRU saves one more vector than it has gates.
    lines.add_gates(s.gates[row] + unit, G + (G == 3 ? 1 : 0), s.units);
    if constexpr (G == 4) lines.add(s.c[row] + unit);
    lines.add(s.h[row] + unit);
  }
  static void finish(const ForwardStep<T>& s, const CellPlace<T>& at) { s.finish(s, at); }
};

/// Whether the product has only some of a unit's gates, while the input's side has all.
template <class Cell>
constexpr bool has_some_gates() {
  if constexpr (requires { Cell::kAllGates; }) return Cell::kAllGates != Cell::kGates;
  return false;
}

/// Units of one row from `unit` on, of whose gates the product has some.
template <class V, class Cell>
CellPlace<typename V::T> place_of_some(const ForwardStep<typename V::T>& s, int64_t row,
                                       int64_t unit, const typename V::T* tile) {
  constexpr int64_t L = V::kLanes, kWidth = Cell::kAllGates * L, kGate = Cell::kFirstGate * L;
  const int64_t block = unit / L, own = block - s.w.first / Cell::kGates;
  const typename V::T* pre =
      s.pre + own * s.pre_rows * kWidth + (s.pre_first + row) * kWidth + kGate;
  return {row, unit, s.units - unit, tile, pre, s.bias + block * kWidth + kGate};
}

template <class V, class Cell>
void finish_block(const ForwardStep<typename V::T>& s, const Group& g, int64_t row, int64_t rows,
                  const typename V::T* tile, const typename V::T* pre,
                  Finishing<V, Cell, ForwardStep<typename V::T>>& finishing) {
  constexpr int L = V::kLanes;
  const int64_t width = g.vectors * L;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t p = 0; p < g.panels; ++p) {
      const typename V::T* start = pre + p * s.pre_rows * width + r * width;
      for (int64_t n = 0; n < g.vectors; n += Cell::kGates, tile += Cell::kGates * L) {
        const int64_t vector = g.vector + p * g.vectors + n, unit = vector / Cell::kGates * L;
        if constexpr (has_some_gates<Cell>()) {
          finishing.add(s, place_of_some<V, Cell>(s, row + r, unit, tile));
        } else {
          finishing.add(s, CellPlace<typename V::T>{row + r, unit, s.units - unit, tile,
                                                    start + n * L, s.bias + vector * L});
        }
      }
    }
  }
}

/// Lists the cache lines to prefetch while a tile multiplies: what a pass that saves will write,
/// and the input's side of the next tile, which lies behind this one's at `pre`. A vector is a
/// cache line here: the tiles of narrower ones are too small to gain by it.
template <class V, class Cell>
void list_block(const ForwardStep<typename V::T>& s, const Group& g, int64_t row, int64_t rows,
                const typename V::T* pre, Lines<typename V::T>& lines,
                TileCall<typename V::T>& tile) {
  constexpr int64_t L = V::kLanes;
  const int64_t first = g.vector / Cell::kGates * L, last = first + g.vectors / Cell::kGates * L;
  lines.count = 0;
  for (int64_t r = row; r < row + rows; ++r) {
    for (int64_t unit = first; unit < last; unit += L) Cell::list(s, r, unit, lines);
  }
  // The next rows of this panel begin behind these, be they of this step or of the one after.
  const int64_t size = rows * g.vectors * L;
  for (int64_t n = 0; n < size; n += L) lines.add(pre + size + n);
  lines.give_to(tile);
}

template <class V, class Cell, class Op>
void forward_step(const ForwardStep<typename V::T>& s) {
  using T = typename V::T;
  constexpr int L = V::kLanes;
  constexpr bool kLineVectors = L == Lines<T>::kNumbers && !has_some_gates<Cell>();
  Scratch<T, L> scratch;
  Lines<T> lines;
  const T* const* a = Op::stage(s.w, s.entering(), s.rows);
  Finishing<V, Cell, ForwardStep<T>> finishing;
  Walk<T> walk(s.w, s.rows);
  Group g;
  while (walk.next(g)) {
    const RowBlocks blocks(s.rows, most_rows<V, Op>(g.vectors));
    const int64_t width = g.vectors * L;
    const T* pre = s.pre + (g.vector - s.w.first) * s.pre_rows * L + s.pre_first * width;
    TileCall<T> tile{};
    tile.k = s.w.k;
    tile.a_step = 1;
    tile.b = walk.weights(g) + g.vector % s.w.width * L;
    tile.b_step = s.w.b_step;
    tile.b_panel = s.w.b_panel;
    tile.out = scratch.tile;
    tile.out_row = width * g.panels;
    tile.out_panel = width;
    int64_t row = 0;
    for (int64_t block = 0; block < blocks.count; row += blocks.size(block++)) {
      const int64_t rows = blocks.size(block);
      walk.look_ahead(g, block, blocks.count, tile);
      tile.a = a + row;
      if (kLineVectors && s.gates && fetching_pays(g, rows, s.w.k, kFetchForwardK)) {
        list_block<V, Cell>(s, g, row, rows, pre + row * width, lines, tile);
        run_tile<V, Op, kLineVectors>(g, rows, tile);
      } else {
        run_tile<V, Op>(g, rows, tile);
      }
      finish_block<V, Cell>(s, g, row, rows, scratch.tile, pre + row * width, finishing);
    }
  }
  finishing.rest(s);
  end_streams<V>(s);
}
