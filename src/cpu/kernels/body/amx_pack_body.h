// Rows and columns in the form of AMX tiles: blocks of 32 values as 16 pairs of bfloat16, the even
// one in the low half. Included inside the namespace of its file.
//
// | what              | shape                                                             |
// |-------------------|-------------------------------------------------------------------|
// | staged rows       | [group of 16 rows][block][tile][rows of the group][16 pairs]      |
// | packed left side  | [block][tile][16 columns][16 pairs]                               |
// | packed right side | [vector][block][tile][16 pairs][L]                                |
#pragma once

#if defined(__AVX512BF16__)
/// 32 values as 16 pairs of adjacent ones.
inline F32 row_pairs(F32 first, F32 second) {
  return of_words(reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second.v, first.v)));
}
/// Values of two rows as 16 pairs.
inline F32 column_pairs(F32 even, F32 odd) { return pair_of(even, odd); }
#else
inline F32 row_pairs(F32 first, F32 second) {
  const __m256i a = _mm512_cvtepi32_epi16(_mm512_srli_epi32(words(round_bf16(first)), 16));
  const __m256i b = _mm512_cvtepi32_epi16(_mm512_srli_epi32(words(round_bf16(second)), 16));
  return of_words(_mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1));
}
inline F32 column_pairs(F32 even, F32 odd) {
  return of_words(
      _mm512_or_si512(_mm512_srli_epi32(words(round_bf16(even)), 16), words(round_bf16(odd))));
}
#endif

inline F32 first_values(F32 pairs) {
  return of_words(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(words(pairs))), 16));
}
inline F32 second_values(F32 pairs) {
  return of_words(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(words(pairs), 1)), 16));
}

/// Beyond this, and for NaN, three products do not give what float32 gives.
inline bool beyond_split(F32 a) {
  return _mm512_cmp_ps_mask(abs(a).v, _mm512_set1_ps(0x1p126f), _CMP_NLE_UQ) != 0;
}

inline F32 load_or_zero(const float* p, int64_t n) {
  return n > 0 ? load_some<F32>(p, n) : F32::broadcast(0);
}

/// bfloat16 on both sides: one tile a block.
struct Amx {
  static constexpr Arithmetic kForm = kAmx;
  static constexpr int64_t kTiles = 1;
  static constexpr bool kApart = false;
  static bool apart(F32, F32) { return false; }
  static void split_row(F32 first, F32 second, F32* pairs) { pairs[0] = row_pairs(first, second); }
  static void split_columns(F32 even, F32 odd, F32* pairs) { pairs[0] = column_pairs(even, odd); }
};

/// Two bfloat16 a value: a tile of high parts, then one of low parts.
struct Bf16x3 {
  static constexpr Arithmetic kForm = kBf16x3;
  static constexpr int64_t kTiles = 2;
  static constexpr bool kApart = true;
  /// Whether a block of a row is left to multiply-adds of float32.
  static bool apart(F32 first, F32 second) { return beyond_split(first) || beyond_split(second); }
  static void split_row(F32 first, F32 second, F32* pairs) {
    pairs[0] = row_pairs(first, second);
    pairs[1] = row_pairs(first - first_values(pairs[0]), second - second_values(pairs[0]));
  }
  static void split_columns(F32 even, F32 odd, F32* pairs) {
    pairs[0] = column_pairs(even, odd);
    pairs[1] = column_pairs(even - low_bf16(pairs[0]), odd - high_bf16(pairs[0]));
  }
};

/// Where the tiles of the left side lie, in bytes.
struct TileRows {
  char* at;
  int64_t rows, row, tiles;  // `row` bytes each
  char* marks;               // a byte a row: not 0 where some block of it is apart; null: none is
  /// The group of 16 rows that begins with `first`.
  char* group(int64_t first) const { return at + first * row; }
  /// From one of its blocks of 32 values to the next; those have a line a row.
  int64_t block(int64_t first) const { return fewer(rows - first, 16) * tiles * 64; }
};

