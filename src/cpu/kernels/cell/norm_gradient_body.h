// Layer normalization, backward. Included inside the namespace of an instruction set, after
// norm_body.h, which has the shapes.
#pragma once

/// What the gradient of a group subtracts: the means of g and of g times the normalized value,
/// where g is the gradient of a value times its gain.
template <class T>
struct Projections {
  T mean[4], along[4];
};

/// One side of a row. Gate g's gradient is at sums + from[g] * units, its result at out + to[g] *
/// units.
template <class V, int G>
struct NormSideGradient {
  using T = typename V::T;
  static constexpr int L = V::kLanes;
  const T *sums, *hats, *inverses, *gain;
  T* out;
  const int (&from)[G];
  const int (&to)[G];

  V scaled(int g, int64_t unit, int64_t units) const {
    return load_some<V>(sums + from[g] * units + unit, units - unit) *
           V::load(gain + unit * G + g * L);
  }
  V hat(int g, int64_t unit, int64_t units) const {
    return load_some<V>(hats + g * units + unit, units - unit);
  }
  void run(const NormOptions<T>& norm, int64_t units) const {
    Chains<V, G> means, alongs;
    each_vector<V>(
        units, [&](int part, int64_t unit) __attribute__((always_inline)) {
#pragma GCC unroll 4
          for (int g = 0; g < G; ++g) {
            const V d = scaled(g, unit, units);
            means.at[g][part] = means.at[g][part] + d;
            alongs.at[g][part] = fma(d, hat(g, unit, units), alongs.at[g][part]);
          }
        });
    Projections<T> p;
    for (int64_t n = 0; n < norm.groups; ++n) {
      const int64_t first = norm.begins[n], count = norm.begins[n + 1] - first;
      const T size = static_cast<T>(count * units);
      const T mean = means.sum(first, count) / size, along = alongs.sum(first, count) / size;
      for (int64_t g = first; g < first + count; ++g) p.mean[g] = mean, p.along[g] = along;
    }
    for (int64_t unit = 0; unit < units; unit += L) {
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) {
        const V rest = scaled(g, unit, units) - V::broadcast(p.mean[g]);
        const V d = fma(negate(hat(g, unit, units)), V::broadcast(p.along[g]), rest);
        store_some<V>(V::broadcast(inverses[g]) * d, out + to[g] * units + unit, units - unit);
      }
    }
  }
};

/// Where the gates of a cell are in the rows of gradients: of the sums by side, and of the results.
template <int G>
struct NormOrder {
  int input_from[G], recurrent_from[G], input_to[G], recurrent_to[G];
};
template <int G>
constexpr NormOrder<G> kNormOrder{};
template <>
inline constexpr NormOrder<4> kNormOrder<4>{{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}};
// Sums n, r, z, n r; the input's side n, r, z, the recurrent one r, z, n.
template <>
inline constexpr NormOrder<3> kNormOrder<3>{{1, 2, 0}, {1, 2, 3}, {1, 2, 0}, {0, 1, 2}};

/// dh of the units of a vector.
template <class V>
inline V gradient_of_output(const BackwardStep<typename V::T>& s,
                            const NormBackward<typename V::T>& n, int64_t row, int64_t unit) {
  const V dh = load_some<V>(n.dh[row] + unit, s.units - unit);
  return s.dy ? dh + load_some<V>(s.dy[row] + unit, s.units - unit) : dh;
}

/// A row of an LSTM whose cell is normalized, down to the gradients of its sums.
template <class V>
void normed_cell_gradient(const BackwardStep<typename V::T>& s,
                          const NormBackward<typename V::T>& n, int64_t row) {
  using T = typename V::T;
  const NormOptions<T>& norm = s.options->norm;
  const T* const hats = n.saved[row] + n.place.cell;
  T* const dnormed = s.da[row] + 4 * s.units;
  Chains<V, 1> means, alongs;
  each_vector<V>(
      s.units, [&](int part, int64_t unit) __attribute__((always_inline)) {
        const UnitPlace at{row, unit, s.units - unit};
        const V hat = load_some<V>(hats + unit, at.count), gain = V::load(norm.cell_gain + unit);
        const V seen = norm.carries_cell ? load_some<V>(s.c[row] + unit, at.count)
                                         : fma(hat, gain, V::load(norm.cell_bias + unit));
        const auto out =
            LstmWithOptions<V>::output(s, at, gradient_of_output<V>(s, n, row, unit), seen);
        T* const carried = s.dc[row] + unit;
        const V dc =
            with_peephole(s.options->peephole[3], unit, out.d_o, load_some<V>(carried, at.count));
        V d = out.before_slope * out.slope;
        if (norm.carries_cell) d = d + dc;
        store_some<V>(dc, carried, at.count);
        store_some<V>(d, dnormed + unit, at.count);
        const V scaled = d * gain;
        means.at[0][part] = means.at[0][part] + scaled;
        alongs.at[0][part] = fma(scaled, hat, alongs.at[0][part]);
      });
  const T mean = means.sum(0, 1) / static_cast<T>(s.units);
  const T along = alongs.sum(0, 1) / static_cast<T>(s.units);
  const V inverse = V::broadcast(n.saved[row][n.place.cell_inverse]);
  for (int64_t unit = 0; unit < s.units; unit += V::kLanes) {
    const UnitPlace at{row, unit, s.units - unit};
    const V rest = load_some<V>(dnormed + unit, at.count) * V::load(norm.cell_gain + unit) -
                   V::broadcast(mean);
    const V hat = load_some<V>(hats + unit, at.count);
    V d = inverse * fma(negate(hat), V::broadcast(along), rest);
    if (!norm.carries_cell) d = d + load_some<V>(s.dc[row] + unit, at.count);
    LstmWithOptions<V>::update_gradient(s, at, d);
  }
}

/// The rows of a step: dh is there, and the gate gradients follow. s.da are those of the sums.
template <class V, int G, class Cell>
void norm_backward(const BackwardStep<typename V::T>& s, const NormBackward<typename V::T>& n) {
  using T = typename V::T;
  const NormOptions<T>& norm = s.options->norm;
  constexpr const NormOrder<G>& kOrder = kNormOrder<G>;
  alignas(64) T dh[V::kLanes];
  for (int64_t row = n.first; row < s.rows; row += n.stride) {
    if (norm.normalizes_cell) {
      normed_cell_gradient<V>(s, n, row);
    } else {
      for (int64_t unit = 0; unit < s.units; unit += V::kLanes) {
        gradient_of_output<V>(s, n, row, unit).store(dh);
        Cell::backward(s, {row, unit, s.units - unit}, dh);
      }
    }
    const T* const saved = n.saved[row];
    const NormSideGradient<V, G> inputs{s.da[row],
                                        saved + n.place.input,
                                        saved + n.place.input_inverse,
                                        norm.gain[0],
                                        n.out[row],
                                        kOrder.input_from,
                                        kOrder.input_to};
    inputs.run(norm, s.units);
    if (!norm.products) continue;
    const NormSideGradient<V, G> states{
        s.da[row],          saved + n.place.recurrent, saved + n.place.recurrent_inverse,
        norm.gain[1],       n.out[row] + G * s.units,  kOrder.recurrent_from,
        kOrder.recurrent_to};
    states.run(norm, s.units);
  }
}
