// Whole sequences, backward: from the top layer down, each row's steps in reverse.
#pragma once

#include "reference/cell_gradient.h"
#include "reference/sequence.h"

namespace openrnn::reference {

template <class Real>
struct BackwardInput {
  const Real* params;
  typename Source<Real>::Type dy, dhn, dcn;
  bool by_row = false;
};

/// In the caller's layout; dx is zero at padded steps.
template <class Real>
struct BackwardResult {
  Vector<Real> dx, dh0, dc0, dparams;
  std::vector<Vector<Real>> rows;  // by_row: the part of dparams that each row of the batch adds
};

/// One row in one direction, last step first. `doutput` holds the gradient of the layer's output;
/// the gradient of its input is added to `dinput`.
template <class Real>
void row_gradient(const Cell<Real>& cell, const Call& call, std::size_t direction, std::size_t b,
                  const std::vector<Step<Real>>& steps, const std::vector<Vector<Real>>& doutput,
                  std::vector<Vector<Real>>& dinput, StateGradient<Real>& state, Real* dparams) {
  const std::size_t length = call.lengths[b];
  for (std::size_t n = length; n-- > 0;) {
    const std::size_t t = direction == 0 ? n : length - 1 - n;
    const Vector<Real>& dy = doutput[t * call.batch + b];
    for (std::size_t j = 0; j < cell.net.hidden; ++j) {
      state.dh[j] += dy[direction * cell.net.hidden + j];
    }
    step_gradient(cell, steps[t * call.batch + b], state, dinput[t * call.batch + b], dparams);
  }
}

/// Both directions of one layer over all rows.
template <class Real>
void layer_gradient(const Network& net, const Call& call, std::size_t layer,
                    const BackwardInput<Real>& in, const Tape<Real>& tape,
                    const std::vector<Vector<Real>>& doutput, std::vector<Vector<Real>>& dinput,
                    BackwardResult<Real>& result) {
  const bool has_cell = net.has_cell;
  const std::size_t count = net.pseudo.size();
  for (std::size_t d = 0; d < net.dirs; ++d) {
    const std::size_t p = layer * net.dirs + d;
    const Cell<Real> cell{net, net.pseudo[p], in.params};
    for (std::size_t b = 0; b < call.batch; ++b) {
      const std::size_t h_place = call.state_place(p, count, b, net.hidden);
      const std::size_t c_place = call.state_place(p, count, b, net.units);
      StateGradient<Real> state;
      state.dh = read<Real>(in.dhn, h_place, net.hidden);
      if (has_cell) state.dc = read<Real>(in.dcn, c_place, net.units);
      Vector<Real>& dparams = in.by_row ? result.rows[b] : result.dparams;
      row_gradient(cell, call, d, b, tape[p], doutput, dinput, state, dparams.data());
      std::copy(state.dh.begin(), state.dh.end(),
                result.dh0.begin() + static_cast<std::ptrdiff_t>(h_place));
      std::copy(state.dc.begin(), state.dc.end(),
                result.dc0.begin() + static_cast<std::ptrdiff_t>(c_place));
    }
  }
}

template <class Real>
BackwardResult<Real> backward(const Network& net, const Call& call, const Tape<Real>& tape,
                              const BackwardInput<Real>& in) {
  const std::size_t steps = call.max_time * call.batch, width = net.dirs * net.hidden;
  BackwardResult<Real> result;
  result.dparams.assign(net.size, Real(0.0));
  if (in.by_row) result.rows.assign(call.batch, result.dparams);
  result.dh0.assign(net.pseudo.size() * call.batch * net.hidden, Real(0.0));
  if (net.has_cell) {
    result.dc0.assign(net.pseudo.size() * call.batch * net.units, Real(0.0));
  }

  std::vector<Vector<Real>> doutput(steps), dinput;
  for_valid_steps(call, [&](std::size_t t, std::size_t b) {
    doutput[t * call.batch + b] = read<Real>(in.dy, call.step_place(t, b, width), width);
  });
  for (std::size_t layer = net.layers; layer-- > 0;) {
    dinput.assign(steps, Vector<Real>(net.pseudo[layer * net.dirs].input, Real(0.0)));
    layer_gradient(net, call, layer, in, tape, doutput, dinput, result);
    doutput = std::move(dinput);
    if (!call.drops(net) || layer == 0) continue;
    for_valid_steps(call, [&](std::size_t t, std::size_t b) {
      const Vector<double> mask = mask_of(net, call, layer - 1, t, b);
      Vector<Real>& row = doutput[t * call.batch + b];
      for (std::size_t k = 0; k < width; ++k) row[k] = times_mask(row[k], mask[k]);
    });
  }
  for (const Vector<Real>& row : result.rows) {
    for (std::size_t k = 0; k < net.size; ++k) result.dparams[k] += row[k];
  }
  const std::size_t input = net.pseudo[0].input;
  result.dx.assign(steps * input, Real(0.0));
  for_valid_steps(call, [&](std::size_t t, std::size_t b) {
    const Vector<Real>& row = doutput[t * call.batch + b];
    std::copy(row.begin(), row.end(),
              result.dx.begin() + static_cast<std::ptrdiff_t>(call.step_place(t, b, input)));
  });
  return result;
}

}  // namespace openrnn::reference
