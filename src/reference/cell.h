// One step of one row, forward.
#pragma once

#include <utility>

#include "reference/network.h"
#include "reference/number.h"

namespace openrnn::reference {

template <class Real>
using Vector = std::vector<Real>;

/// Inputs and results of one step.
template <class Real>
struct Step {
  Vector<Real> x, h_before, c_before;
  Vector<Real> x_operand, h_operand;  // as operands of the products
  std::array<Vector<Real>, 4> gate;   // activated: lstm i f g o; gru r z n; rnn h
  Vector<Real> recurrent_n;           // gru: Rn h' + bRn
  Vector<Real> clip_slope;            // lstm: d(clamped cell) / d(cell)
  Vector<Real> emitted;               // lstm: o * tanh(c), before the projection
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

/// Element `row` of matrix * v.
template <class Real>
Real row_times(const Real* matrix, std::size_t row, const Vector<Real>& v) {
  Real sum(0.0);
  for (std::size_t k = 0; k < v.size(); ++k) sum += matrix[row * v.size() + k] * v[k];
  return sum;
}

/// W x + bW of gate k at unit u, and the forget bias.
template <class Real>
Real input_side(const Cell<Real>& cell, std::size_t k, std::size_t u, const Step<Real>& s) {
  const Real product =
      cell.at.skips ? s.x[u] : row_times(cell.params + cell.at.w[k], u, s.x_operand);
  const Real bias = cell.params[cell.at.bw[k] + u];
  const bool forgets = cell.net.mode == RnnMode::kLstm && k == kF && cell.net.forget_bias != 0.0;
  return product + (forgets ? bias + Real(cell.net.forget_bias) : bias);
}

/// R h' + bR of gate k at unit u.
template <class Real>
Real recurrent_side(const Cell<Real>& cell, std::size_t k, std::size_t u, const Step<Real>& s) {
  return row_times(cell.params + cell.at.r[k], u, s.h_operand) + cell.params[cell.at.br[k] + u];
}

template <class Real>
void plain_step(const Cell<Real>& cell, Step<Real>& s) {
  for (std::size_t u = 0; u < cell.net.units; ++u) {
    const Real a = input_side(cell, kH, u, s) + recurrent_side(cell, kH, u, s);
    const Real h = cell.net.mode == RnnMode::kRnnRelu ? relu(a) : tanh_of(a);
    s.gate[kH].push_back(h);
    s.h.push_back(kept_as(h, cell.net.dtype));
  }
}

template <class Real>
void gru_step(const Cell<Real>& cell, Step<Real>& s) {
  for (std::size_t u = 0; u < cell.net.units; ++u) {
    const auto sum = [&](std::size_t k) {
      return input_side(cell, k, u, s) + recurrent_side(cell, k, u, s);
    };
    const Real r = sigmoid(sum(kR));
    const Real z = sigmoid(sum(kZ));
    const Real q = recurrent_side(cell, kN, u, s);
    const Real n = tanh_of(input_side(cell, kN, u, s) + r * q);
    s.gate[kR].push_back(r);
    s.gate[kZ].push_back(z);
    s.gate[kN].push_back(n);
    s.recurrent_n.push_back(q);
    s.h.push_back(kept_as((Real(1.0) - z) * n + z * s.h_before[u], cell.net.dtype));
  }
}

template <class Real>
void lstm_step(const Cell<Real>& cell, Step<Real>& s) {
  const Network& net = cell.net;
  for (std::size_t u = 0; u < net.units; ++u) {
    const auto sum = [&](std::size_t k) {
      return input_side(cell, k, u, s) + recurrent_side(cell, k, u, s);
    };
    const Real i = sigmoid(sum(kI));
    const Real f = sigmoid(sum(kF));
    const Real g = tanh_of(sum(kC));
    const Real o = sigmoid(sum(kO));
    Real c = f * s.c_before[u] + i * g;
    Real slope(1.0);
    if (net.clip) {
      const auto [low, high] = *net.clip;
      slope = clamp_slope(c, low, high);
      c = clamp_to(c, low, high);
    }
    c = kept_as(c, net.dtype);
    s.gate[kI].push_back(i);
    s.gate[kF].push_back(f);
    s.gate[kC].push_back(g);
    s.gate[kO].push_back(o);
    s.clip_slope.push_back(slope);
    s.c.push_back(c);
    s.emitted.push_back(o * tanh_of(c));
  }
  const Vector<Real> m = net.projects ? operand(net, s.emitted) : s.emitted;
  for (std::size_t j = 0; j < net.hidden; ++j) {
    const Real h = net.projects ? row_times(cell.params + cell.at.wp, j, m) : m[j];
    s.h.push_back(kept_as(h, net.dtype));
  }
}

/// Computes everything from `x`, `h_before` and `c_before`.
template <class Real>
void run_step(const Cell<Real>& cell, Step<Real>& step) {
  step.x_operand = operand(cell.net, step.x);
  step.h_operand = operand(cell.net, step.h_before);
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
