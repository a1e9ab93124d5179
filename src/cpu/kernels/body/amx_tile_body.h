// Products in tiles: blocks of at most 32 rows by one panel. An output takes its blocks of 32
// values in ascending order, whatever the shape. Included inside the namespace of its file.
//
// | what       | shape                                                      |
// |------------|------------------------------------------------------------|
// | left       | up to 2 groups of 16 rows: [blocks][tile][rows][16 pairs]  |
// | right      | [vector][blocks][tile][16 pairs][L] of a panel             |
// | start, out | [rows][vectors][L], rows start_row and out_row bytes apart |
#pragma once

constexpr int64_t kTileRowsAtOnce = 32, kTileFloats = kTileRowsAtOnce * 4 * F32::kLanes;

/// One block of rows and the vectors of one group; steps are bytes.
struct TileProduct {
  int64_t rows, vectors, blocks;
  const char* left[2];  // the first 16 rows, and the others
  int64_t left_block[2];
  const char* right;
  int64_t right_vector;
  const float* start;
  int64_t start_row;
  float* out;
  int64_t out_row;
  // Rows that have blocks apart are marked; these are the values themselves.
  const char* marks;
  const float* const* values;
  int64_t inner;
};

/// Work of the vector units that goes along while tiles multiply: the rows of the block before.
template <class Finisher>
class Deferred {
 public:
  /// The next tiles come in so many steps.
  void spread(int64_t steps) { each_ = steps ? (count_ - row_ + steps - 1) / steps : 0; }
  void step() {
    for (int64_t i = 0; i < each_ && row_ < count_; ++i) finisher_.row(row_++);
  }
  void rest() {
    while (row_ < count_) finisher_.row(row_++);
  }
  void set(const Finisher& finisher, int64_t count) {
    finisher_ = finisher;
    row_ = 0;
    count_ = count;
  }

 private:
  Finisher finisher_;
  int64_t row_ = 0, count_ = 0, each_ = 0;
};

struct NothingToFinish {
  void row(int64_t) {}
};

/// Tiles lie apart, so that their cache lines take all sets of L1, not a half or a quarter of them.
constexpr int64_t kTileRow = 64, kTileBytes = 16 * kTileRow;

/// One tile of k: the left tiles at `left` (kept from the last one unless kLoadLeft), those of the
/// right at `right`. Those of the right stay in L1 for the next rows.
template <int R, int N, bool kLoadLeft>
inline void multiply_tiles(TileUnit& unit, const TileProduct& p, const char* const (&left)[2],
                           const char* right) {
  if constexpr (kLoadLeft) unit.load_once<4>(left[0], kTileRow);
  if constexpr (kLoadLeft && R == 2) unit.load_once<5>(left[1], kTileRow);
  unit.load<6>(right, kTileRow);
  unit.dot<0, 4, 6>();
  if constexpr (R == 2) unit.dot<2, 5, 6>();
  if constexpr (N > 1) {
    unit.load<7>(right + p.right_vector, kTileRow);
    unit.dot<1, 4, 7>();
    if constexpr (R == 2) unit.dot<3, 5, 7>();
  }
  if constexpr (N > 2) {
    unit.load<6>(right + 2 * p.right_vector, kTileRow);
    unit.dot<2, 4, 6>();
  }
  if constexpr (N > 3) {
    unit.load<7>(right + 3 * p.right_vector, kTileRow);
    unit.dot<3, 4, 7>();
  }
}

template <int kTile>
void load_sum(TileUnit& unit, const TileProduct& p, int64_t n, int64_t first_row) {
  const char* const start = reinterpret_cast<const char*>(p.start + n * F32::kLanes);
  unit.load<kTile>(start + first_row * p.start_row, p.start_row);
}
template <int kTile>
void store_sum(TileUnit& unit, const TileProduct& p, int64_t n, int64_t first_row) {
  char* const out = reinterpret_cast<char*>(p.out + n * F32::kLanes);
  unit.store<kTile>(out + first_row * p.out_row, p.out_row);
}

