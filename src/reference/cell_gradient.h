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

// Each of the three takes the gradient of the state after the step. It stores in `state` the part
// of the gradient of the state before that does not pass through R.

template <class Real>
GateGradients<Real> plain_gradient(const Cell<Real>& cell, const Step<Real>& s,
                                   StateGradient<Real>& state) {
  GateGradients<Real> d;
  for (std::size_t u = 0; u < cell.net.units; ++u) {
    const Real slope = cell.net.mode == RnnMode::kRnnRelu ? relu_slope(s.gate[kH][u])
                                                          : Real(1.0) - s.h[u] * s.h[u];
    d.input[kH].push_back(state.dh[u] * slope);
    state.dh[u] = Real(0.0);
  }
  d.recurrent = d.input;
  return d;
}

template <class Real>
GateGradients<Real> gru_gradient(const Cell<Real>& cell, const Step<Real>& s,
                                 StateGradient<Real>& state) {
  const Real one(1.0);
  GateGradients<Real> d;
  for (std::size_t u = 0; u < cell.net.units; ++u) {
    const Real r = s.gate[kR][u], z = s.gate[kZ][u], n = s.gate[kN][u];
    const Real dh = state.dh[u];
    const Real dn = dh * (one - z) * (one - n * n);
    d.input[kR].push_back(dn * s.recurrent_n[u] * r * (one - r));
    d.input[kZ].push_back(dh * (s.h_before[u] - n) * z * (one - z));
    d.input[kN].push_back(dn);
    d.recurrent[kN].push_back(dn * r);
    state.dh[u] = dh * z;
  }
  d.recurrent[kR] = d.input[kR];
  d.recurrent[kZ] = d.input[kZ];
  return d;
}

template <class Real>
GateGradients<Real> lstm_gradient(const Cell<Real>& cell, const Step<Real>& s,
                                  const Vector<Real>& dm, StateGradient<Real>& state) {
  const Real one(1.0);
  GateGradients<Real> d;
  for (std::size_t u = 0; u < cell.net.units; ++u) {
    const Real i = s.gate[kI][u], f = s.gate[kF][u], g = s.gate[kC][u], o = s.gate[kO][u];
    const Real t = tanh_of(s.c[u]);
    const Real dc = (state.dc[u] + dm[u] * o * (one - t * t)) * s.clip_slope[u];
    d.input[kI].push_back(dc * g * i * (one - i));
    d.input[kF].push_back(dc * s.c_before[u] * f * (one - f));
    d.input[kC].push_back(dc * i * (one - g * g));
    d.input[kO].push_back(dm[u] * t * o * (one - o));
    state.dc[u] = dc * f;
  }
  d.recurrent = d.input;
  state.dh.assign(cell.net.hidden, Real(0.0));
  return d;
}

/// The gradient of o * tanh(c): through the projection, whose own gradient it adds.
template <class Real>
Vector<Real> emitted_gradient(const Cell<Real>& cell, const Step<Real>& s, const Vector<Real>& dh,
                              Real* dparams) {
  const Network& net = cell.net;
  if (!net.projects) return dh;
  Vector<Real> dm(net.units, Real(0.0));
  const Vector<Real> d = operand(net, dh), m = operand(net, s.emitted);
  for (std::size_t j = 0; j < net.hidden; ++j) {
    for (std::size_t u = 0; u < net.units; ++u) {
      const std::size_t place = cell.at.wp + j * net.units + u;
      dm[u] += cell.params[place] * d[j];
      dparams[place] += d[j] * m[u];
    }
  }
  return dm;
}

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

/// Adds this step's part to dx and dparams, and replaces `state`, the gradient of the state after
/// the step, by that of the state before it.
template <class Real>
void step_gradient(const Cell<Real>& cell, const Step<Real>& s, StateGradient<Real>& state,
                   Vector<Real>& dx, Real* dparams) {
  const auto gate_gradients = [&] {
    if (cell.net.mode == RnnMode::kGru) return gru_gradient(cell, s, state);
    if (cell.net.mode != RnnMode::kLstm) return plain_gradient(cell, s, state);
    return lstm_gradient(cell, s, emitted_gradient(cell, s, state.dh, dparams), state);
  };
  const GateGradients<Real> d = gate_gradients();
  for (std::size_t k = 0; k < cell.net.gates; ++k) {
    if (cell.at.skips) {
      add_to(dx.data(), d.input[k]);
    } else {
      through_matrix(cell.params + cell.at.w[k], operand(cell.net, d.input[k]), s.x_operand, dx,
                     dparams + cell.at.w[k]);
    }
    through_matrix(cell.params + cell.at.r[k], operand(cell.net, d.recurrent[k]), s.h_operand,
                   state.dh, dparams + cell.at.r[k]);
    add_to(dparams + cell.at.bw[k], d.input[k]);
    add_to(dparams + cell.at.br[k], d.recurrent[k]);
  }
}

}  // namespace openrnn::reference
