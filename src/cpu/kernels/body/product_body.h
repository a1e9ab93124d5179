// Products of rows with packed weights, in tiles. Included inside the namespace of an instruction
// set.
//
// | what     | shape                                  |
// |----------|----------------------------------------|
// | call.a   | [rows] pointers to rows of k values    |
// | call.w   | [panel][k][width][L]                   |
// | call.c   | [rows] pointers to rows of [columns]   |
// | call.pre | [group][rows][vectors of the group][L] |
#pragma once

template <class V>
struct Exact;  // operand_body.h

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
  /// Lets row block `block` of `blocks` prefetch its part of the panel after the group's.
  void look_ahead(const Group& group, int64_t block, int64_t blocks, TileCall<T>& tile) const {
    const bool more = w_.reverse ? at_ > w_.first : at_ < w_.last;
    const int64_t step = w_.b_step / blocks;
    tile.ahead = tile.b;
    tile.ahead_step = 0;
    // One row alone reads every panel once: there is no time to prefetch in.
    if (!more || pairs_ || step == 0) return;
    const T* next = weights(group) + (w_.reverse ? -w_.b_panel : w_.b_panel);
    tile.ahead = next + block * step * w_.k;
    // A tile of converted weights has more k.
    tile.ahead_step = tile.k > w_.k ? step / 2 : step;
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

/// Whether a tile multiplies long enough for prefetched lines to arrive.
inline bool fetching_pays(const Group& g, int64_t rows, int64_t k, int64_t shortest) {
  return k >= shortest && rows * g.vectors >= kFetchVectors;
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
    // A C larger than the caches: its lines are prefetched while the tile multiplies.
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

/// Whether the weights are converted to Exact's before they are multiplied: by so many rows that it
/// pays, and where the memory for staged rows is free and has room.
template <class V, class Op>
bool converts_first(const ProductCall<typename V::T>& call, int64_t rows) {
  return Op::kWidens && rows >= kWidenRows && call.w.inner % 2 == 0 &&
         call.w.staging.rows >= call.w.width * V::kLanes;
}

/// The weights of a group as values: [k][vectors][L].
template <class V, class Op>
void convert(const Panels<typename V::T>& w, const Group& g, TileCall<typename V::T>& tile) {
  using T = typename V::T;
  T* out = static_cast<T*>(w.staging.memory);
  const T* from = tile.b;
  tile.b = out;
  for (int64_t element = 0; element < w.k; ++element, from += w.b_step) {
    for (int part = 0; part < Op::kParts; ++part) {
      for (int64_t n = 0; n < g.vectors; ++n, out += V::kLanes) {
        Op::part(from + n * V::kLanes, part).store(out);
      }
    }
  }
  tile.k = w.k * Op::kParts;
  tile.b_step = g.vectors * V::kLanes;
}

/// A group's columns for some rows. Inlined: called, it costs networks of 64 units 3 percent.
template <class V, class Op>
__attribute__((always_inline)) inline void product_group(
    const ProductCall<typename V::T>& call, const Walk<typename V::T>& walk, const Group& g,
    const StagedBlock<typename V::T>& all, TileCall<typename V::T> tile,
    Scratch<typename V::T, V::kLanes>& scratch) {
  const RowBlocks blocks(all.rows, most_rows<V, Op>(g.vectors));
  int64_t row = 0;
  for (int64_t block = 0; block < blocks.count; row += blocks.size(block++)) {
    walk.look_ahead(g, block, blocks.count, tile);
    product_block<V, Op>(call, g, {all.a + row, all.row + row, blocks.size(block)}, tile, scratch);
  }
}

/// All vectors for rows [first, first + count).
template <class V, class Op>
void product_rows(const ProductCall<typename V::T>& call, int64_t first, int64_t count) {
  using T = typename V::T;
  constexpr int L = V::kLanes;
  Scratch<T, L> scratch;
  const bool converts = converts_first<V, Op>(call, count);
  const bool as_is = converts || call.a_step != 1;  // staged by BigKernels
  const T* const* a = as_is ? call.a + first : Op::stage(call.w, call.a + first, count);
  Walk<T> walk(call.w, call.rows);
  Group g;
  while (walk.next(g)) {
    TileCall<T> tile{};
    tile.k = call.w.k;
    tile.a_step = call.a_step;
    tile.b = walk.weights(g) + g.vector % call.w.width * L;
    tile.b_step = call.w.b_step;
    tile.b_panel = call.w.b_panel;
    tile.spans = call.spans;
    if constexpr (Op::kWidens) {
      if (converts) {
        convert<V, Op>(call.w, g, tile);
        product_group<V, Exact<V>>(call, walk, g, {a, first, count}, tile, scratch);
        continue;
      }
    }
    product_group<V, Op>(call, walk, g, {a, first, count}, tile, scratch);
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
  const Panels<typename V::T> w{.width = call.width, .first = call.first, .last = call.last};
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
