// The table of one instruction set. Included inside its namespace, after the other bodies.
//
// | what          | shape                                                         |
// |---------------|---------------------------------------------------------------|
// | PackRows.rows | [k] pointers to rows, of which columns [first, first + count) |
// | PackRows.out  | [k / 2][width] pairs, or [k][width] values, the odd row first |
#pragma once

template <class V>
void add(const typename V::T* x, typename V::T* y, int64_t size) {
  for (int64_t i = 0; i < size; i += V::kLanes) {
    store_some<V>(load_some<V>(y + i, size - i) + load_some<V>(x + i, size - i), y + i, size - i);
  }
}

template <class V>
void multiply(const typename V::T* x, typename V::T* y, int64_t size) {
  for (int64_t i = 0; i < size; i += V::kLanes) {
    store_some<V>(load_some<V>(y + i, size - i) * load_some<V>(x + i, size - i), y + i, size - i);
  }
}

/// The compiler makes vectors of it.
template <class V>
void add_wide(const typename V::T* __restrict x, double* __restrict y, int64_t size) {
  for (int64_t i = 0; i < size; ++i) y[i] += static_cast<double>(x[i]);
}

/// In float64, where products of floats are exact.
template <class V>
void add_product_wide(const typename V::T* __restrict a, const typename V::T* __restrict b,
                      double* __restrict y, int64_t size) {
  for (int64_t i = 0; i < size; ++i) y[i] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
}

