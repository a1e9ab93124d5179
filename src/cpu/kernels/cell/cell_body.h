// What cells with options compute at the units of a vector: docs/cells_reference.md has the
// equations. Included inside the namespace of an instruction set, after the steps.
//
// | saved gates | lstm    | gru     | gru, reset before | plain |
// |-------------|---------|---------|-------------------|-------|
// | [G][U]      | i f g o | r z n q | r z n rh          | h     |
//
// They are sums as they enter the activations, before a clip; q is R h + b of n, rh is r h. The
// gradients are those of the kernels in backward_body.h.
#pragma once

template <class V>
inline V clipped(V x, typename V::T low, typename V::T high) {
  const V least_value = V::broadcast(low), most = V::broadcast(high);
  return select_less(x, least_value, least_value, select_less(most, x, most, x));
}

/// 1 where a clip lets x through, else 0.
template <class V>
inline V passes(V x, typename V::T low, typename V::T high) {
  const V zero = V::broadcast(0), one = V::broadcast(1);
  return select_less(x, V::broadcast(low), zero, select_less(V::broadcast(high), x, zero, one));
}

/// A gate, or the candidate, from its sum.
template <class V>
inline V gate_value(const CellOptions<typename V::T>& cell, const CellFunction<typename V::T>& f,
                    V sum) {
  return activate(f, cell.clip ? clipped(sum, cell.low, cell.high) : sum);
}

template <class V>
inline Evaluated<V> gate_point(const CellOptions<typename V::T>& cell,
                               const CellFunction<typename V::T>& f, V sum) {
  if (!cell.clip) return evaluate(f, sum);
  Evaluated<V> at = evaluate(f, clipped(sum, cell.low, cell.high));
  at.slope = at.slope * passes(sum, cell.low, cell.high);
  return at;
}

/// A gate's sum with what it sees of a cell.
template <class V>
inline V with_peephole(const typename V::T* peephole, int64_t unit, V cell, V sum) {
  return peephole ? fma(V::load(peephole + unit), cell, sum) : sum;
}

/// The candidate as the state takes it in.
template <class V, class Step>
inline V masked(const Step& s, int64_t row, int64_t unit, int64_t count, V candidate) {
  return s.mask ? candidate * load_some<V>(s.mask[row] + unit, count) : candidate;
}

template <class V>
struct LstmWithOptions {
  using T = typename V::T;

  /// The cell before it is rounded, from the sums of i, f and g, which it keeps.
  static V update(const ForwardStep<T>& s, const CellPlace<T>& at) {
    const CellOptions<T>& cell = *s.options;
    const V before = load_some<V>(s.c_prev[at.row] + at.unit, at.count);
    const V i_sum = with_peephole(cell.peephole[0], at.unit, before, pre_activation<V>(at, 0));
    const V f_sum = with_peephole(cell.peephole[1], at.unit, before, pre_activation<V>(at, 1));
    const V g_sum = pre_activation<V>(at, 2);
    const V i = gate_value(cell, cell.gate, i_sum);
    const V f = cell.coupled ? V::broadcast(1) - i : gate_value(cell, cell.gate, f_sum);
    const V g = masked(s, at.row, at.unit, at.count, gate_value(cell, cell.candidate, g_sum));
    const V c = fma(f, before, i * g);
    if (s.gates) {
      T* gates = s.gates[at.row] + at.unit;
      store_some<V>(i_sum, gates, at.count);
      store_some<V>(f_sum, gates + s.units, at.count);
      store_some<V>(g_sum, gates + 2 * s.units, at.count);
    }
    return s.clip ? clipped(c, s.clip_low, s.clip_high) : c;
  }

