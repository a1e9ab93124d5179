// A network and one call of it in dual numbers, and what its forward pass leaves for backward.
//
// T time steps, B rows, N = T * B, U units, O outputs of one direction, G gates. A sequence of one
// direction is [N, ..] in the order in which it is computed; padded steps come last.
#pragma once

#include <array>

#include "cpu/tangent/dual.h"
#include "cpu/tangent/masks.h"
#include "openrnn/engine_tangent.h"

namespace openrnn::cpu {

// Gates in slot order.
enum Gate : std::size_t { kI = 0, kF = 1, kC = 2, kO = 3, kR = 0, kZ = 1, kN = 2, kH = 0 };

/// Where the parameters of one direction of one layer lie; matrices of all gates are one.
struct Places {
  std::int64_t inputs = 0;  // width of x
  bool skips = false;       // x stands in the place of W x
  std::int64_t w = 0, r = 0, wp = 0, bw = 0, br = 0;
  std::array<std::int64_t, 4> peephole{};
};

template <class T>
struct TangentNet {
  const RnnSpec& spec;
  std::int64_t time = 0, batch = 0, units = 0, outputs = 0, gates = 0, dirs = 0;
  bool lstm = false, gru = false, projects = false,
       moves = false;  // moves: params have a direction
  std::array<CellActivation, 4> functions{};
  std::vector<Places> places;  // l0 fwd, l0 bwd, l1 fwd, ...
  DualArray<T> params;
  std::vector<std::int64_t> lengths;  // [B]

  explicit TangentNet(const TangentArgs& args);
  std::int64_t steps() const { return time * batch; }
  /// Whether step n of a direction, in its own order, is one of the row.
  bool active(std::int64_t n, std::int64_t b) const {
    return n < lengths[static_cast<std::size_t>(b)];
  }
  /// The row of [T, B, ..] that step n of row b is.
  std::int64_t row_of(std::int64_t n, std::int64_t b, bool backward) const {
    const std::int64_t t = backward ? lengths[static_cast<std::size_t>(b)] - 1 - n : n;
    return t * batch + b;
  }
};

/// One matrix of the parameters: [rows, cols] at an offset.
struct MatrixPlace {
  std::int64_t offset = 0, rows = 0, cols = 0;
};

/// out [n, rows of m] = in [n, cols of m] times m transposed. Unless `moves`, the derivatives of
/// `in` are 0.
template <class T>
void times_transposed(const TangentNet<T>& net, const DualArray<T>& in, const MatrixPlace& m,
                      DualArray<T>& out, bool moves = true);
/// What of a result is used.
enum class Part : std::uint8_t { kBoth, kDerivatives };
/// out [n, cols of m] += in [n, rows of m] times m.
template <class T>
void add_times(const TangentNet<T>& net, const DualArray<T>& in, const MatrixPlace& m,
               DualArray<T>& out, Part part = Part::kBoth);
/// The derivative of a^T b, a [N, rows of m] and b [N, cols of m], into `out` at m; `a_cols` is how
/// far apart the rows of a are, from column `first` on. Unless `moves`, the derivatives of b are 0.
template <class T>
void outer_direction(const DualArray<T>& a, std::int64_t a_cols, std::int64_t first,
                     const DualArray<T>& b, const MatrixPlace& m, T* out, bool moves = true);

/// What a forward pass over one direction of one layer leaves.
template <class T>
struct Trace {
  DualArray<T> x;                   // [N, in]
  bool x_moves = true;              // false: the derivatives of x are 0
  DualArray<T> h_before, c_before;  // [N, O], [N, U]
  DualArray<T> entering;            // [N, O]: h_before with its mask, if there is one
  StepMasks<T> masks;
  std::array<DualArray<T>, 4> value, slope;  // [N, U] by gate
  DualArray<T> c, cell_value, cell_slope;    // lstm [N, U]; c before zoneout
  std::vector<T> clip;                       // lstm [N * U]: 1 inside of cell_clip, else 0
  DualArray<T> emitted;                      // with a projection [N, U]
  std::vector<T> proj_clip;                  // [N * O]
  DualArray<T> recurrent, reset;             // gru [N, U]: R h' + b of n; r * h'
};

/// States of one direction of one layer: [B, O], [B, U].
template <class T>
struct States {
  DualArray<T> h, c;
};

/// Runs it over trace.x: `state` goes from the first to the last one, `y` [N, O] is what it puts
/// out, 0 at padded steps.
template <class T>
void forward_direction(const TangentNet<T>& net, const Places& at, States<T>& state,
                       Trace<T>& trace, DualArray<T>& y);

/// The gradient of that, from dy [N, O] and `state`, the gradients of the last state, which it
/// replaces by those of the first one. Adds that `part` of dx [N, in], and writes the directions of
/// gradients of the parameters into dparams; neither where it is null. Draws the masks of `trace`
/// anew.
template <class T>
void backward_direction(const TangentNet<T>& net, const Places& at, Trace<T>& trace,
                        DualArray<T>& dy, States<T>& state, DualArray<T>* dx, Part part,
                        T* dparams);

}  // namespace openrnn::cpu