/// In float64: a chain for each of 16 columns, then these in pairs. The compiler makes vectors of
/// it.
template <class V>
double dot_wide(const typename V::T* __restrict a, const typename V::T* __restrict b,
                int64_t size) {
  constexpr int64_t kChains = 16;
  double sums[kChains] = {};
  const int64_t whole = size / kChains * kChains;
  for (int64_t i = 0; i < whole; i += kChains) {
    for (int64_t n = 0; n < kChains; ++n) {
      sums[n] += static_cast<double>(a[i + n]) * static_cast<double>(b[i + n]);
    }
  }
  for (int64_t i = whole; i < size; ++i) {
    sums[i - whole] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  for (int64_t half = kChains / 2; half > 0; half /= 2) {
    for (int64_t n = 0; n < half; ++n) sums[n] += sums[n + half];
  }
  return sums[0];
}

template <F32 (*load)(const uint16_t*, int64_t)>
void widen(const uint16_t* bits, float* out, int64_t size) {
  for (int64_t i = 0; i < size; i += F32::kLanes) {
    const int64_t n = fewer(size - i, F32::kLanes);
    store_some<F32>(load(bits + i, n), out + i, n);
  }
}

template <void (*store)(F32, uint16_t*, int64_t)>
void narrow(const float* x, uint16_t* bits, int64_t size) {
  for (int64_t i = 0; i < size; i += F32::kLanes) {
    const int64_t n = fewer(size - i, F32::kLanes);
    store(load_some<F32>(x + i, n), bits + i, n);
  }
}

template <F32 (*round)(F32)>
void round_all(float* x, int64_t size) {
  for (int64_t i = 0; i < size; i += F32::kLanes) {
    store_some<F32>(round(load_some<F32>(x + i, size - i)), x + i, size - i);
  }
}

/// Columns of row k as bfloat16 in floats, or their pairs with row k + 1. A pair without a second
/// row has `pad` there, which for one side is -0: so the product changes no sum, not even -0.
inline void pack_dot_rows(const PackRows<float>& p, float pad) {
  // Rows lie too far apart for the hardware prefetcher.
  float* out = p.out;
  for (int64_t k = 0; k < p.k; k += 2) {
    const bool more = k + kNarrowRowsAhead + 1 < p.k;
    for (int64_t c = 0; c < p.width; c += F32::kLanes) {
      const int64_t left = p.count - c;
      if (more && left > 0) {
        __builtin_prefetch(p.rows[k + kNarrowRowsAhead] + p.first + c);
        __builtin_prefetch(p.rows[k + kNarrowRowsAhead + 1] + p.first + c);
      }
      const auto load = [&](int64_t row) {
        if (left <= 0) return F32::broadcast(0);
        return row < p.k ? load_some<F32>(p.rows[row] + p.first + c, left) : F32::broadcast(pad);
      };
#if defined(__AVX512BF16__)
      pair_of(load(k), load(k + 1)).store(out + c);
#else
      // The odd one of a pair is first.
      if (k + 1 < p.k) round_bf16(load(k + 1)).store(out + c);
      round_bf16(load(k)).store(out + (k + 1 < p.k ? p.width : 0) + c);
#endif
    }
#if defined(__AVX512BF16__)
    out += p.width;
#else
    out += 2 * p.width;
#endif
  }
}
inline void pack_dot_a(const PackRows<float>& p) { pack_dot_rows(p, 0.0f); }
inline void pack_dot_b(const PackRows<float>& p) { pack_dot_rows(p, -0.0f); }

/// What every arithmetic has.
template <class V>
constexpr Kernels<typename V::T> common_table() {
  Kernels<typename V::T> table{};
  table.lanes = V::kLanes;
  table.skip = skip<V>;
  table.math[kMathExp] = map<V, exp<V>>;
  table.math[kMathTanh] = map<V, tanh<V>>;
  table.math[kMathSigmoid] = map<V, sigmoid<V>>;
  table.add = add<V>;
  table.multiply = multiply<V>;
  table.zone_out = zone_out<V>;
  table.zone_out_gradient = zone_out_gradient<V>;
  table.add_wide = add_wide<V>;
  table.add_product_wide = add_product_wide<V>;
  table.dot_wide = dot_wide<V>;
  table.cells = cell_finishers<V>();
  table.norm_forward[kCellLstm] = norm_forward<V, 4, LstmWithOptions<V>>;
  table.norm_forward[kCellGru] = norm_forward<V, 3, GruWithOptions<V, false>>;
  table.norm_backward[kCellLstm] = norm_backward<V, 4, LstmWithOptions<V>>;
  table.norm_backward[kCellGru] = norm_backward<V, 3, GruWithOptions<V, false>>;
  return table;
}

template <class V, class Op>
constexpr Kernels<typename V::T> forward_table() {
  Kernels<typename V::T> table = common_table<V>();
  table.product = product<V, Op>;
  table.forward[kModeRelu] = forward_step<V, PlainCell<V, relu<V>>, Op>;
  table.forward[kModeTanh] = forward_step<V, PlainCell<V, tanh<V>>, Op>;
  table.forward[kModeLstm] = forward_step<V, LstmCell<V>, Op>;
  table.forward[kModeGru] = forward_step<V, GruCell<V>, Op>;
  table.forward_cell[kCellPlain] = forward_step<V, CellWithOptions<V, 1>, Op>;
  table.forward_cell[kCellLstm] = forward_step<V, CellWithOptions<V, 4>, Op>;
  table.forward_cell[kCellGru] = forward_step<V, CellWithOptions<V, 3>, Op>;
  table.forward_cell[kCellProjectedGru] = table.forward_cell[kCellGru];
  table.forward_cell[kCellReset] = forward_step<V, CellWithOptions<V, 2, 3>, Op>;
  table.forward_cell[kCellCandidate] = forward_step<V, CellWithOptions<V, 1, 3, 2>, Op>;
  return table;
}

template <class V, class Op>
constexpr Kernels<typename V::T> training_table() {
  Kernels<typename V::T> table = forward_table<V, Op>();
  table.backward[kModeRelu] = backward_step<V, ReluGrad<V>, Op>;
  table.backward[kModeTanh] = backward_step<V, TanhGrad<V>, Op>;
  table.backward[kModeLstm] = backward_step<V, LstmGrad<V>, Op>;
  table.backward[kModeGru] = backward_step<V, GruGrad<V>, Op>;
  table.backward_cell = backward_step<V, GradWithOptions<V>, Op>;
  table.big.span = kSumSpan;
  return table;
}

constexpr Kernels<float> dot_table() {
  Kernels<float> table = training_table<F32, Dot>();
#if defined(__AVX512BF16__)
  table.big = {.form = kDot,
               .span = 2 * kSumSpan,
               .pack_a = pack_dot_a,
               .pack_b = pack_dot_b,
               .product = product<F32, Dot>};
#else
  table.big = {.form = kExact,
               .span = 2 * kSumSpan,
               .pack_a = pack_dot_a,
               .pack_b = pack_dot_b,
               .product = product<F32, DotValues>};
#endif
  return table;
}

constexpr KernelTable table_named(const char* name) {
  KernelTable table{};
  table.name = name;
  table.f32[kExact] = training_table<F32, Exact<F32>>();
  table.f32[kStoredHalf] = forward_table<F32, StoredHalf>();
  table.f32[kStoredBf16] = forward_table<F32, StoredBf16>();
  table.f32[kInt8] = forward_table<F32, Int8>();
  table.f32[kDot] = dot_table();
  table.f64 = training_table<F64, Exact<F64>>();
  table.storage[kStorageHalf] = {widen<load_half>, narrow<store_half>, round_all<round_half>};
  table.storage[kStorageBf16] = {widen<load_bf16>, narrow<store_bf16>, round_all<nearest_bf16>};
  return table;
}