  /// Of the cell c, of which the output sees `seen`; o_sum is without its peephole.
  static void put_out(const ForwardStep<T>& s, const CellPlace<T>& at, V o_sum, V c, V seen) {
    const CellOptions<T>& cell = *s.options;
    o_sum = with_peephole(cell.peephole[3], at.unit, c, o_sum);
    V h = gate_value(cell, cell.gate, o_sum) * activate(cell.output, seen);
    h = rounded(s.round_h, h);
    if (s.gates) store_some<V>(o_sum, s.gates[at.row] + at.unit + 3 * s.units, at.count);
    store_some<V>(h, s.h[at.row] + at.unit, at.count);
  }

  static void forward(const ForwardStep<T>& s, const CellPlace<T>& at) {
    V c = update(s, at);
    c = rounded(s.round_c, c);
    store_some<V>(c, s.c[at.row] + at.unit, at.count);
    put_out(s, at, pre_activation<V>(at, 3), c, c);
  }

  /// What o and the cell on its way out have of dh. Keeps o's gradient.
  struct Output {
    V d_o, before_slope, slope;  // dh o, and that of the activation
  };
  static Output output(const BackwardStep<T>& s, const UnitPlace& at, V dh, V seen) {
    const CellOptions<T>& cell = *s.options;
    const T* o_sum = s.gates[at.row] + at.unit + 3 * s.units;
    const Evaluated<V> o = gate_point(cell, cell.gate, load_some<V>(o_sum, at.count));
    const Evaluated<V> out = evaluate(cell.output, seen);
    const V d_o = (dh * out.value) * o.slope;
    store_some<V>(d_o, s.da[at.row] + at.unit + 3 * s.units, at.count);
    return {d_o, dh * o.value, out.slope};
  }

  /// From dc, the gradient of the cell after its clip, to those of i, f, g and the cell before.
  static void update_gradient(const BackwardStep<T>& s, const UnitPlace& at, V dc) {
    const CellOptions<T>& cell = *s.options;
    const T* gates = s.gates[at.row] + at.unit;
    const auto sum = [&](int gate) { return load_some<V>(gates + gate * s.units, at.count); };
    const V before = load_some<V>(s.c_prev[at.row] + at.unit, at.count);
    const Evaluated<V> i = gate_point(cell, cell.gate, sum(0));
    Evaluated<V> f{V::broadcast(1) - i.value, V::broadcast(0)};
    if (!cell.coupled) f = gate_point(cell, cell.gate, sum(1));
    Evaluated<V> g = gate_point(cell, cell.candidate, sum(2));
    g = {masked(s, at.row, at.unit, at.count, g.value),
         masked(s, at.row, at.unit, at.count, g.slope)};
    if (s.clip) {
      dc = dc * passes(fma(f.value, before, i.value * g.value), s.clip_low, s.clip_high);
    }
    const V d_i = (dc * (cell.coupled ? g.value - before : g.value)) * i.slope;
    const V d_f = (dc * before) * f.slope;
    V rest = with_peephole(cell.peephole[1], at.unit, d_f, dc * f.value);
    rest = with_peephole(cell.peephole[0], at.unit, d_i, rest);
    T* da = s.da[at.row] + at.unit;
    store_some<V>(d_i, da, at.count);
    store_some<V>(d_f, da + s.units, at.count);
    store_some<V>((dc * i.value) * g.slope, da + 2 * s.units, at.count);
    store_some<V>(rest, s.dc[at.row] + at.unit, at.count);
  }

  static void backward(const BackwardStep<T>& s, const UnitPlace& at, const T* values) {
    const V c = load_some<V>(s.c[at.row] + at.unit, at.count);
    const Output out = output(s, at, V::load(values), c);
    const V after = load_some<V>(s.dc[at.row] + at.unit, at.count);
    const V dc = fma(out.before_slope, out.slope, after);
    update_gradient(s, at, with_peephole(s.options->peephole[3], at.unit, out.d_o, dc));
  }
};

/// `kCell`: the state is c, which a projection reads too.
template <class V, bool kCell>
struct GruWithOptions {
  using T = typename V::T;

  template <class Step>
  static V before(const Step& s, int64_t row, int64_t unit, int64_t count) {
    return load_some<V>((kCell ? s.c_prev : s.h_prev)[row] + unit, count);
  }