/// R tiles of rows by N vectors from vector `n` on, for blocks [first, last).
template <class Kind, int R, int N, class Work>
void run_tiles(TileUnit& unit, const TileProduct& p, int64_t n, const int64_t (&blocks)[2],
               Work& work) {
  load_sum<0>(unit, p, n, 0);
  if constexpr (R == 2) load_sum<2>(unit, p, n, 16);
  if constexpr (N > 1) load_sum<1>(unit, p, n + 1, 0);
  if constexpr (N > 1 && R == 2) load_sum<3>(unit, p, n + 1, 16);
  if constexpr (N > 2) load_sum<2>(unit, p, n + 2, 0);
  if constexpr (N > 3) load_sum<3>(unit, p, n + 3, 0);
  const char* right = p.right + n * p.right_vector + blocks[0] * Kind::kTiles * kTileBytes;
  const char* left[2] = {p.left[0] + blocks[0] * p.left_block[0],
                         p.left[1] + blocks[0] * p.left_block[1]};
  for (int64_t block = blocks[0]; block < blocks[1]; ++block) {
    multiply_tiles<R, N, true>(unit, p, left, right);
    if constexpr (Kind::kTiles == 2) {
      const char* const low[2] = {left[0] + p.left_block[0] / 2, left[1] + p.left_block[1] / 2};
      multiply_tiles<R, N, false>(unit, p, left, right + kTileBytes);
      multiply_tiles<R, N, true>(unit, p, low, right);
    }
    left[0] += p.left_block[0];
    left[1] += p.left_block[1];
    right += Kind::kTiles * kTileBytes;
    work.step();
  }
  store_sum<0>(unit, p, n, 0);
  if constexpr (R == 2) store_sum<2>(unit, p, n, 16);
  if constexpr (N > 1) store_sum<1>(unit, p, n + 1, 0);
  if constexpr (N > 1 && R == 2) store_sum<3>(unit, p, n + 1, 16);
  if constexpr (N > 2) store_sum<2>(unit, p, n + 2, 0);
  if constexpr (N > 3) store_sum<3>(unit, p, n + 3, 0);
}

/// A group of vectors, for blocks [first, last): two tiles of rows take two vectors at once.
template <class Kind, class Work>
void run_group(TileUnit& unit, const TileProduct& p, const int64_t (&blocks)[2], Work& work) {
  if (p.rows > 16) {
    int64_t n = 0;
    for (; n + 2 <= p.vectors; n += 2) run_tiles<Kind, 2, 2>(unit, p, n, blocks, work);
    if (n < p.vectors) run_tiles<Kind, 2, 1>(unit, p, n, blocks, work);
    return;
  }
  switch (p.vectors) {
    case 1:
      return run_tiles<Kind, 1, 1>(unit, p, 0, blocks, work);
    case 2:
      return run_tiles<Kind, 1, 2>(unit, p, 0, blocks, work);
    case 3:
      return run_tiles<Kind, 1, 3>(unit, p, 0, blocks, work);
    default:
      return run_tiles<Kind, 1, 4>(unit, p, 0, blocks, work);
  }
}

/// A block of one row by multiply-adds of float32, k ascending, of weights high + low.
inline void add_apart(const TileProduct& p, int64_t row, int64_t block) {
  const float* x = p.values[row] + 32 * block;
  const int64_t left = p.inner - 32 * block, count = left < 32 ? left : 32;
  constexpr int64_t kPairs = kTileRow / 4, kLow = kTileBytes / 4;
  float* const out = reinterpret_cast<float*>(reinterpret_cast<char*>(p.out) + row * p.out_row);
  for (int64_t n = 0; n < p.vectors; ++n) {
    const auto* w =
        reinterpret_cast<const float*>(p.right + n * p.right_vector + 2 * block * kTileBytes);
    F32 sum = F32::load(out + n * F32::kLanes);
    for (int64_t k = 0; k < count; ++k) {
      const F32 high = F32::load(w + k / 2 * kPairs), low = F32::load(w + kLow + k / 2 * kPairs);
      const F32 weight = k % 2 ? high_bf16(high) + high_bf16(low) : low_bf16(high) + low_bf16(low);
      sum = fma(F32::broadcast(x[k]), weight, sum);
    }
    sum.store(out + n * F32::kLanes);
  }
}

/// One block after the other, each with the rows that have it apart. Rare, and slow.
template <class Kind>
void run_group_apart(TileUnit& unit, TileProduct p) {
  Deferred<NothingToFinish> nothing;
  for (int64_t block = 0; block < p.blocks; ++block) {
    run_group<Kind>(unit, p, {block, block + 1}, nothing);
    for (int64_t row = 0; row < p.rows; ++row) {
      if (!p.marks[row]) continue;
      const float* x = p.values[row] + 32 * block;
      const int64_t left = p.inner - 32 * block;
      // As the rows were staged: those have zeros here.
      if (Kind::apart(load_or_zero(x, left), load_or_zero(x + 16, left - 16))) {
        add_apart(p, row, block);
      }
    }
    p.start = p.out;
    p.start_row = p.out_row;
  }
}

/// All of one block of rows, while `work` goes along.
template <class Kind, class Work>
void run_rows(TileUnit& unit, const TileProduct& p, Work& work) {
  const int64_t upper = p.rows < 16 ? p.rows : 16, lower = p.rows - upper;
  unit.configure(upper, lower ? lower : upper);
  bool apart = false;
  if constexpr (Kind::kApart) {
    for (int64_t row = 0; p.marks && row < p.rows; ++row) apart = apart || p.marks[row] != 0;
  }
  if (apart) {
    run_group_apart<Kind>(unit, p);
  } else {
    work.spread(p.blocks * (lower ? (p.vectors + 1) / 2 : 1));
    run_group<Kind>(unit, p, {0, p.blocks}, work);
  }
  work.rest();
}
