// How products multiply: what an element of the weights holds, and the rows in the form that is
// multiplied by it. Included inside the namespace of an instruction set.
//
// | operation  | a packed element holds     | a row as staged                         |
// |------------|----------------------------|-----------------------------------------|
// | Exact      | 1 value                    | as it is                                |
// | StoredHalf | 2 of float16, k even first | as it is; one zero behind an odd length |
// | StoredBf16 | 2 of bfloat16, k even low  | the same                                |
// | Dot        | 2 of bfloat16              | values rounded to bfloat16, or pairs    |
// | Int8       | 4 of 8 bits; then 2 more   | Int8Values; its scale, what they omit   |
#pragma once

/// Rows of floats in staging memory: the pointers to them, then each with room at its end.
class StagedRows {
 public:
  StagedRows(const Staging& staging, int64_t inner)
      : memory_(static_cast<char*>(staging.memory)),
        head_(staging_head(staging.rows)),
        step_(staging_row(inner)) {}
  float* row(int64_t i) const {
    float* const at = reinterpret_cast<float*>(memory_ + head_ + i * step_);
    pointers()[i] = at;
    return at;
  }
  const float** pointers() const { return reinterpret_cast<const float**>(memory_); }

 private:
  char* memory_;
  int64_t head_, step_;
};

/// Plain values.
template <class V>
struct Exact {
  using T = typename V::T;
  using Value = V;                  // what enters multiply-adds beside a vector of weights
  static constexpr int kParts = 1;  // Values of a row that one element multiplies, in turn
  static constexpr int kStep = 1;   // elements of a staged row that hold them
  static constexpr bool kWidens = false;
  static constexpr bool kScaled = false;
  static constexpr SumLengths kSums = sum_lengths(kExact);

  static V value(const T* x, int) { return V::broadcast(*x); }
  static V part(const T* w, int) { return V::load(w); }
  static V add(V x, V w, V sum) { return fma(x, w, sum); }
  /// The rows as a tile reads them.
  static const T* const* stage(const Panels<T>&, const T* const* rows, int64_t) { return rows; }
  static int64_t most_rows(const Panels<T>&, int64_t rows) { return rows; }
};

/// Weights of two bytes against rows of float. Many rows multiply floats that are made of them
/// once.
struct Stored {
  using Value = F32;
  static constexpr int kParts = 2, kStep = 2;
  static constexpr bool kWidens = true;
  static constexpr bool kScaled = false;
  static constexpr SumLengths kSums = sum_lengths(kStoredHalf);
  static F32 value(const float* x, int part) { return F32::broadcast(x[part]); }
  static F32 add(F32 x, F32 w, F32 sum) { return fma(x, w, sum); }
  static const float* const* stage(const Panels<float>& w, const float* const* rows,
                                   int64_t count) {
    if (w.inner % 2 == 0) return rows;
    // The last element holds a second weight: a zero stands for the value that it multiplies.
    const StagedRows staged(w.staging, w.inner);
    for (int64_t i = 0; i < count; ++i) {
      float* const row = staged.row(i);
      for (int64_t k = 0; k < w.inner; ++k) row[k] = rows[i][k];
      row[w.inner] = 0;
    }
    return staged.pointers();
  }
  static int64_t most_rows(const Panels<float>& w, int64_t rows) {
    return w.inner % 2 == 0 ? rows : w.staging.rows;
  }
};

struct StoredHalf : Stored {
  static F32 part(const float* w, int part) {
    return load_half(reinterpret_cast<const uint16_t*>(w) + int64_t{part} * F32::kLanes);
  }
};

struct StoredBf16 : Stored {
  static F32 part(const float* w, int part) {
    return part == 0 ? low_bf16(F32::load(w)) : high_bf16(F32::load(w));
  }
};

#if defined(__AVX512BF16__)
/// bfloat16 on both sides, where the processor multiplies pairs.
struct Dot {
  using Value = F32;
  static constexpr int kParts = 1, kStep = 1;
  static constexpr bool kWidens = false;
  static constexpr bool kScaled = false;
  static constexpr SumLengths kSums = sum_lengths(kDot);
  static F32 value(const float* x, int) { return F32::broadcast(*x); }
  static F32 part(const float* w, int) { return F32::load(w); }
  static F32 add(F32 x, F32 w, F32 sum) { return dot_bf16(x, w, sum); }
  static const float* const* stage(const Panels<float>& w, const float* const* rows,
                                   int64_t count) {
    const StagedRows staged(w.staging, w.inner);
    for (int64_t i = 0; i < count; ++i) pack_pairs(rows[i], w.inner, staged.row(i));
    return staged.pointers();
  }
  static int64_t most_rows(const Panels<float>& w, int64_t) { return w.staging.rows; }
};

