// The kernels of one arithmetic in tiles. Included inside the namespace of its file, after the
// bodies of cells, products and tiles.
//
// Shapes are those of the steps and products in kernels.h; a block here is up to 32 rows of them by
// the vectors of one group: [rows][vectors][L].
#pragma once

/// Memory of two blocks: one is multiplied while the other is finished.
struct TileScratch {
  alignas(64) float tile[2][kTileFloats];
  alignas(64) float zeros[4 * F32::kLanes];
};

/// What is the same for all blocks of rows of one group.
template <class Kind>
TileProduct product_of_group(const Panels<float>& w, const Walk<float>& walk, const Group& g) {
  TileProduct p{};
  p.vectors = g.vectors;
  p.blocks = w.k / (16 * Kind::kTiles);
  // Of all of k, of which a call may have a part.
  p.right_vector = w.b_panel / w.width * 4;
  p.right = reinterpret_cast<const char*>(walk.weights(g)) + g.vector % w.width * p.right_vector;
  p.inner = w.inner;
  return p;
}

/// Points a product at rows [row, ..) of staged ones.
inline void take_rows(TileProduct& p, const TileRows& staged, const float* const* values,
                      int64_t row) {
  for (int64_t half = 0; half < 2; ++half) {
    // Without a second group the first stands in for it, unread.
    const int64_t first = half > 0 && row + 16 < staged.rows ? row + 16 : row;
    p.left[half] = staged.group(first);
    p.left_block[half] = staged.block(first);
  }
  p.marks = staged.marks ? staged.marks + row : nullptr;
  p.values = values + row;
}

/// The same for rows from pack_left_tiles: the first of 16 points at all of them.
inline void take_packed(TileProduct& p, const float* const* groups, int64_t tiles) {
  p.left[0] = p.left[1] = reinterpret_cast<const char*>(groups[0]);
  if (p.rows > 16) p.left[1] = reinterpret_cast<const char*>(groups[16]);
  p.left_block[0] = p.left_block[1] = kTileBytes * tiles;
}

inline int64_t tile_rows(int64_t left) { return left < kTileRowsAtOnce ? left : kTileRowsAtOnce; }

template <class Cell>
struct CellFinisher {
  const ForwardStep<float>* step;
  Group group;
  int64_t first;
  const float* tile;
  const float* pre;
  Finishing<F32, Cell, ForwardStep<float>>* finishing;
  void row(int64_t r) const {
    const int64_t width = group.vectors * F32::kLanes;
    finish_block<F32, Cell>(*step, group, first + r, 1, tile + r * width, pre + r * width,
                            *finishing);
  }
};

template <class Kind, class Cell>
void tiled_forward(const ForwardStep<float>& s) {
  constexpr int L = F32::kLanes;
  TileScratch scratch;
  for (float& zero : scratch.zeros) zero = 0;
  TileUnit unit;
  const TileRows staged = stage_tiles<Kind>(s.w, s.entering(), s.rows);
  Finishing<F32, Cell, ForwardStep<float>> finishing;
  Deferred<CellFinisher<Cell>> before;
  int buffer = 0;
  Walk<float> walk(s.w, 0);
  Group g;
  while (walk.next(g)) {
    const int64_t width = g.vectors * L;
    const float* pre = s.pre + (g.vector - s.w.first) * s.pre_rows * L + s.pre_first * width;
    TileProduct p = product_of_group<Kind>(s.w, walk, g);
    p.start = scratch.zeros;
    p.out_row = width * 4;
    for (int64_t row = 0; row < s.rows; row += kTileRowsAtOnce, buffer ^= 1) {
      p.rows = tile_rows(s.rows - row);
      p.out = scratch.tile[buffer];
      take_rows(p, staged, s.entering(), row);
      run_rows<Kind>(unit, p, before);
      before.set({&s, g, row, p.out, pre + row * width, &finishing}, p.rows);
    }
  }
  before.rest();
  finishing.rest(s);
  end_streams<F32>(s);
}

