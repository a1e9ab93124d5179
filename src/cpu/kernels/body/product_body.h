// The register tile and the products on it. Every output has the order of sum_order.h, so no tile
// shape changes a bit. Included inside the namespace of an instruction set.
#pragma once

inline int64_t fewer(int64_t a, int64_t b) { return a < b ? a : b; }

/// One tile: R rows by P panels of N vectors.
template <class T>
struct TileCall {
  const T* const* a;
  int64_t a_step;
  int64_t k;
  const T* b;
  int64_t b_step, b_panel;
  bool accumulate;       // out begins as it is, else at 0
  const int64_t* spans;  // as in ProductCall
  T* out;
  int64_t out_row, out_panel;
  const T* ahead;  // what the second cache should hold next: one line a k, until those of `lines`
  int64_t ahead_step;
  const T* const* lines;  // fetched by the last k, one each: what the tile's rows need when it ends
  int64_t line_count;     // at most k; only tiles that fetch look at them
};

/// The sums of a tile of R rows by P panels of N vectors, in registers.
template <class V, class Op, int R, int N, int P>
struct TileSums {
  using T = typename V::T;
  static constexpr int M = P * N;
  V at[R][M];

  /// Adds the products of one element of the weights at `b` and the numbers a[.][k].
  __attribute__((always_inline)) void multiply(const T* const* a, int64_t k, const T* b,
                                               int64_t b_panel) {
#pragma GCC unroll 8
    for (int part = 0; part < Op::kParts; ++part) {
      V w[M];
#pragma GCC unroll 8
      for (int n = 0; n < M; ++n) {
        w[n] = Op::part(b + (n / N) * b_panel + n % N * V::kLanes, part);
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const V x = V::broadcast(a[r][k + Op::number(part)]);
#pragma GCC unroll 8
        for (int n = 0; n < M; ++n) at[r][n] = Op::add(x, w[n], at[r][n]);
      }
    }
  }
  /// What follows the last element: a scale for each row at a[.][k] and for each column at `b`.
  void scale(const T* const* a, int64_t k, const T* b, int64_t b_step, int64_t b_panel) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int n = 0; n < M; ++n) {
        const T* w = b + (n / N) * b_panel + n % N * V::kLanes;
        at[r][n] = Op::scaled(at[r][n], a[r][k], w, b_step);
      }
    }
  }
  void clear() {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int n = 0; n < M; ++n) at[r][n] = V::broadcast(0);
    }
  }
  /// Adds what lies at `place(r, n)`: this is the later term.
  template <class Place>
  void add(const Place& place) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int n = 0; n < M; ++n) at[r][n] = V::load(place(r, n)) + at[r][n];
    }
  }
  template <class Place>
  void store(const Place& place) const {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int n = 0; n < M; ++n) at[r][n].store(place(r, n));
    }
  }
};

template <class V, class Op, bool kFetches, int R, int N, int P>
void tile(const TileCall<typename V::T>& call) {
  using T = typename V::T;
  constexpr int L = V::kLanes;
  TileSums<V, Op, R, N, P> sums;
  alignas(64) T span_sums[R * P * N * L];
  const T* a[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) a[r] = call.a[r];
  const T* b = call.b;
  const int64_t a_step = call.a_step * Op::kParts, a_end = call.k * a_step;
  const int64_t b_step = call.b_step, b_panel = call.b_panel, ahead_step = call.ahead_step;
  // Two loops, as one with both kinds of fetching has too few registers for addresses.
  const int64_t plain = kFetches ? a_end - call.line_count * a_step : a_end;
  const T* ahead = call.ahead;
  const T* const* line = call.lines;
  int64_t k = 0;
  const auto chain = [&](int64_t elements) __attribute__((always_inline)) {
    const int64_t end = k + elements * a_step;
    const int64_t before = !kFetches || end < plain ? end : plain;
    for (; k < before; k += a_step, b += b_step, ahead += ahead_step) {
      __builtin_prefetch(ahead, 0, 2);
      sums.multiply(a, k, b, b_panel);
    }
    if constexpr (kFetches) {
      for (; k < end; k += a_step, b += b_step, ++line) {
        __builtin_prefetch(*line, 1);
        sums.multiply(a, k, b, b_panel);
      }
    }
  };
  const auto out = [&](int r, int n) __attribute__((always_inline)) {
    return call.out + r * call.out_row + (n / N) * call.out_panel + n % N * L;
  };
  const auto in_span = [&](int r, int n) __attribute__((always_inline)) {
    return span_sums + (r * P * N + n) * L;
  };
  bool begun = call.accumulate;
  const int64_t* given = call.spans;
  int64_t left = call.k;
  do {
    int64_t span = given ? *given++ : fewer(left, Op::kSums.span);
    left -= span;
    for (bool inside = false;; inside = true) {
      const int64_t block = fewer(span, Op::kSums.block);
      span -= block;
      sums.clear();
      chain(block);
      if (inside) sums.add(in_span);
      if (span == 0) break;
      sums.store(in_span);
    }
    if constexpr (Op::kScaled) sums.scale(a, a_end, b, b_step, b_panel);
    if (begun) sums.add(out);
    sums.store(out);
    begun = true;
  } while (left > 0);
}

