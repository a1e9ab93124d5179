// Whole sequences, forward: layers, directions, rows and steps.
#pragma once

#include <algorithm>
#include <utility>

#include "reference/cell.h"

namespace openrnn::reference {

/// The sizes and layout of one call.
struct Call {
  std::size_t max_time = 0, batch = 0;
  bool time_major = true;
  std::vector<std::size_t> lengths;  // [B]
  bool training = false;             // whether masks are random
  DropoutKey key;

  /// The number that masks have for row b.
  std::uint32_t mask_row(std::size_t b) const {
    return static_cast<std::uint32_t>(static_cast<std::size_t>(key.first_row) + b);
  }
  bool drops(const Network& net) const { return training && net.dropout > 0.0; }

  /// Where the vector of step t and row b starts in a sequence array of that width.
  std::size_t step_place(std::size_t t, std::size_t b, std::size_t width) const {
    return (time_major ? t * batch + b : b * max_time + t) * width;
  }
  /// Where the state of row b starts; `count` is L*D and `s` one of them.
  std::size_t state_place(std::size_t s, std::size_t count, std::size_t b,
                          std::size_t width) const {
    return (time_major ? s * batch + b : b * count + s) * width;
  }
};

/// What a call's arrays are: of the numbers' values.
template <class Real>
struct Source {
  using Type = ConstArrayView;
};

/// `width` elements of an array from `place` on; zeros if there is no array.
template <class Real>
Vector<Real> read(const ConstArrayView& source, std::size_t place, std::size_t width) {
  Vector<Real> values(width, Real(0.0));
  if (source.data == nullptr) return values;
  for (std::size_t k = 0; k < width; ++k) {
    values[k] = Real(element(source, static_cast<std::int64_t>(place + k)));
  }
  return values;
}

/// The mask of one row on its way from `layer` to the next.
inline Vector<double> mask_of(const Network& net, const Call& call, std::size_t layer,
                              std::size_t t, std::size_t b) {
  Vector<double> mask(net.dirs * net.hidden);
  const DropoutRow row{static_cast<std::uint32_t>(layer), static_cast<std::uint32_t>(t),
                       call.mask_row(b)};
  dropout_mask<double>(call.key, row, net.dropout, mask);
  return mask;
}

/// The masks of a step of pseudo-layer p.
inline Masks masks_of(const Network& net, const Call& call, std::size_t p, std::size_t t,
                      std::size_t b) {
  const auto draw = [&](MaskOf masks, double rate, std::size_t time, std::size_t width) {
    Vector<double> mask(rate > 0.0 ? width : 0);
    const DropoutRow row{static_cast<std::uint32_t>(p), static_cast<std::uint32_t>(time),
                         call.mask_row(b)};
    dropout_mask<double>(key_of(call.key, masks), row, rate, mask);
    return mask;
  };
  // What dropout would drop keeps its value.
  const auto kept = [&](MaskOf masks, double rate, std::size_t width) {
    Vector<double> values = draw(masks, rate, t, width);
    for (double& value : values) value = !call.training ? rate : value == 0.0 ? 1.0 : 0.0;
    return values;
  };
  const double of_state = call.training && !net.drops_candidate ? net.recurrent_dropout : 0.0;
  const double of_candidate = call.training && net.drops_candidate ? net.recurrent_dropout : 0.0;
  return {.state = draw(MaskOf::kRecurrentState, of_state, 0, net.hidden),
          .candidate = draw(MaskOf::kCandidate, of_candidate, t, net.units),
          .kept = kept(MaskOf::kZoneout, net.zoneout, net.hidden),
          .kept_cell = kept(MaskOf::kZoneoutCell, net.zoneout_cell, net.units)};
}

/// Every step of a call: [pseudo-layer][t * B + b]; a padded step is empty.
template <class Real>
using Tape = std::vector<std::vector<Step<Real>>>;

template <class Real>
struct ForwardInput {
  const Real* params;
  typename Source<Real>::Type x, h0, c0;
};

/// In the caller's layout; padded outputs are zeros.
template <class Real>
struct ForwardResult {
  Vector<Real> y, hn, cn;
  Tape<Real> tape;
};

/// One row of pseudo-layer p: writes its outputs into columns of `output` and returns the last
/// step's state in `h` and `c`.
template <class Real>
void run_row(const Cell<Real>& cell, const Call& call, std::size_t p, std::size_t b,
             const std::vector<Vector<Real>>& input, std::vector<Vector<Real>>& output,
             Vector<Real>& h, Vector<Real>& c, std::vector<Step<Real>>& steps) {
  const std::size_t length = call.lengths[b], direction = p % cell.net.dirs;
  for (std::size_t n = 0; n < length; ++n) {
    const std::size_t t = direction == 0 ? n : length - 1 - n;
    Step<Real>& step = steps[t * call.batch + b];
    step.masks = masks_of(cell.net, call, p, t, b);
    step.x = input[t * call.batch + b];
    step.h_before = h;
    step.c_before = c;
    run_step(cell, step);
    h = step.h;
    c = step.c;
    std::copy(h.begin(), h.end(),
              output[t * call.batch + b].begin() +
                  static_cast<std::ptrdiff_t>(direction * cell.net.hidden));
  }
}

/// Both directions of one layer over all rows.
template <class Real>
void run_layer(const Network& net, const Call& call, std::size_t layer,
               const ForwardInput<Real>& in, const std::vector<Vector<Real>>& input,
               std::vector<Vector<Real>>& output, ForwardResult<Real>& result) {
  const bool has_cell = net.has_cell;
  const std::size_t count = net.pseudo.size();
  for (std::size_t d = 0; d < net.dirs; ++d) {
    const std::size_t p = layer * net.dirs + d;
    const Cell<Real> cell{net, net.pseudo[p], in.params};
    result.tape[p].resize(call.max_time * call.batch);
    for (std::size_t b = 0; b < call.batch; ++b) {
      const std::size_t h_place = call.state_place(p, count, b, net.hidden);
      const std::size_t c_place = call.state_place(p, count, b, net.units);
      Vector<Real> h = read<Real>(in.h0, h_place, net.hidden), c;
      if (has_cell) c = read<Real>(in.c0, c_place, net.units);
      run_row(cell, call, p, b, input, output, h, c, result.tape[p]);
      std::copy(h.begin(), h.end(), result.hn.begin() + static_cast<std::ptrdiff_t>(h_place));
      std::copy(c.begin(), c.end(), result.cn.begin() + static_cast<std::ptrdiff_t>(c_place));
    }
  }
}

/// `visit(t, b)` for every step that is not padded.
template <class Visit>
void for_valid_steps(const Call& call, Visit visit) {
  for (std::size_t b = 0; b < call.batch; ++b) {
    for (std::size_t t = 0; t < call.lengths[b]; ++t) visit(t, b);
  }
}

/// States of all steps of one layer, in the layout of y: `part` is h or c, of that width. Padded
/// steps are zeros.
template <class Real>
Vector<Real> every_step(const Network& net, const Call& call, const Tape<Real>& tape,
                        std::size_t layer, Vector<Real> Step<Real>::*part, std::size_t width) {
  const std::size_t both = net.dirs * width;
  Vector<Real> values(call.max_time * call.batch * both, Real(0.0));
  for (std::size_t d = 0; d < net.dirs; ++d) {
    for_valid_steps(call, [&](std::size_t t, std::size_t b) {
      const Vector<Real>& from = tape[layer * net.dirs + d][t * call.batch + b].*part;
      const std::size_t place = call.step_place(t, b, both) + d * width;
      std::copy(from.begin(), from.end(), values.begin() + static_cast<std::ptrdiff_t>(place));
    });
  }
  return values;
}

template <class Real>
ForwardResult<Real> forward(const Network& net, const Call& call, const ForwardInput<Real>& in) {
  const std::size_t steps = call.max_time * call.batch, width = net.dirs * net.hidden;
  ForwardResult<Real> result;
  result.hn.resize(net.pseudo.size() * call.batch * net.hidden, Real(0.0));
  if (net.has_cell) {
    result.cn.resize(net.pseudo.size() * call.batch * net.units, Real(0.0));
  }
  result.y.assign(steps * width, Real(0.0));
  result.tape.resize(net.pseudo.size());

  std::vector<Vector<Real>> input(steps), output;
  for_valid_steps(call, [&](std::size_t t, std::size_t b) {
    const std::size_t from = net.pseudo[0].input;
    input[t * call.batch + b] = read<Real>(in.x, call.step_place(t, b, from), from);
  });
  for (std::size_t layer = 0; layer < net.layers; ++layer) {
    output.assign(steps, Vector<Real>(width, Real(0.0)));
    run_layer(net, call, layer, in, input, output, result);
    if (layer + 1 == net.layers) break;
    std::swap(input, output);
    if (!call.drops(net)) continue;
    for_valid_steps(call, [&](std::size_t t, std::size_t b) {
      const Vector<double> mask = mask_of(net, call, layer, t, b);
      Vector<Real>& row = input[t * call.batch + b];
      for (std::size_t k = 0; k < width; ++k) row[k] = times_mask(row[k], mask[k]);
    });
  }
  for_valid_steps(call, [&](std::size_t t, std::size_t b) {
    const Vector<Real>& row = output[t * call.batch + b];
    std::copy(row.begin(), row.end(),
              result.y.begin() + static_cast<std::ptrdiff_t>(call.step_place(t, b, width)));
  });
  return result;
}

}  // namespace openrnn::reference