#else
/// The same function by multiply-adds of rounded values: of each pair the odd one first.
struct Dot {
  using Value = F32;
  static constexpr int kParts = 2, kStep = 2;
  static constexpr bool kWidens = false;
  static constexpr bool kScaled = false;
  static constexpr SumLengths kSums = sum_lengths(kDot);
  static F32 value(const float* x, int part) { return F32::broadcast(x[1 - part]); }
  static F32 part(const float* w, int part) {
    return part == 0 ? high_bf16(F32::load(w)) : low_bf16(F32::load(w));
  }
  static F32 add(F32 x, F32 w, F32 sum) { return fma(x, w, sum); }
  static const float* const* stage(const Panels<float>& w, const float* const* rows,
                                   int64_t count) {
    const StagedRows staged(w.staging, w.inner);
    for (int64_t i = 0; i < count; ++i) {
      float* const row = staged.row(i);
      for (int64_t k = 0; k < w.inner; k += F32::kLanes) {
        round_bf16(load_some<F32>(rows[i] + k, w.inner - k)).store(row + k);
      }
      if (w.inner % 2) row[w.inner] = 0;
    }
    return staged.pointers();
  }
  static int64_t most_rows(const Panels<float>& w, int64_t) { return w.staging.rows; }
};

/// Of the product of weight gradients: values, rounded and in the order of pairs.
struct DotValues : Exact<F32> {
  static constexpr SumLengths kSums = {2 * sum_lengths(kDot).block, 2 * sum_lengths(kDot).span};
};
#endif

/// 8-bit integers on both sides.
struct Int8 {
  using Value = Int8Values;
  static constexpr int kParts = 1, kStep = Int8Values::kWords;
  static constexpr bool kWidens = false;
  static constexpr bool kScaled = true;
  static constexpr SumLengths kSums = sum_lengths(kInt8);
  static Int8Values value(const float* x, int) { return Int8Values::broadcast(x); }
  static F32 part(const float* w, int) { return F32::load(w); }
  static F32 add(const Int8Values& x, F32 w, F32 sum) { return dot_int8(x, w, sum); }
  /// The sum of products * (scale of the row * scale of the weights).
  static F32 scaled(F32 sum, const float* row, const float* w, int64_t w_step) {
    const F32 scale = F32::broadcast(row[0]) * F32::load(w);
    return int8_sum(sum, row + 1, w + w_step) * scale;
  }
  static const float* const* stage(const Panels<float>& w, const float* const* rows,
                                   int64_t count) {
    const StagedRows staged(w.staging, w.inner);
    for (int64_t i = 0; i < count; ++i) quantize(rows[i], w.inner, w.k, staged.row(i));
    return staged.pointers();
  }
  static int64_t most_rows(const Panels<float>& w, int64_t) { return w.staging.rows; }

 private:
  static float horizontal_largest(F32 v) {
    float lanes[F32::kLanes];
    v.store(lanes);
    float most = lanes[0];
    for (const float lane : lanes) most = lane > most ? lane : most;
    return most;
  }
  /// Of words that are integers.
  static float horizontal_sum(F32 v) {
    uint32_t sum = 0;
    float lanes[F32::kLanes];
    v.store(lanes);
    for (const float lane : lanes) sum += __builtin_bit_cast(uint32_t, lane);
    return __builtin_bit_cast(float, sum);
  }
  static bool any_nan(F32 v) {
    float lanes[F32::kLanes];
    v.store(lanes);
    bool found = false;
    for (const float lane : lanes) found = found || lane != lane;
    return found;
  }
  static void quantize(const float* x, int64_t inner, int64_t elements, float* row) {
    F32 most = F32::broadcast(0), strange = F32::broadcast(0);
    for (int64_t k = 0; k < inner; k += F32::kLanes) {
      const F32 v = load_some<F32>(x + k, inner - k);
      most = largest(abs(v), most);
      // 0 but for NaN and infinity.
      strange = strange + (v - v);
    }
    const float limit = horizontal_largest(most);
    const bool finite = !any_nan(strange);
    // Below, the scale would be subnormal.
    const bool zero = !finite || limit < 127.0f * 0x1p-126f;
    const F32 factor = F32::broadcast(zero ? 0.0f : 127.0f / limit);
    F32 negatives = F32::broadcast(0);
    // The last element may have values beyond `inner`: zeros.
    for (int64_t k = 0; k < 4 * elements; k += F32::kLanes) {
      const bool none = zero || k >= inner;
      const F32 v = none ? F32::broadcast(0) : load_some<F32>(x + k, inner - k);
      // The nearest integer stands in the low bits, ties to even.
      store_int8(fma(v, factor, F32::broadcast(0x1.8p23f)), row, k, negatives);
    }
    float* const end = row + elements * kStep;
    end[0] = !finite ? __builtin_nanf("") : zero ? 0.0f : limit / 127.0f;
    if constexpr (kStep == 2) end[1] = horizontal_sum(negatives);
  }
};