/// Rows of the largest tile with N vectors: accumulators, N weights and a broadcast fit the
/// registers (without a broadcast of its own where it is a memory operand).
template <class V, int N>
constexpr int kTileRows = V::kRegisters == 32 ? (N == 4 ? 6 : 8)
                                              : (N == 4   ? 3
                                                 : N == 3 ? 4
                                                 : N == 2 ? 6
                                                          : 8);
constexpr int kMostRows = 8, kMostVectors = 4, kMostPanels = 2;

/// Rows of the largest tile of so many vectors.
template <class V>
int64_t most_rows(int64_t vectors) {
  constexpr int kRows[kMostVectors] = {kTileRows<V, 1>, kTileRows<V, 2>, kTileRows<V, 3>,
                                       kTileRows<V, 4>};
  return kRows[vectors - 1];
}

/// What finishing a tile will read and write, by cache lines.
template <class T>
struct Lines {
  static constexpr int64_t kNumbers = 64 / sizeof(T);
  static constexpr int kMostOfOne = 10;  // lstm back: gates, their gradients, c_prev, dy
  const T* at[kMostRows * kMostVectors * kMostOfOne];
  int64_t count = 0;

  void add(const T* line) { at[count++] = line; }
  void add_gates(const T* row, int64_t gates, int64_t units) {
    for (int64_t gate = 0; gate < gates; ++gate) add(row + gate * units);
  }
  void give_to(TileCall<T>& tile) const {
    tile.lines = at;
    tile.line_count = count < tile.k ? count : tile.k;
  }
};

template <class V, class Op, bool kFetches>
struct Tiles {
  using T = typename V::T;
  using Function = void (*)(const TileCall<T>&);

  /// The tile of R rows, or a smaller one where there is none so large.
  template <int R, int N>
  static constexpr Function kOf =
      tile<V, Op, kFetches && (R > 1), (kTileRows<V, N> >= R ? R : 3), N, 1>;

  template <int N>
  static void run_rows(int64_t rows, const TileCall<T>& call) {
    static constexpr Function kByRows[kMostRows] = {kOf<1, N>, kOf<2, N>, kOf<3, N>, kOf<4, N>,
                                                    kOf<5, N>, kOf<6, N>, kOf<7, N>, kOf<8, N>};
    kByRows[rows - 1](call);
  }
  static void run(int64_t rows, int64_t vectors, const TileCall<T>& call) {
    switch (vectors) {
      case 1:
        return run_rows<1>(rows, call);
      case 2:
        return run_rows<2>(rows, call);
      case 3:
        return run_rows<3>(rows, call);
      default:
        return run_rows<4>(rows, call);
    }
  }
  /// One row alone has too few chains to keep the multipliers busy: two panels at once.
  static void run_pair(int64_t vectors, const TileCall<T>& call) {
    static constexpr Function kByVectors[kMostVectors] = {
        tile<V, Op, false, 1, 1, 2>, tile<V, Op, false, 1, 2, 2>, tile<V, Op, false, 1, 3, 2>,
        tile<V, Op, false, 1, 4, 2>};
    kByVectors[vectors - 1](call);
  }
};

/// Vectors that a tile takes at once: up to the end of a panel, or two whole panels for one row.
struct Group {
  int64_t vector, vectors, panels;
};