  static void forward(const ForwardStep<T>& s, const CellPlace<T>& at) {
    constexpr int L = V::kLanes;
    const CellOptions<T>& cell = *s.options;
    const V r_sum = pre_activation<V>(at, 0), z_sum = pre_activation<V>(at, 1);
    const V r = gate_value(cell, cell.gate, r_sum), z = gate_value(cell, cell.gate, z_sum);
    const V hn = V::load(at.tile + 2 * L) + V::load(s.hn_bias + at.unit);
    const V n_sum = fma(r, hn, V::load(at.pre + 2 * L) + V::load(at.bias + 2 * L));
    const V n = masked(s, at.row, at.unit, at.count, gate_value(cell, cell.candidate, n_sum));
    const V old = before(s, at.row, at.unit, at.count);
    V h = fma(z, old, (V::broadcast(1) - z) * n);
    h = rounded(kCell ? s.round_c : s.round_h, h);
    if (kCell) store_some<V>(h, s.c[at.row] + at.unit, at.count);
    if (s.gates) {
      T* gates = s.gates[at.row] + at.unit;
      store_some<V>(r_sum, gates, at.count);
      store_some<V>(z_sum, gates + s.units, at.count);
      store_some<V>(n_sum, gates + 2 * s.units, at.count);
      store_some<V>(hn, gates + 3 * s.units, at.count);
    }
    store_some<V>(h, s.h[at.row] + at.unit, at.count);
  }

  static void backward(const BackwardStep<T>& s, const UnitPlace& at, const T* values) {
    const CellOptions<T>& cell = *s.options;
    const T* gates = s.gates[at.row] + at.unit;
    const auto saved = [&](int gate) { return load_some<V>(gates + gate * s.units, at.count); };
    T* const carried = (kCell ? s.dc : s.carry)[at.row] + at.unit;
    V dh = V::load(values);
    if (kCell) dh = dh + load_some<V>(carried, at.count);
    const V old = before(s, at.row, at.unit, at.count);
    const Evaluated<V> r = gate_point(cell, cell.gate, saved(0));
    const Evaluated<V> z = gate_point(cell, cell.gate, saved(1));
    Evaluated<V> n = gate_point(cell, cell.candidate, saved(2));
    n = {masked(s, at.row, at.unit, at.count, n.value),
         masked(s, at.row, at.unit, at.count, n.slope)};
    const V dn = (dh * (V::broadcast(1) - z.value)) * n.slope;
    T* da = s.da[at.row] + at.unit;
    store_some<V>(dn, da, at.count);
    store_some<V>((dn * saved(3)) * r.slope, da + s.units, at.count);
    store_some<V>((dh * (old - n.value)) * z.slope, da + 2 * s.units, at.count);
    store_some<V>(dn * r.value, da + 3 * s.units, at.count);
    store_some<V>(dh * z.value, carried, at.count);
  }
};

/// The reset gate applies before the product, in two parts. The row of gate gradients is [n, r, z].
template <class V>
struct ResetBefore {
  using T = typename V::T;

  static void reset(const ForwardStep<T>& s, const CellPlace<T>& at) {
    const CellOptions<T>& cell = *s.options;
    const V r_sum = pre_activation<V>(at, 0), z_sum = pre_activation<V>(at, 1);
    const V old = load_some<V>(s.entering()[at.row] + at.unit, at.count);
    T* gates = s.gates[at.row] + at.unit;
    store_some<V>(r_sum, gates, at.count);
    store_some<V>(z_sum, gates + s.units, at.count);
    store_some<V>(gate_value(cell, cell.gate, r_sum) * old, gates + 3 * s.units, at.count);
  }

