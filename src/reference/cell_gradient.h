// One step of one row, backward.
#pragma once

#include "reference/cell.h"

namespace openrnn::reference {

/// Gradients with respect to a row's state; dc is empty unless lstm.
template <class Real>
struct StateGradient {
  Vector<Real> dh, dc;
};

/// Gradients of a step's pre-activations by gate: the sums W x + bW, and the sums R h' + bR.
template <class Real>
struct GateGradients {
  std::array<Vector<Real>, 4> input, recurrent;
};

/// v += matrixT * d and dmatrix += d * inputT.
template <class Real>
void through_matrix(const Real* matrix, const Vector<Real>& d, const Vector<Real>& input,
                    Vector<Real>& v, Real* dmatrix) {
  for (std::size_t u = 0; u < d.size(); ++u) {
    for (std::size_t k = 0; k < input.size(); ++k) {
      v[k] += matrix[u * input.size() + k] * d[u];
      dmatrix[u * input.size() + k] += d[u] * input[k];
    }
  }
}

template <class Real>
void add_to(Real* sum, const Vector<Real>& terms) {
  for (std::size_t u = 0; u < terms.size(); ++u) sum[u] += terms[u];
}

/// What of the gradient of a state passes to the step's own value, and what to the state before.
template <class Real>
Real to_now(const Vector<double>& kept, std::size_t u, const Real& d) {
  return kept.empty() ? d : part_of(d, 1.0 - kept[u]);
}
template <class Real>
Real to_before(const Vector<double>& kept, std::size_t u, const Real& d) {
  return kept.empty() ? Real(0.0) : part_of(d, kept[u]);
}

// Each of the three takes the gradient of the state after the step, but for what zoneout passes
// on, of which `dm` is that of what the step put out. It stores in `state` the part of the gradient
// of the state before that passes neither through R nor through zoneout of h; `dentering` is of the
// state that enters the products.

template <class Real>
GateGradients<Real> plain_gradient(const Cell<Real>& cell, const Step<Real>& s,
                                   const Vector<Real>& dm, StateGradient<Real>& state) {
  GateGradients<Real> d;
  for (std::size_t u = 0; u < cell.net.units; ++u) {
    d.input[kH].push_back(masked_candidate(s, u, dm[u]) * s.gate[kH].slope[u]);
  }
  d.recurrent = d.input;
  state.dh.assign(cell.net.hidden, Real(0.0));
  return d;
}

template <class Real>
GateGradients<Real> gru_gradient(const Cell<Real>& cell, const Step<Real>& s,
                                 const Vector<Real>& dm, StateGradient<Real>& state,
                                 Vector<Real>& dentering, Real* dparams) {
  const Network& net = cell.net;
  const Real one(1.0);
  GateGradients<Real> d;
  for (std::size_t u = 0; u < net.units; ++u) {
    const Real r = s.gate[kR].value[u], z = s.gate[kZ].value[u], n = s.gate[kN].value[u];
    const Real before = net.projects ? s.c_before[u] : s.h_before[u];
    const Vector<double>& kept = s.masks.kept_cell;
    const Real dh = net.projects ? dm[u] + to_now(kept, u, state.dc[u]) : dm[u];
    const Real dn = masked_candidate(s, u, dh * (one - z)) * s.gate[kN].slope[u];
    d.input[kZ].push_back(dh * (before - masked_candidate(s, u, n)) * s.gate[kZ].slope[u]);
    d.input[kN].push_back(dn);
    d.recurrent[kN].push_back(net.reset_after ? dn * r : dn);
    if (net.reset_after) d.input[kR].push_back(dn * s.recurrent_n[u] * s.gate[kR].slope[u]);
    if (net.projects) {
      state.dc[u] = kept.empty() ? dh * z : dh * z + to_before(kept, u, state.dc[u]);
    } else {
      state.dh[u] = dh * z;
    }
  }
  if (net.projects) state.dh.assign(net.hidden, Real(0.0));
  if (!net.reset_after) {
    // Through R of n to r * h', and on to both.
    Vector<Real> dreset(net.units, Real(0.0));
    through_matrix(cell.params + cell.at.r[kN], operand(net, d.recurrent[kN]), s.reset_operand,
                   dreset, dparams + cell.at.r[kN]);
    for (std::size_t u = 0; u < net.units; ++u) {
      d.input[kR].push_back(dreset[u] * s.h_entering[u] * s.gate[kR].slope[u]);
      dentering[u] += dreset[u] * s.gate[kR].value[u];
    }
  }
  d.recurrent[kR] = d.input[kR];
  d.recurrent[kZ] = d.input[kZ];
  return d;
}

/// The gradient of the cell right after its update and clip, without what the o gate's peephole
/// adds: `d_seen` is that of what the output sees, `dc` that of the cell that is carried.
template <class Real>
Vector<Real> cell_gradient(const Cell<Real>& cell, const Step<Real>& s, const Vector<Real>& d_seen,
                           const Vector<Real>& dc, Real* dparams) {
  const Network& net = cell.net;
  Vector<Real> d = d_seen;
  const bool carried = net.cell_norm != LayerNormCell::kOutput;
  for (std::size_t u = 0; carried && u < net.units; ++u) d[u] += dc[u];
  if (net.cell_norm == LayerNormCell::kNone) return d;
  add_to(dparams + cell.at.cell_bias, d);
  d = normalized_gradient(
      s.cell_norm, d, [&](std::size_t u) { return cell.params[cell.at.cell_gain + u]; },
      [&](std::size_t u) -> Real& { return dparams[cell.at.cell_gain + u]; });
  for (std::size_t u = 0; !carried && u < net.units; ++u) d[u] += dc[u];
  return d;
}

template <class Real>
GateGradients<Real> lstm_gradient(const Cell<Real>& cell, const Step<Real>& s,
                                  const Vector<Real>& dm, StateGradient<Real>& state,
                                  Real* dparams) {
  const Network& net = cell.net;
  GateGradients<Real> d;
  Vector<Real> d_seen, dc_after = state.dc;
  for (std::size_t u = 0; u < net.units; ++u) {
    const Real do_ = dm[u] * s.cell.value[u] * s.gate[kO].slope[u];
    d.input[kO].push_back(do_);
    d_seen.push_back(dm[u] * s.gate[kO].value[u] * s.cell.slope[u]);
    dc_after[u] = to_now(s.masks.kept_cell, u, state.dc[u]);
    if (net.peepholes) dc_after[u] += do_ * cell.params[cell.at.peephole[kO] + u];
  }
  const Vector<Real> dcell = cell_gradient(cell, s, d_seen, dc_after, dparams);
  for (std::size_t u = 0; u < net.units; ++u) {
    const Real i = s.gate[kI].value[u], f = s.gate[kF].value[u];
    const Real g = masked_candidate(s, u, s.gate[kC].value[u]), before = s.c_before[u];
    const auto peephole = [&](std::size_t k) { return cell.params[cell.at.peephole[k] + u]; };
    const Real do_ = d.input[kO][u], dc = dcell[u] * s.clip_slope[u];
    const Vector<double>& kept = s.masks.kept_cell;
    const Real di = dc * (net.coupled ? g - before : g) * s.gate[kI].slope[u];
    const Real df = net.coupled ? Real(0.0) : dc * before * s.gate[kF].slope[u];
    d.input[kI].push_back(di);
    d.input[kF].push_back(df);
    d.input[kC].push_back(masked_candidate(s, u, dc * i) * s.gate[kC].slope[u]);
    state.dc[u] = kept.empty() ? dc * f : dc * f + to_before(kept, u, state.dc[u]);
    if (!net.peepholes) continue;
    state.dc[u] += di * peephole(kI);
    state.dc[u] += df * peephole(kF);
    dparams[cell.at.peephole[kI] + u] += di * before;
    dparams[cell.at.peephole[kF] + u] += df * before;
    dparams[cell.at.peephole[kO] + u] += do_ * s.c_now[u];
  }
  d.recurrent = d.input;
  state.dh.assign(net.hidden, Real(0.0));
  return d;
}

/// The gradient of what a step put out: through the projection, whose own gradient it adds.
template <class Real>
Vector<Real> emitted_gradient(const Cell<Real>& cell, const Step<Real>& s, const Vector<Real>& dh,
                              Real* dparams) {
  const Network& net = cell.net;
  if (!net.projects) return dh;
  Vector<Real> passed = dh;
  for (std::size_t j = 0; net.proj_clip && j < net.hidden; ++j) {
    passed[j] = passed[j] * s.proj_slope[j];
  }
  Vector<Real> dm(net.units, Real(0.0));
  through_matrix(cell.params + cell.at.wp, operand(net, passed), operand(net, s.emitted), dm,
                 dparams + cell.at.wp);
  return dm;
}

/// From gradients of normalized sums to those of the products.
template <class Real>
void through_norms(const Cell<Real>& cell, const Step<Real>& s, GateGradients<Real>& d,
                   Real* dparams) {
  const PseudoLayer& at = cell.at;
  side_gradient(cell.net, cell.params, at.input_gain, s.input_norm, d.input, dparams);
  if (!normalizes_products(cell.net)) {
    d.recurrent = d.input;
    return;
  }
  side_gradient(cell.net, cell.params, at.recurrent_gain, s.recurrent_norm, d.recurrent, dparams);
}

/// Adds this step's part to dx and dparams, and replaces `state`, the gradient of the state after
/// the step, by that of the state before it.
template <class Real>
void step_gradient(const Cell<Real>& cell, const Step<Real>& s, StateGradient<Real>& state,
                   Vector<Real>& dx, Real* dparams) {
  const Network& net = cell.net;
  Vector<Real> dentering(net.hidden, Real(0.0)), passed_on = state.dh;
  for (std::size_t j = 0; j < net.hidden; ++j) {
    passed_on[j] = to_before(s.masks.kept, j, state.dh[j]);
    state.dh[j] = to_now(s.masks.kept, j, state.dh[j]);
  }
  const auto gate_gradients = [&] {
    const Vector<Real> dm = emitted_gradient(cell, s, state.dh, dparams);
    if (net.mode == RnnMode::kGru) return gru_gradient(cell, s, dm, state, dentering, dparams);
    if (net.mode == RnnMode::kLstm) return lstm_gradient(cell, s, dm, state, dparams);
    return plain_gradient(cell, s, dm, state);
  };
  GateGradients<Real> d = gate_gradients();
  for (std::size_t k = 0; k < net.gates; ++k) {
    if (net.input_bias) add_to(dparams + cell.at.bw[k], d.input[k]);
    if (net.recurrent_bias) add_to(dparams + cell.at.br[k], d.recurrent[k]);
  }
  if (net.norm != LayerNorm::kNone) through_norms(cell, s, d, dparams);
  for (std::size_t k = 0; k < net.gates; ++k) {
    if (cell.at.skips) {
      add_to(dx.data(), d.input[k]);
    } else {
      through_matrix(cell.params + cell.at.w[k], operand(net, d.input[k]), s.x_operand, dx,
                     dparams + cell.at.w[k]);
    }
    // gru_gradient has been through R of n.
    const bool reset = net.mode == RnnMode::kGru && !net.reset_after && k == kN;
    if (!reset) {
      through_matrix(cell.params + cell.at.r[k], operand(net, d.recurrent[k]), s.h_operand,
                     dentering, dparams + cell.at.r[k]);
    }
  }
  for (std::size_t j = 0; j < net.hidden; ++j) {
    state.dh[j] +=
        s.masks.state.empty() ? dentering[j] : times_mask(dentering[j], s.masks.state[j]);
    if (!s.masks.kept.empty()) state.dh[j] += passed_on[j];
  }
}

}  // namespace openrnn::reference