/// Walks the vectors of a call in groups, up or down.
template <class T>
class Walk {
 public:
  Walk(const Panels<T>& w, int64_t rows)
      : w_(w), pairs_(rows == 1), at_(w.reverse ? w.last : w.first) {}
  bool next(Group& group) {
    if (w_.reverse ? at_ <= w_.first : at_ >= w_.last) return false;
    if (w_.reverse) {
      const int64_t begin = (at_ - 1) / w_.width * w_.width;
      group = {begin < w_.first ? w_.first : begin, 0, 1};
      group.vectors = at_ - group.vector;
      if (pairs_ && group.vectors == w_.width && begin - w_.width >= w_.first) {
        group.vector -= w_.width;
        group.panels = 2;
      }
      at_ = group.vector;
      return true;
    }
    const int64_t room = w_.width - at_ % w_.width;
    group = {at_, room < w_.last - at_ ? room : w_.last - at_, 1};
    if (pairs_ && group.vectors == w_.width && at_ + 2 * w_.width <= w_.last) group.panels = 2;
    at_ += group.vectors * group.panels;
    return true;
  }
  const T* weights(const Group& group) const { return w_.b + group.vector / w_.width * w_.b_panel; }
  /// Lets row block `block` of `blocks` fetch its part of the panel that comes after the group's.
  void look_ahead(const Group& group, int64_t block, int64_t blocks, TileCall<T>& tile) const {
    const bool more = w_.reverse ? at_ > w_.first : at_ < w_.last;
    const int64_t step = w_.b_step / blocks;
    tile.ahead = tile.b;
    tile.ahead_step = 0;
    // One row alone reads every panel once: there is no time to fetch in.
    if (!more || pairs_ || step == 0) return;
    const T* next = weights(group) + (w_.reverse ? -w_.b_panel : w_.b_panel);
    tile.ahead = next + block * step * w_.k;
    tile.ahead_step = step;
  }

 private:
  const Panels<T>& w_;
  bool pairs_;
  int64_t at_;
};

/// Splits `rows` into the fewest blocks of at most `most`, as even as can be.
struct RowBlocks {
  int64_t count, small, large;  // the first `large` blocks have one row more than `small`
  RowBlocks(int64_t rows, int64_t most)
      : count((rows + most - 1) / most),
        small(count ? rows / count : 0),
        large(rows - small * count) {}
  int64_t size(int64_t block) const { return small + (block < large ? 1 : 0); }
};

template <class V>
inline V load_some(const typename V::T* p, int64_t n) {
  return n >= V::kLanes ? V::load(p) : V::load(p, n);
}
template <class V>
inline void store_some(V v, typename V::T* p, int64_t n) {
  if (n >= V::kLanes) {
    v.store(p);
  } else {
    v.store(p, n);
  }
}

/// A tile with little to multiply ends before what it would fetch could pay.
inline bool fetching_pays(const Group& g, int64_t rows, int64_t k, int64_t shortest) {
  return k >= shortest && rows * g.vectors >= 12;
}

/// Room of one tile in memory.
template <class T, int L>
struct Scratch {
  alignas(64) T tile[kMostRows * kMostVectors * L];
};

template <class V>
void load_columns(const ProductCall<typename V::T>& call, const Group& g, int64_t row, int64_t rows,
                  typename V::T* tile) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t n = 0; n < g.vectors * g.panels; ++n, tile += V::kLanes) {
      const int64_t column = (g.vector + n) * V::kLanes;
      load_some<V>(call.c[row + r] + column, call.columns - column).store(tile);
    }
  }
}

template <class V>
void store_columns(const ProductCall<typename V::T>& call, const Group& g, int64_t row,
                   int64_t rows, const typename V::T* tile) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t n = 0; n < g.vectors * g.panels; ++n, tile += V::kLanes) {
      const int64_t column = (g.vector + n) * V::kLanes;
      if (column < call.columns) {
        store_some<V>(V::load(tile), call.c[row + r] + column, call.columns - column);
      }
    }
  }
}

/// Rows [row, row + rows) of a call, as staged by the operation.
template <class T>
struct StagedBlock {
  const T* const* a;
  int64_t row, rows;
};

/// Whether a group's columns are whole vectors of C and its rows lie at one distance, so that a
/// tile may begin and end in C itself.
template <class T>
bool lies_in_c(const ProductCall<T>& call, const Group& g, int64_t row, int64_t rows, int64_t lanes,
               int64_t& distance) {
  if ((g.vector + g.vectors * g.panels) * lanes > call.columns) return false;
  distance = rows > 1 ? call.c[row + 1] - call.c[row] : 0;
  for (int64_t r = 2; r < rows; ++r) {
    if (call.c[row + r] - call.c[row] != r * distance) return false;
  }
  return true;
}

template <class V, class Op, bool kFetches = false>
void run_tile(const Group& g, int64_t rows, const TileCall<typename V::T>& tile) {
  if (g.panels == 2) {
    Tiles<V, Op, kFetches>::run_pair(g.vectors, tile);
  } else {
    Tiles<V, Op, kFetches>::run(rows, g.vectors, tile);
  }
}