/// Rows in staging memory: the marks, then the groups.
template <class Kind>
TileRows stage_tiles(const Panels<float>& w, const float* const* rows, int64_t count) {
  const int64_t blocks = w.k / (16 * Kind::kTiles);
  char* const marks = static_cast<char*>(w.staging.memory);
  const TileRows staged{.at = marks + staging_head(w.staging.rows),
                        .rows = count,
                        .row = blocks * Kind::kTiles * 64,
                        .tiles = Kind::kTiles,
                        .marks = marks};
  for (int64_t i = 0; i < count; ++i) {
    const int64_t group = i / 16 * 16, block = staged.block(group), tile = block / Kind::kTiles;
    char* out = staged.group(group) + (i - group) * 64;
    marks[i] = 0;
    for (int64_t k = 0; k < 32 * blocks; k += 32, out += block) {
      F32 first = load_or_zero(rows[i] + k, w.inner - k);
      F32 second = load_or_zero(rows[i] + k + 16, w.inner - k - 16);
      if (Kind::apart(first, second)) {
        marks[i] = 1;
        first = second = F32::broadcast(0);
      }
      F32 pairs[Kind::kTiles];
      Kind::split_row(first, second, pairs);
      for (int64_t t = 0; t < Kind::kTiles; ++t) {
        pairs[t].store(reinterpret_cast<float*>(out + t * tile));
      }
    }
  }
  return staged;
}

/// Rows become columns.
inline void transpose_words(F32* rows) {
  __m512 t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(rows[i].v, rows[i + 1].v);
    t[i + 1] = _mm512_unpackhi_ps(rows[i].v, rows[i + 1].v);
  }
  __m512 u[16];
  const auto low = [&t](int i, int j) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(t[i]), _mm512_castps_pd(t[j])));
  };
  const auto high = [&t](int i, int j) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(t[i]), _mm512_castps_pd(t[j])));
  };
  for (int i = 0; i < 16; i += 4) {
    u[i] = low(i, i + 2);
    u[i + 1] = high(i, i + 2);
    u[i + 2] = low(i + 1, i + 3);
    u[i + 3] = high(i + 1, i + 3);
  }
  // u[4 i + j] has columns j, 4 + j, 8 + j and 12 + j of rows 4 i to 4 i + 3.
  for (int j = 0; j < 4; ++j) {
    const __m512 even = _mm512_shuffle_f32x4(u[j], u[4 + j], 0x88);
    const __m512 odd = _mm512_shuffle_f32x4(u[j], u[4 + j], 0xDD);
    const __m512 even_low = _mm512_shuffle_f32x4(u[8 + j], u[12 + j], 0x88);
    const __m512 odd_low = _mm512_shuffle_f32x4(u[8 + j], u[12 + j], 0xDD);
    rows[j].v = _mm512_shuffle_f32x4(even, even_low, 0x88);
    rows[4 + j].v = _mm512_shuffle_f32x4(odd, odd_low, 0x88);
    rows[8 + j].v = _mm512_shuffle_f32x4(even, even_low, 0xDD);
    rows[12 + j].v = _mm512_shuffle_f32x4(odd, odd_low, 0xDD);
  }
}

/// 16 columns from `column` on of rows [k, k + 32), a pair of rows a vector.
template <class Kind>
void load_column_pairs(const PackRows<float>& p, int64_t k, int64_t column,
                       F32 (*pairs)[Kind::kTiles]) {
  const auto load = [&p, column](int64_t row) {
    return row < p.k ? load_or_zero(p.rows[row] + p.first + column, p.count - column)
                     : F32::broadcast(0);
  };
  for (int64_t i = 0; i < 16; ++i) {
    Kind::split_columns(load(k + 2 * i), load(k + 2 * i + 1), pairs[i]);
  }
}

/// 16 columns as rows of left tiles: [block][tile][16 columns][16 pairs].
template <class Kind>
void pack_left_tiles(const PackRows<float>& p) {
  float* out = p.out;
  for (int64_t k = 0; k < p.k; k += 32) {
    F32 pairs[16][Kind::kTiles], tile[16];
    load_column_pairs<Kind>(p, k, 0, pairs);
    for (int64_t t = 0; t < Kind::kTiles; ++t) {
      for (int i = 0; i < 16; ++i) tile[i] = pairs[i][t];
      transpose_words(tile);
      for (int i = 0; i < 16; ++i, out += 16) tile[i].store(out);
    }
  }
}

/// A panel: [vector][block][tile][16 pairs][L].
template <class Kind>
void pack_right_tiles(const PackRows<float>& p) {
  for (int64_t column = 0; column < p.width; column += 16) {
    float* out = p.out + column * p.elements;
    for (int64_t k = 0; k < p.k; k += 32) {
      F32 pairs[16][Kind::kTiles];
      load_column_pairs<Kind>(p, k, column, pairs);
      for (int64_t t = 0; t < Kind::kTiles; ++t) {
        for (int i = 0; i < 16; ++i, out += 16) pairs[i][t].store(out);
      }
    }
  }
}
