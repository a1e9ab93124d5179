// The register tile: R rows by P panels of N vectors of columns. Every output has the order of
// sum_order.h, so no shape of a tile changes a bit. Included inside the namespace of an instruction
// set.
//
// Letters, here and in the other bodies: L lanes of a vector, N vectors, P panels, R rows of a
// tile, k the index of a sum. a[r] is a row of the left side, b a panel of packed weights:
//
// | what              | shape                                     |
// |-------------------|-------------------------------------------|
// | a                 | R pointers to rows of k values            |
// | b                 | [P][k][N][L], b_panel and b_step apart    |
// | out               | [R][P][N][L], out_row and out_panel apart |
// | sums in registers | [R][P * N] vectors of L                   |
#pragma once

constexpr int64_t fewer(int64_t a, int64_t b) { return a < b ? a : b; }

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
  const T* ahead;  // what L2 should hold next: one cache line a k, until those of `lines`
  int64_t ahead_step;
  const T* const* lines;  // prefetched by the last k, one each: what finishing the tile needs
  int64_t line_count;     // at most k; only tiles that fetch look at them
};

/// Registers of a value that enters multiply-adds.
template <class Op>
constexpr int kValueRegisters = Op::kStep / Op::kParts;

/// The sums of a tile of R rows by P panels of N vectors, in registers.
template <class V, class Op, int R, int N, int P>
struct TileSums {
  using T = typename V::T;
  static constexpr int M = P * N;
  V at[R][M];

  /// Whether the weights of an element have room beside the sums and the value that they multiply.
  /// If not, the values of all rows have, and each vector of weights is used up at once.
  static constexpr bool kHoldsWeights = R * M + M + kValueRegisters<Op> <= V::kRegisters || R > M;

  /// Adds the products of one packed element of the weights at `b` and the values a[.][k].
  __attribute__((always_inline)) void multiply(const T* const* a, int64_t k, const T* b,
                                               int64_t b_panel) {
#pragma GCC unroll 8
    for (int part = 0; part < Op::kParts; ++part) {
      if constexpr (kHoldsWeights) {
        multiply_by_rows(a, k, b, b_panel, part);
      } else {
        multiply_by_columns(a, k, b, b_panel, part);
      }
    }
  }
  __attribute__((always_inline)) void multiply_by_rows(const T* const* a, int64_t k, const T* b,
                                                       int64_t b_panel, int part) {
    V w[M];
#pragma GCC unroll 8
    for (int n = 0; n < M; ++n) w[n] = Op::part(b + (n / N) * b_panel + n % N * V::kLanes, part);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const typename Op::Value x = Op::value(a[r] + k, part);
#pragma GCC unroll 8
      for (int n = 0; n < M; ++n) at[r][n] = Op::add(x, w[n], at[r][n]);
    }
  }
  __attribute__((always_inline)) void multiply_by_columns(const T* const* a, int64_t k, const T* b,
                                                          int64_t b_panel, int part) {
    typename Op::Value x[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) x[r] = Op::value(a[r] + k, part);
#pragma GCC unroll 8
    for (int n = 0; n < M; ++n) {
      const V w = Op::part(b + (n / N) * b_panel + n % N * V::kLanes, part);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) at[r][n] = Op::add(x[r], w, at[r][n]);
    }
  }
  /// What follows the last element: of each row at a[.][k], of each column at `b`.
  void scale(const T* const* a, int64_t k, const T* b, int64_t b_step, int64_t b_panel) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int n = 0; n < M; ++n) {
        const T* w = b + (n / N) * b_panel + n % N * V::kLanes;
        at[r][n] = Op::scaled(at[r][n], a[r] + k, w, b_step);
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
  const int64_t a_step = call.a_step * Op::kStep, a_end = call.k * a_step;
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
template <class V, class Op, int N>
constexpr int rows_of_tile() {
  if (V::kRegisters == 32) return N == 4 ? static_cast<int>(kTileRows) : 8;
  constexpr int kRows[] = {8, 6, 4, 3}, kRowsOfPairs[] = {4, 3, 2, 2};
  return (kValueRegisters<Op> == 2 ? kRowsOfPairs : kRows)[N - 1];
}
constexpr int kMostRows = 8, kMostVectors = 4;
static_assert(kMostVectors == kColumnWidth, "a panel of columns is a tile wide");

/// Rows of the largest tile of so many vectors.
template <class V, class Op>
int64_t most_rows(int64_t vectors) {
  constexpr int kRows[kMostVectors] = {rows_of_tile<V, Op, 1>(), rows_of_tile<V, Op, 2>(),
                                       rows_of_tile<V, Op, 3>(), rows_of_tile<V, Op, 4>()};
  return kRows[vectors - 1];
}

/// Cache lines to prefetch: what finishing a tile will read and write.
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

  /// The tile of R rows, or the largest where there is none so large.
  template <int R, int N>
  static constexpr Function kOf =
      tile<V, Op, kFetches && (R > 1), (fewer(rows_of_tile<V, Op, N>(), R)), N, 1>;

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
  /// One row alone has too few chains to keep the FMA units busy: two panels at once.
  static void run_pair(int64_t vectors, const TileCall<T>& call) {
    static constexpr Function kByVectors[kMostVectors] = {
        tile<V, Op, false, 1, 1, 2>, tile<V, Op, false, 1, 2, 2>, tile<V, Op, false, 1, 3, 2>,
        tile<V, Op, false, 1, 4, 2>};
    kByVectors[vectors - 1](call);
  }
};