template <class Grad>
struct GradFinisher {
  const BackwardStep<float>* step;
  Group group;
  int64_t first;
  const float* tile;
  Finishing<F32, Grad, BackwardStep<float>>* finishing;
  void row(int64_t r) const {
    const float* at = tile + r * group.vectors * F32::kLanes;
    finish_gradients<F32, Grad>(*step, group, first + r, 1, at, *finishing);
  }
};

template <class Kind, class Grad>
void tiled_backward(const BackwardStep<float>& s) {
  if (s.w.k == 0) return backward_step<F32, Grad, Exact<F32>>(s);
  constexpr int L = F32::kLanes;
  TileScratch scratch;
  for (float& zero : scratch.zeros) zero = 0;
  TileUnit unit;
  const TileRows staged = stage_tiles<Kind>(s.w, s.a, s.rows);
  Finishing<F32, Grad, BackwardStep<float>> finishing;
  Deferred<GradFinisher<Grad>> before;
  int buffer = 0;
  Walk<float> walk(s.w, 0);
  Group g;
  while (walk.next(g)) {
    TileProduct p = product_of_group<Kind>(s.w, walk, g);
    p.out_row = g.vectors * L * 4;
    p.start = scratch.zeros;
    for (int64_t row = 0; row < s.rows; row += kTileRowsAtOnce, buffer ^= 1) {
      p.rows = tile_rows(s.rows - row);
      p.out = scratch.tile[buffer];
      if (s.start_at_carry) {
        load_carry<F32>(s, g, row, p.rows, p.out);
        p.start = p.out;
        p.start_row = p.out_row;
      }
      take_rows(p, staged, s.a, row);
      run_rows<Kind>(unit, p, before);
      before.set({&s, g, row, p.out, &finishing}, p.rows);
    }
  }
  before.rest();
  finishing.rest(s);
}

struct ColumnFinisher {
  const ProductCall<float>* call;
  Group group;
  int64_t first;
  float* tile;
  void row(int64_t r) const {
    const int64_t width = group.vectors * F32::kLanes;
    float* const at = tile + r * width;
    for (int64_t n = 0; call->bias && n < width; n += F32::kLanes) {
      const F32 bias = F32::load(call->bias + group.vector * F32::kLanes + n);
      (F32::load(at + n) + bias).store(at + n);
    }
    store_columns<F32>(*call, group, first + r, 1, at);
  }
};

/// Rows of c that lie evenly apart are read and written as tiles, where all columns are there.
/// Returns the bytes from one to the next, else 0.
inline int64_t even_rows(const ProductCall<float>& call, const Group& g, int64_t row,
                         int64_t rows) {
  if ((g.vector + g.vectors) * F32::kLanes > call.columns) return 0;
  const auto address = [&](int64_t r) { return reinterpret_cast<int64_t>(call.c[row + r]); };
  const int64_t step = rows > 1 ? address(1) - address(0) : 64;
  for (int64_t r = 1; r < rows; ++r) {
    if (address(r) - address(r - 1) != step) return 0;
  }
  return step;
}

/// Sets where a block of rows starts and where its output goes, for some vectors of a panel's
/// group; returns whether that is scratch memory.
inline bool place_block(const ProductCall<float>& call, const Group& panel, const Group& g,
                        int64_t row, TileScratch& scratch, float* tile, TileProduct& p) {
  p.start = scratch.zeros;
  p.start_row = 0;
  if (!call.c) {
    const int64_t width = panel.vectors * F32::kLanes;
    const int64_t before = panel.vector - call.w.first, inside = g.vector - panel.vector;
    p.out = call.pre + (before * call.rows + inside) * F32::kLanes + row * width;
    p.out_row = width * 4;
    return false;
  }
  const int64_t width = g.vectors * F32::kLanes;
  const int64_t even = call.bias ? 0 : even_rows(call, g, row, p.rows);
  p.out = even ? call.c[row] + g.vector * F32::kLanes : tile;
  p.out_row = even ? even : width * 4;
  if (call.accumulate) {
    if (!even) load_columns<F32>(call, g, row, p.rows, tile);
    p.start = p.out;
    p.start_row = p.out_row;
  }
  return !even;
}