  static void candidate(const ForwardStep<T>& s, const CellPlace<T>& at) {
    const CellOptions<T>& cell = *s.options;
    T* gates = s.gates[at.row] + at.unit;
    const V n_sum = pre_activation<V>(at, 0);
    const V n = masked(s, at.row, at.unit, at.count, gate_value(cell, cell.candidate, n_sum));
    const V z = gate_value(cell, cell.gate, load_some<V>(gates + s.units, at.count));
    const V old = load_some<V>(s.c_prev[at.row] + at.unit, at.count);
    V h = fma(z, old, (V::broadcast(1) - z) * n);
    h = rounded(s.round_h, h);
    store_some<V>(n_sum, gates + 2 * s.units, at.count);
    store_some<V>(h, s.h[at.row] + at.unit, at.count);
  }

  static void candidate_gradient(const BackwardStep<T>& s, const UnitPlace& at, const T* values) {
    const CellOptions<T>& cell = *s.options;
    const T* gates = s.gates[at.row] + at.unit;
    const V dh = V::load(values), old = load_some<V>(s.h_prev[at.row] + at.unit, at.count);
    const Evaluated<V> z = gate_point(cell, cell.gate, load_some<V>(gates + s.units, at.count));
    Evaluated<V> n = gate_point(cell, cell.candidate, load_some<V>(gates + 2 * s.units, at.count));
    n = {masked(s, at.row, at.unit, at.count, n.value),
         masked(s, at.row, at.unit, at.count, n.slope)};
    T* da = s.da[at.row] + at.unit;
    store_some<V>((dh * (V::broadcast(1) - z.value)) * n.slope, da, at.count);
    store_some<V>((dh * (old - n.value)) * z.slope, da + 2 * s.units, at.count);
    store_some<V>(dh * z.value, s.carry[at.row] + at.unit, at.count);
  }

  /// Of r h, which n's part has multiplied; the mask is that of the h in it.
  static void reset_gradient(const BackwardStep<T>& s, const UnitPlace& at, const T* values) {
    const CellOptions<T>& cell = *s.options;
    const V d = masked(s, at.row, at.unit, at.count, V::load(values));
    const V old = load_some<V>(s.h_prev[at.row] + at.unit, at.count);
    const Evaluated<V> r =
        gate_point(cell, cell.gate, load_some<V>(s.gates[at.row] + at.unit, at.count));
    T* carried = s.carry[at.row] + at.unit;
    store_some<V>((d * old) * r.slope, s.da[at.row] + s.units + at.unit, at.count);
    store_some<V>(fma(d, r.value, load_some<V>(carried, at.count)), carried, at.count);
  }
};

template <class V>
struct PlainWithOptions {
  using T = typename V::T;

  static void forward(const ForwardStep<T>& s, const CellPlace<T>& at) {
    const V sum = pre_activation<V>(at, 0);
    V h = gate_value(*s.options, s.options->candidate, sum);
    h = masked(s, at.row, at.unit, at.count, h);
    if (s.gates) store_some<V>(sum, s.gates[at.row] + at.unit, at.count);
    h = rounded(s.round_h, h);
    store_some<V>(h, s.h[at.row] + at.unit, at.count);
  }

  static void backward(const BackwardStep<T>& s, const UnitPlace& at, const T* values) {
    const V sum = load_some<V>(s.gates[at.row] + at.unit, at.count);
    const V slope = gate_point(*s.options, s.options->candidate, sum).slope;
    const V d = masked(s, at.row, at.unit, at.count, V::load(values));
    store_some<V>(d * slope, s.da[at.row] + at.unit, at.count);
  }
};

template <class V>
constexpr CellFinishers<typename V::T> cell_finishers() {
  using Gru = GruWithOptions<V, false>;
  using ProjectedGru = GruWithOptions<V, true>;
  return {
      {PlainWithOptions<V>::forward, LstmWithOptions<V>::forward, Gru::forward,
       ResetBefore<V>::reset, ResetBefore<V>::candidate, ProjectedGru::forward},
      {PlainWithOptions<V>::backward, LstmWithOptions<V>::backward, Gru::backward,
       ResetBefore<V>::reset_gradient, ResetBefore<V>::candidate_gradient, ProjectedGru::backward}};
}