/// Adds the bias of a group's columns to its tile.
template <class V>
void add_bias(const typename V::T* bias, const Group& g, int64_t rows,
              const TileCall<typename V::T>& tile) {
  for (int64_t r = 0; r < rows; ++r) {
    typename V::T* const out = tile.out + r * tile.out_row;
    for (int64_t n = 0; n < g.vectors * g.panels * V::kLanes; n += V::kLanes) {
      (V::load(out + n) + V::load(bias + n)).store(out + n);
    }
  }
}

/// Column form.
template <class V, class Op>
void column_block(const ProductCall<typename V::T>& call, const Group& g, int64_t row, int64_t rows,
                  TileCall<typename V::T> tile, Scratch<typename V::T, V::kLanes>& scratch) {
  const int64_t width = g.vectors * V::kLanes;
  int64_t distance = 0;
  const bool whole = lies_in_c(call, g, row, rows, V::kLanes, distance);
  tile.out = whole ? call.c[row] + g.vector * V::kLanes : scratch.tile;
  tile.out_row = whole ? distance : width * g.panels;
  tile.out_panel = width;
  if (whole) {
    // A line of a C that is larger than the caches comes while the tile multiplies.
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t n = 0; n < width * g.panels; n += V::kLanes) {
        __builtin_prefetch(tile.out + r * distance + n, 1);
      }
    }
  }
  if (call.accumulate && !whole) load_columns<V>(call, g, row, rows, scratch.tile);
  tile.accumulate = call.accumulate;
  run_tile<V, Op>(g, rows, tile);
  if (call.bias) add_bias<V>(call.bias + g.vector * V::kLanes, g, rows, tile);
  if (!whole) store_columns<V>(call, g, row, rows, scratch.tile);
}

template <class V, class Op>
void product_block(const ProductCall<typename V::T>& call, const Group& g,
                   const StagedBlock<typename V::T>& block, TileCall<typename V::T> tile,
                   Scratch<typename V::T, V::kLanes>& scratch) {
  const int64_t width = g.vectors * V::kLanes, row = block.row, rows = block.rows;
  tile.a = block.a;
  if (call.c) return column_block<V, Op>(call, g, row, rows, tile, scratch);
  tile.out_row = width;
  tile.out_panel = call.rows * width;
  tile.out = call.pre + (g.vector - call.w.first) * call.rows * V::kLanes + row * width;
  run_tile<V, Op>(g, rows, tile);
}

/// All vectors for rows [first, first + count).
template <class V, class Op>
void product_rows(const ProductCall<typename V::T>& call, int64_t first, int64_t count) {
  using T = typename V::T;
  constexpr int L = V::kLanes;
  Scratch<T, L> scratch;
  const bool staged = call.a_step != 1;  // by BigKernels
  const T* const* a = staged ? call.a + first : Op::stage(call.w, call.a + first, count);
  Walk<T> walk(call.w, call.rows);
  Group g;
  while (walk.next(g)) {
    const RowBlocks blocks(count, most_rows<V>(g.vectors));
    TileCall<T> tile{};
    tile.k = call.w.k;
    tile.a_step = call.a_step;
    tile.b = walk.weights(g) + g.vector % call.w.width * L;
    tile.b_step = call.w.b_step;
    tile.b_panel = call.w.b_panel;
    tile.spans = call.spans;
    int64_t row = 0;
    for (int64_t block = 0; block < blocks.count; row += blocks.size(block++)) {
      walk.look_ahead(g, block, blocks.count, tile);
      product_block<V, Op>(call, g, {a + row, first + row, blocks.size(block)}, tile, scratch);
    }
  }
}

template <class V, class Op>
void product(const ProductCall<typename V::T>& call) {
  const int64_t most = call.a_step != 1 ? call.rows : Op::most_rows(call.w, call.rows);
  for (int64_t row = 0; row < call.rows; row += most) {
    product_rows<V, Op>(call, row, call.rows - row < most ? call.rows - row : most);
  }
}

/// x in panel form, for gates and for columns.
template <class V>
void skip(const SkipCall<typename V::T>& call) {
  constexpr int L = V::kLanes;
  const Panels<typename V::T> w{nullptr, 0, 0, 0, call.width, call.first, call.last, false, 0, {}};
  Walk<typename V::T> walk(w, 0);
  Group g;
  while (walk.next(g)) {
    typename V::T* out = call.pre + (g.vector - call.first) * call.rows * L;
    for (int64_t r = 0; r < call.rows; ++r) {
      for (int64_t n = 0; n < g.vectors; ++n, out += L) {
        const int64_t vector = g.vector + n;
        const int64_t unit = (call.gates > 1 ? vector / call.gates : vector) * L;
        const V x =
            unit < call.units ? load_some<V>(call.x[r] + unit, call.units - unit) : V::broadcast(0);
        x.store(out);
      }
    }
  }
}