/// All vectors for rows [first, first + count).
template <class Kind>
void tiled_product_rows(const ProductCall<float>& call, int64_t first, int64_t count) {
  TileScratch scratch;
  for (float& zero : scratch.zeros) zero = 0;
  TileUnit unit;
  const bool packed = call.a_step != 1;
  TileRows staged{};
  if (!packed) staged = stage_tiles<Kind>(call.w, call.a + first, count);
  Deferred<ColumnFinisher> before;
  int buffer = 0;
  // Two vectors of the weights stay in L1 while all rows pass; one tile of rows takes a panel.
  const int64_t at_once = count > 16 ? 2 : kColumnWidth;
  Walk<float> walk(call.w, 0);
  Group panel;
  while (walk.next(panel)) {
    for (int64_t n = 0; n < panel.vectors; n += at_once) {
      const Group g{panel.vector + n, fewer(at_once, panel.vectors - n), 1};
      TileProduct p = product_of_group<Kind>(call.w, walk, g);
      for (int64_t row = 0; row < count; row += kTileRowsAtOnce, buffer ^= 1) {
        p.rows = tile_rows(count - row);
        float* const tile = scratch.tile[buffer];
        const bool scattered = place_block(call, panel, g, first + row, scratch, tile, p);
        if (packed) {
          take_packed(p, call.a + first + row, Kind::kTiles);
        } else {
          take_rows(p, staged, call.a + first, row);
        }
        run_rows<Kind>(unit, p, before);
        before.set({&call, g, first + row, tile}, scattered ? p.rows : 0);
      }
    }
  }
  before.rest();
}

template <class Kind>
void tiled_product(const ProductCall<float>& call) {
  const int64_t most = call.a_step != 1 ? call.rows : call.w.staging.rows;
  for (int64_t row = 0; row < call.rows; row += most) {
    tiled_product_rows<Kind>(call, row, call.rows - row < most ? call.rows - row : most);
  }
}

template <class Kind>
constexpr Kernels<float> tiled_table() {
  Kernels<float> table = common_table<F32>();
  table.product = tiled_product<Kind>;
  table.forward[kModeRelu] = tiled_forward<Kind, PlainCell<F32, relu<F32>>>;
  table.forward[kModeTanh] = tiled_forward<Kind, PlainCell<F32, tanh<F32>>>;
  table.forward[kModeLstm] = tiled_forward<Kind, LstmCell<F32>>;
  table.forward[kModeGru] = tiled_forward<Kind, GruCell<F32>>;
  table.forward_cell[kCellPlain] = tiled_forward<Kind, CellWithOptions<F32, 1>>;
  table.forward_cell[kCellLstm] = tiled_forward<Kind, CellWithOptions<F32, 4>>;
  table.forward_cell[kCellGru] = tiled_forward<Kind, CellWithOptions<F32, 3>>;
  table.forward_cell[kCellProjectedGru] = table.forward_cell[kCellGru];
  table.forward_cell[kCellReset] = tiled_forward<Kind, CellWithOptions<F32, 2, 3>>;
  table.forward_cell[kCellCandidate] = tiled_forward<Kind, CellWithOptions<F32, 1, 3, 2>>;
  table.backward_cell = tiled_backward<Kind, GradWithOptions<F32>>;
  table.backward[kModeRelu] = tiled_backward<Kind, ReluGrad<F32>>;
  table.backward[kModeTanh] = tiled_backward<Kind, TanhGrad<F32>>;
  table.backward[kModeLstm] = tiled_backward<Kind, LstmGrad<F32>>;
  table.backward[kModeGru] = tiled_backward<Kind, GruGrad<F32>>;
  table.big = {.form = Kind::kForm,
               .span = kSumSpan,
               .pack_a = pack_left_tiles<Kind>,
               .pack_b = pack_right_tiles<Kind>,
               .product = tiled_product<Kind>};
  return table;
}
