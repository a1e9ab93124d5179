// One step of one row, forward.
#pragma once

#include <utility>

#include "reference/network.h"
#include "reference/number.h"

namespace openrnn::reference {

template <class Real>
using Vector = std::vector<Real>;

/// A function at each unit: its argument, before a clip, its value, and its derivative by the
/// argument.
template <class Real>
struct Function {
  Vector<Real> argument, value, slope;
};

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
  Vector<Real> recurrent_n;             // gru: Rn h' + bRn
  Vector<Real> reset_h, reset_operand;  // gru, reset before the product: r * h'
  Vector<Real> clip_slope;              // lstm: d(clamped cell) / d(cell)
  Function<Real> cell;                  // lstm: the cell's activation
  Vector<Real> c_now;                   // lstm: the cell before zoneout, which o and it see
  Vector<Real> emitted;                 // what a projection reads: lstm o * cell, rnn its state
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
Real activate(const CellActivation& f, const Real& a) {
  switch (f.kind) {
    case CellActivationKind::kSigmoid:
      return sigmoid(a);
    case CellActivationKind::kTanh:
      return tanh_of(a);
    case CellActivationKind::kRelu:
      return relu(a);
    default:
      return other_activation(f, a);
  }
}

/// The derivative where f(a) is y.
template <class Real>
Real slope_of(const CellActivation& f, const Real& a, const Real& y) {
  switch (f.kind) {
    case CellActivationKind::kSigmoid:
      return y * (Real(1.0) - y);
    case CellActivationKind::kTanh:
      return Real(1.0) - y * y;
    case CellActivationKind::kRelu:
      return relu_slope(y);
    default:
      return other_slope(f, a);
  }
}

/// Appends f(a), of a clamped first if there are bounds, and returns it.
template <class Real>
Real apply(const CellActivation& f, Real a, const std::optional<std::array<double, 2>>& clip,
           Function<Real>& result) {
  Real passed(1.0);
  result.argument.push_back(a);
  if (clip) {
    passed = clamp_slope(a, (*clip)[0], (*clip)[1]);
    a = clamp_to(a, (*clip)[0], (*clip)[1]);
  }
  const Real y = activate(f, a);
  const Real slope = slope_of(f, a, y);
  result.value.push_back(y);
  result.slope.push_back(clip ? slope * passed : slope);
  return y;
}

template <class Real>
Real apply_gate(const Cell<Real>& cell, std::size_t k, const Real& a, Step<Real>& s) {
  return apply(function_of(cell.net, k), a, cell.net.gate_clip, s.gate[k]);
}

/// W x + bW of gate k at unit u, and the forget bias.
template <class Real>
Real input_side(const Cell<Real>& cell, std::size_t k, std::size_t u, const Step<Real>& s) {
  Real sum = cell.at.skips ? s.x[u] : row_times(cell.params + cell.at.w[k], u, s.x_operand);
  const bool forgets = cell.net.mode == RnnMode::kLstm && k == kF && cell.net.forget_bias != 0.0;
  const Real bias = cell.net.input_bias ? cell.params[cell.at.bw[k] + u] : Real(0.0);
  if (forgets) return sum + (bias + Real(cell.net.forget_bias));
  return cell.net.input_bias ? sum + bias : sum;
}

/// R h' + bR of gate k at unit u, of the state or of what the reset gate has left of it.
template <class Real>
Real recurrent_side(const Cell<Real>& cell, std::size_t k, std::size_t u,
                    const Vector<Real>& h_operand) {
  const Real product = row_times(cell.params + cell.at.r[k], u, h_operand);
  return cell.net.recurrent_bias ? product + cell.params[cell.at.br[k] + u] : product;
}

template <class Real>
Real both_sides(const Cell<Real>& cell, std::size_t k, std::size_t u, const Step<Real>& s) {
  return input_side(cell, k, u, s) + recurrent_side(cell, k, u, s.h_operand);
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
    const Real q = recurrent_side(cell, kN, u, net.reset_after ? s.h_operand : s.reset_operand);
    const Real n =
        apply_gate(cell, kN, input_side(cell, kN, u, s) + (net.reset_after ? r * q : q), s);
    s.recurrent_n.push_back(q);
    const Real& before = s.h_before[u];
    const Real h = (Real(1.0) - z) * masked_candidate(s, u, n) + z * before;
    s.h.push_back(zoned_out(net, s.masks.kept, u, before, kept_as(h, net.dtype)));
  }
}

/// The sum of gate k and what its peephole adds of cell c.
template <class Real>
Real seen(const Cell<Real>& cell, std::size_t k, std::size_t u, const Step<Real>& s,
          const Real& c) {
  const Real sum = both_sides(cell, k, u, s);
  return cell.net.peepholes ? sum + cell.params[cell.at.peephole[k] + u] * c : sum;
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
    c = kept_as(c, net.dtype);
    const Real o = apply_gate(cell, kO, seen(cell, kO, u, s, c), s);
    if (net.coupled) s.gate[kF].value.push_back(f);
    s.clip_slope.push_back(slope);
    s.c_now.push_back(c);
    s.c.push_back(zoned_out(net, s.masks.kept_cell, u, before, c));
    s.emitted.push_back(o * apply(net.cell_function, c, {}, s.cell));
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
