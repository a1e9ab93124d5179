// One step of one row, forward.
#pragma once

#include <utility>

#include "reference/norm.h"

namespace openrnn::reference {

/// What is random in a step; an empty one is off.
struct Masks {
  Vector<double> state;      // of the state that enters the recurrent products
  Vector<double> candidate;  // of g, n or the new state
  // How much of the value before each unit of h and of c keeps: 0 or 1, and the rate outside of
  // training.
  Vector<double> kept, kept_cell;
};

/// Inputs and results of one step.
template <class Real>
struct Step {
  Masks masks;
  Vector<Real> x, h_before, c_before;
  Vector<Real> h_entering;              // h_before, masked
  Vector<Real> x_operand, h_operand;    // as operands of the products
  std::array<Function<Real>, 4> gate;   // lstm i f g o; gru r z n; rnn h; slopes by the sums
  NormalizedSide<Real> input_norm;      // of W x, or of the sums W x + R h'
  NormalizedSide<Real> recurrent_norm;  // of R h'
  Normalized<Real> cell_norm;           // lstm: of the cell
  Vector<Real> recurrent_n;             // gru: Rn h' + bRn
  Vector<Real> reset_h, reset_operand;  // gru, reset before the product: r * h'
  Vector<Real> clip_slope;              // lstm: d(clamped cell) / d(cell)
  Function<Real> cell;                  // lstm: the cell's activation
  Vector<Real> c_now;                   // lstm: the cell before zoneout, which o and it see
  Vector<Real> emitted;                 // what a projection reads: lstm o * cell, else the state
  Vector<Real> projected, proj_slope;   // with a clip: Wp emitted, and d(clamped one) / d(it)
  Vector<Real> h, c;
};

/// The network, one of its pseudo-layers and the parameters.
template <class Real>
struct Cell {
  const Network& net;
  const PseudoLayer& at;
  const Real* params;
};

/// One row of activations, or of gradients, as an operand of the network's products.
template <class Real>
Vector<Real> operand(const Network& net, Vector<Real> v) {
  if (net.weights == WeightsDType::kInt8) return as_int8(std::move(v));
  for (Real& a : v) {
    if (net.math == Math::kBf16) a = as_bf16(a);
    if (net.math == Math::kBf16x3) a = as_split(a);
  }
  return v;
}

/// The candidate at unit u as the state takes it in.
template <class Real>
Real masked_candidate(const Step<Real>& s, std::size_t u, const Real& value) {
  return s.masks.candidate.empty() ? value : times_mask(value, s.masks.candidate[u]);
}

/// `part` of a value, without a rounding where it is all or nothing of it.
template <class Real>
Real part_of(const Real& value, double part) {
  if (part == 0.0) return Real(0.0);
  return part == 1.0 ? value : times_mask(value, part);
}

/// The state at unit u after zoneout.
template <class Real>
Real zoned_out(const Network& net, const Vector<double>& kept, std::size_t u, const Real& before,
               const Real& now) {
  if (kept.empty() || kept[u] == 0.0) return now;
  if (kept[u] == 1.0) return before;
  return kept_as(times_mask(before, kept[u]) + times_mask(now, 1.0 - kept[u]), net.dtype);
}

/// Element `row` of matrix * v.
template <class Real>
Real row_times(const Real* matrix, std::size_t row, const Vector<Real>& v) {
  Real sum(0.0);
  for (std::size_t k = 0; k < v.size(); ++k) sum += matrix[row * v.size() + k] * v[k];
  return sum;
}

template <class Real>
Real apply_gate(const Cell<Real>& cell, std::size_t k, const Real& a, Step<Real>& s) {
  return apply(function_of(cell.net, k), a, cell.net.gate_clip, s.gate[k]);
}

/// W x of gate k at unit u.
template <class Real>
Real input_product(const Cell<Real>& cell, std::size_t k, std::size_t u, const Step<Real>& s) {
  return cell.at.skips ? s.x[u] : row_times(cell.params + cell.at.w[k], u, s.x_operand);
}

/// Layer normalization of the products of a step, or of their sums.
template <class Real>
void normalize_products(const Cell<Real>& cell, Step<Real>& s) {
  const Network& net = cell.net;
  const auto of_state = [&](std::size_t k, std::size_t u) {
    return row_times(cell.params + cell.at.r[k], u, s.h_operand);
  };
  const bool apart = normalizes_products(net);
  const auto of_input = [&](std::size_t k, std::size_t u) {
    const Real product = input_product(cell, k, u, s);
    return apart ? product : product + of_state(k, u);
  };
  s.input_norm = normalized_side(net, cell.params, cell.at.input_gain, of_input);
  if (!apart) return;
  s.recurrent_norm = normalized_side(net, cell.params, cell.at.recurrent_gain, of_state);
}

/// W x + bW of gate k at unit u, and the forget bias; of normalized sums all but bR.
template <class Real>
Real input_side(const Cell<Real>& cell, std::size_t k, std::size_t u, const Step<Real>& s) {
  const bool normed = cell.net.norm != LayerNorm::kNone;
  Real sum = normed ? value_of(cell.net, s.input_norm, k, u) : input_product(cell, k, u, s);
  const bool forgets = cell.net.mode == RnnMode::kLstm && k == kF && cell.net.forget_bias != 0.0;
  const Real bias = cell.net.input_bias ? cell.params[cell.at.bw[k] + u] : Real(0.0);
  if (forgets) return sum + (bias + Real(cell.net.forget_bias));
  return cell.net.input_bias ? sum + bias : sum;
}

/// R h' + bR of gate k at unit u, of the state or of what the reset gate has left of it.
template <class Real>
Real recurrent_side(const Cell<Real>& cell, std::size_t k, std::size_t u, const Step<Real>& s,
                    const Vector<Real>& h_operand) {
  Real product(0.0);
  if (cell.net.norm == LayerNorm::kNone) {
    product = row_times(cell.params + cell.at.r[k], u, h_operand);
  } else if (normalizes_products(cell.net)) {
    product = value_of(cell.net, s.recurrent_norm, k, u);
  }
  return cell.net.recurrent_bias ? product + cell.params[cell.at.br[k] + u] : product;
}

template <class Real>
Real both_sides(const Cell<Real>& cell, std::size_t k, std::size_t u, const Step<Real>& s) {
  return input_side(cell, k, u, s) + recurrent_side(cell, k, u, s, s.h_operand);
}

/// h from what a step puts out: through the projection, if there is one, and zoneout.
template <class Real>
void put_out(const Cell<Real>& cell, Step<Real>& s) {
  const Network& net = cell.net;
  const Vector<Real> m = net.projects ? operand(net, s.emitted) : s.emitted;
  for (std::size_t j = 0; j < net.hidden; ++j) {
    Real h = net.projects ? row_times(cell.params + cell.at.wp, j, m) : m[j];
    if (net.proj_clip) {
      const auto [low, high] = *net.proj_clip;
      s.projected.push_back(h);
      s.proj_slope.push_back(clamp_slope(h, low, high));
      h = clamp_to(h, low, high);
    }
    s.h.push_back(zoned_out(net, s.masks.kept, j, s.h_before[j], kept_as(h, net.dtype)));
  }
}

template <class Real>
void plain_step(const Cell<Real>& cell, Step<Real>& s) {
  for (std::size_t u = 0; u < cell.net.units; ++u) {
    const Real m = apply_gate(cell, kH, both_sides(cell, kH, u, s), s);
    s.emitted.push_back(masked_candidate(s, u, m));
  }
  put_out(cell, s);
}

template <class Real>
void gru_step(const Cell<Real>& cell, Step<Real>& s) {
  const Network& net = cell.net;
  for (std::size_t u = 0; u < net.units; ++u) {
    const Real r = apply_gate(cell, kR, both_sides(cell, kR, u, s), s);
    apply_gate(cell, kZ, both_sides(cell, kZ, u, s), s);
    if (!net.reset_after) s.reset_h.push_back(r * s.h_entering[u]);
  }
  s.reset_operand = operand(net, s.reset_h);
  for (std::size_t u = 0; u < net.units; ++u) {
    const Real r = s.gate[kR].value[u], z = s.gate[kZ].value[u];
    const Real q = recurrent_side(cell, kN, u, s, net.reset_after ? s.h_operand : s.reset_operand);
    const Real n =
        apply_gate(cell, kN, input_side(cell, kN, u, s) + (net.reset_after ? r * q : q), s);
    s.recurrent_n.push_back(q);
    const Real& before = net.projects ? s.c_before[u] : s.h_before[u];
    Real m = (Real(1.0) - z) * masked_candidate(s, u, n) + z * before;
    if (net.projects) {
      m = kept_as(m, net.dtype);
      s.c.push_back(zoned_out(net, s.masks.kept_cell, u, before, m));
    }
    s.emitted.push_back(m);
  }
  put_out(cell, s);
}

/// The sum of gate k and what its peephole adds of cell c.
template <class Real>
Real seen(const Cell<Real>& cell, std::size_t k, std::size_t u, const Step<Real>& s,
          const Real& c) {
  const Real sum = both_sides(cell, k, u, s);
  return cell.net.peepholes ? sum + cell.params[cell.at.peephole[k] + u] * c : sum;
}

/// What the output sees of the cell: the cell, or its normalization, which may take its place.
template <class Real>
Vector<Real> normalize_cell(const Cell<Real>& cell, Step<Real>& s) {
  const Network& net = cell.net;
  if (net.cell_norm == LayerNormCell::kNone) return s.c_now;
  s.cell_norm =
      normalized(net, s.c_now, [&](std::size_t u) { return cell.params[cell.at.cell_gain + u]; });
  Vector<Real> seen_by_output;
  for (std::size_t u = 0; u < net.units; ++u) {
    const Real c = s.cell_norm.value[u] + cell.params[cell.at.cell_bias + u];
    const bool carried = net.cell_norm == LayerNormCell::kCarried;
    seen_by_output.push_back(carried ? kept_as(c, net.dtype) : c);
  }
  if (net.cell_norm == LayerNormCell::kCarried) s.c_now = seen_by_output;
  return seen_by_output;
}

template <class Real>
void lstm_step(const Cell<Real>& cell, Step<Real>& s) {
  const Network& net = cell.net;
  for (std::size_t u = 0; u < net.units; ++u) {
    const Real before = s.c_before[u];
    const Real i = apply_gate(cell, kI, seen(cell, kI, u, s, before), s);
    const Real f =
        net.coupled ? Real(1.0) - i : apply_gate(cell, kF, seen(cell, kF, u, s, before), s);
    const Real g = apply_gate(cell, kC, both_sides(cell, kC, u, s), s);
    Real c = f * before + i * masked_candidate(s, u, g);
    Real slope(1.0);
    if (net.clip) {
      const auto [low, high] = *net.clip;
      slope = clamp_slope(c, low, high);
      c = clamp_to(c, low, high);
    }
    if (net.coupled) s.gate[kF].value.push_back(f);
    s.clip_slope.push_back(slope);
    s.c_now.push_back(net.cell_norm == LayerNormCell::kCarried ? c : kept_as(c, net.dtype));
  }
  const Vector<Real> seen_by_output = normalize_cell(cell, s);
  for (std::size_t u = 0; u < net.units; ++u) {
    const Real o = apply_gate(cell, kO, seen(cell, kO, u, s, s.c_now[u]), s);
    s.emitted.push_back(o * apply(net.cell_function, seen_by_output[u], {}, s.cell));
    s.c.push_back(zoned_out(net, s.masks.kept_cell, u, s.c_before[u], s.c_now[u]));
  }
  put_out(cell, s);
}

/// Computes everything from `masks`, `x`, `h_before` and `c_before`.
template <class Real>
void run_step(const Cell<Real>& cell, Step<Real>& step) {
  step.x_operand = operand(cell.net, step.x);
  step.h_entering = step.h_before;
  for (std::size_t j = 0; j < step.masks.state.size(); ++j) {
    step.h_entering[j] = times_mask(step.h_before[j], step.masks.state[j]);
  }
  step.h_operand = operand(cell.net, step.h_entering);
  if (cell.net.norm != LayerNorm::kNone) normalize_products(cell, step);
  switch (cell.net.mode) {
    case RnnMode::kLstm:
      return lstm_step(cell, step);
    case RnnMode::kGru:
      return gru_step(cell, step);
    default:
      return plain_step(cell, step);
  }
}

}  // namespace openrnn::reference
