// One direction of one layer, step by step, backward.
#include "cpu/tangent/trace.h"

namespace openrnn::cpu {
namespace {

template <class T>
class Backward {
 public:
  Backward(const TangentNet<T>& net, const Places& at, Trace<T>& trace, States<T>& state)
      : net_(net),
        at_(at),
        trace_(trace),
        state_(state),
        input_(net.steps() * net.gates * net.units),
        emitted_(net.batch * net.units),
        step_(net.batch * net.gates * net.units),
        entering_(net.batch * net.outputs) {
    if (!trace.masks.kept.empty()) passed_on_ = DualArray<T>(entering_.size());
    if (net.gru) recurrent_ = DualArray<T>(input_.size());
    if (net.projects) projected_ = DualArray<T>(net.steps() * net.outputs);
    if (before()) {
      candidate_ = reset_ = DualArray<T>(net.batch * net.units);
      step_ = DualArray<T>(net.batch * 2 * net.units);
    }
  }

  void step(std::int64_t n, DualArray<T>& dy) {
    n_ = n;
    first_ = n * net_.batch * net_.units;
    trace_.masks.draw(net_, n);
    take_output(dy);
    step_.clear();
    entering_.clear();
    if (net_.lstm) {
      lstm();
    } else if (net_.gru) {
      gru();
    } else {
      for_units([this](std::int64_t k, std::int64_t b, std::int64_t u) {
        set({k, b, u}, kH,
            masked(trace_.masks.candidate, k, emitted_[k]) * trace_.slope[kH][first_ + k]);
        return Dual<T>();
      });
    }
    // Through R to the state before.
    const std::int64_t rows = before() ? 2 * net_.units : net_.gates * net_.units;
    add_times(net_, step_, {at_.r, rows, net_.outputs}, entering_);
    for (std::int64_t b = 0; b < net_.batch; ++b) {
      if (!net_.active(n_, b)) continue;
      for (std::int64_t k = b * net_.outputs; k < (b + 1) * net_.outputs; ++k) {
        state_.h.at(k).add(0, masked(trace_.masks.state, k, entering_[k]));
        if (passed_on_.size() > 0) state_.h.at(k).add(0, passed_on_[k]);
      }
    }
  }

  void input_gradient(DualArray<T>& dx, Part part) const {
    const std::int64_t width = net_.gates * net_.units;
    if (!at_.skips) return add_times(net_, input_, {at_.w, width, at_.inputs}, dx, part);
    for (std::int64_t row = 0; row < net_.steps(); ++row) {
      for (std::int64_t k = 0; k < width; ++k) {
        dx.at(row * at_.inputs + k % net_.units).add(0, input_[row * width + k]);
      }
    }
  }

  void parameter_directions(T* dparams) const {
    const std::int64_t width = net_.gates * net_.units, hidden = net_.outputs;
    const DualArray<T>& recurrent = net_.gru ? recurrent_ : input_;
    if (!at_.skips) {
      outer_direction(input_, width, 0, trace_.x, {at_.w, width, at_.inputs}, dparams,
                      trace_.x_moves);
    }
    const std::int64_t own = before() ? 2 * net_.units : width;
    const DualArray<T>& entering = trace_.entering.size() > 0 ? trace_.entering : trace_.h_before;
    outer_direction(recurrent, width, 0, entering, {at_.r, own, hidden}, dparams);
    if (before()) {
      outer_direction(recurrent, width, own, trace_.reset,
                      {at_.r + own * hidden, net_.units, hidden}, dparams);
    }
    if (net_.projects) {
      outer_direction(projected_, hidden, 0, trace_.emitted, {at_.wp, hidden, net_.units}, dparams);
    }
    if (net_.spec.use_bias) add_rows(input_, dparams + at_.bw);
    if (net_.spec.biases_per_gate() == 2) add_rows(recurrent, dparams + at_.br);
    if (net_.spec.use_peepholes) peephole_directions(dparams);
  }

 private:
  bool before() const { return net_.gru && !net_.spec.reset_after; }

  // `visit(k, b, u)` of the units of rows whose step it is, k = b * U + u. What it returns is the
  // part of the state's gradient that does not go through R, unless there is a projection.
  template <class Visit>
  void for_units(const Visit& visit) {
    for (std::int64_t b = 0; b < net_.batch; ++b) {
      if (!net_.active(n_, b)) continue;
      for (std::int64_t u = 0; u < net_.units; ++u) {
        const Dual<T> left = visit(b * net_.units + u, b, u);
        if (!net_.projects) state_.h.at(b * net_.units + u).set(0, left);
      }
      for (std::int64_t j = 0; net_.projects && j < net_.outputs; ++j) {
        state_.h.at(b * net_.outputs + j).set(0, {});
      }
    }
  }

  // The gradient of what the step put out, into emitted_.
  void take_output(DualArray<T>& dy) {
    const std::int64_t first = n_ * net_.batch * net_.outputs;
    for (std::int64_t b = 0; b < net_.batch; ++b) {
      if (!net_.active(n_, b)) continue;
      for (std::int64_t k = b * net_.outputs; k < (b + 1) * net_.outputs; ++k) {
        state_.h.at(k).add(0, dy[first + k]);
        if (passed_on_.size() > 0) {
          const Dual<T> all = state_.h[k];
          passed_on_.at(k).set(0, masked(trace_.masks.kept, k, all));
          state_.h.at(k).set(0, zoned_out(trace_.masks.kept, k, Dual<T>(), all));
        }
        if (!net_.projects) {
          emitted_.at(k).set(0, state_.h[k]);
        } else {
          const T passes = trace_.proj_clip[static_cast<std::size_t>(first + k)];
          projected_.at(first + k).set(0, passes * state_.h[k]);
        }
      }
    }
    if (!net_.projects) return;
    DualArray<T> passed(net_.batch * net_.outputs);
    for (std::int64_t k = 0; k < passed.size(); ++k) passed.at(k).set(0, projected_[first + k]);
    emitted_.clear();
    add_times(net_, passed, {at_.wp, net_.outputs, net_.units}, emitted_);
  }

  struct At {
    std::int64_t k, b, u;  // k = b * U + u
  };
  // The gradient of gate g's sum at a unit of the step: of W x, and of R h.
  void set(const At& at, std::size_t g, Dual<T> gradient) { set(at, g, gradient, gradient); }
  void set(const At& at, std::size_t g, Dual<T> gradient, Dual<T> of_recurrent) {
    const std::int64_t row = at.b * net_.gates * net_.units;
    const std::int64_t column = static_cast<std::int64_t>(g) * net_.units + at.u;
    const std::int64_t place = first_ * net_.gates + row + column;
    input_.at(place).set(0, gradient);
    if (net_.gru) recurrent_.at(place).set(0, of_recurrent);
    if (!before()) {
      step_.at(row + column).set(0, of_recurrent);
    } else if (g == kN) {
      candidate_.at(at.k).set(0, of_recurrent);
    } else {
      step_.at(at.b * 2 * net_.units + column).set(0, of_recurrent);
    }
  }

  Dual<T> peephole(std::size_t g, std::int64_t u) const { return net_.params[at_.peephole[g] + u]; }

  void lstm() {
    const RnnSpec& spec = net_.spec;
    for_units([&](std::int64_t k, std::int64_t b, std::int64_t u) {
      const auto value = [&](std::size_t g) { return trace_.value[g][first_ + k]; };
      const auto slope = [&](std::size_t g) { return trace_.slope[g][first_ + k]; };
      const Dual<T> dm = emitted_[k], before = trace_.c_before[first_ + k];
      const Dual<T> out = dm * trace_.cell_value[first_ + k] * slope(kO);
      const std::vector<T>& kept = trace_.masks.kept_cell;
      const Dual<T> after = state_.c[k];
      Dual<T> dc =
          zoned_out(kept, k, Dual<T>(), after) + dm * value(kO) * trace_.cell_slope[first_ + k];
      if (spec.use_peepholes) dc = dc + out * peephole(kO, u);
      dc = trace_.clip[static_cast<std::size_t>(first_ + k)] * dc;
      const Dual<T> g = masked(trace_.masks.candidate, k, value(kC));
      const Dual<T> by_i = spec.coupled_gates ? g - before : g;
      const Dual<T> in = dc * by_i * slope(kI);
      const Dual<T> forget = spec.coupled_gates ? Dual<T>() : dc * before * slope(kF);
      set({k, b, u}, kI, in);
      set({k, b, u}, kF, forget);
      set({k, b, u}, kC, masked(trace_.masks.candidate, k, dc * value(kI)) * slope(kC));
      set({k, b, u}, kO, out);
      Dual<T> left = dc * value(kF);
      if (!kept.empty()) left = left + masked(kept, k, after);
      if (spec.use_peepholes) left = left + in * peephole(kI, u) + forget * peephole(kF, u);
      state_.c.at(k).set(0, left);
      return Dual<T>();
    });
  }

  void gru() {
    const Dual<T> one{T(1), T(0)};
    candidate_.clear();
    reset_.clear();
    for_units([&](std::int64_t k, std::int64_t b, std::int64_t u) {
      const auto value = [&](std::size_t g) { return trace_.value[g][first_ + k]; };
      const auto slope = [&](std::size_t g) { return trace_.slope[g][first_ + k]; };
      const std::vector<T>& mask = trace_.masks.candidate;
      const Dual<T> dh = state_.h[k], n = masked(mask, k, value(kN));
      const Dual<T> dn = masked(mask, k, dh * (one - value(kZ))) * slope(kN);
      set({k, b, u}, kZ, dh * (trace_.h_before[first_ + k] - n) * slope(kZ));
      set({k, b, u}, kN, dn, net_.spec.reset_after ? dn * value(kR) : dn);
      if (net_.spec.reset_after) set({k, b, u}, kR, dn * trace_.recurrent[first_ + k] * slope(kR));
      return dh * value(kZ);
    });
    if (!before()) return;
    add_times(net_, candidate_, {at_.r + 2 * net_.units * net_.outputs, net_.units, net_.outputs},
              reset_);
    for_units([&](std::int64_t k, std::int64_t b, std::int64_t u) {
      const DualArray<T>& entering = trace_.entering.size() > 0 ? trace_.entering : trace_.h_before;
      const Dual<T> gradient = reset_[k] * entering[first_ + k];
      set({k, b, u}, kR, gradient * trace_.slope[kR][first_ + k]);
      entering_.at(k).set(0, reset_[k] * trace_.value[kR][first_ + k]);
      return state_.h[k];
    });
  }

  // Derivatives of sums over all steps.
  void add_rows(const DualArray<T>& gates, T* sums) const {
    const std::int64_t width = net_.gates * net_.units;
    std::vector<double> wide(static_cast<std::size_t>(width), 0.0);
    for (std::int64_t row = 0; row < net_.steps(); ++row) {
      const T* const d = gates.d() + row * width;
      for (std::int64_t k = 0; k < width; ++k) {
        wide[static_cast<std::size_t>(k)] += static_cast<double>(d[k]);
      }
    }
    for (std::int64_t k = 0; k < width; ++k) {
      sums[k] = static_cast<T>(wide[static_cast<std::size_t>(k)]);
    }
  }

  void peephole_directions(T* dparams) const {
    const std::int64_t width = net_.gates * net_.units;
    for (const std::size_t g : {kI, kF, kO}) {
      const DualArray<T>& seen = g == kO ? trace_.c : trace_.c_before;
      for (std::int64_t u = 0; u < net_.units; ++u) {
        double sum = 0.0;
        for (std::int64_t row = 0; row < net_.steps(); ++row) {
          const Dual<T> d = input_[row * width + static_cast<std::int64_t>(g) * net_.units + u];
          sum += static_cast<double>((d * seen[row * net_.units + u]).d);
        }
        dparams[at_.peephole[g] + u] = static_cast<T>(sum);
      }
    }
  }

  const TangentNet<T>& net_;
  const Places& at_;
  Trace<T>& trace_;
  States<T>& state_;
  DualArray<T> input_, recurrent_, projected_;  // of all steps: sums of W x, of R h, of Wp m
  DualArray<T> emitted_, step_, candidate_, reset_, entering_, passed_on_;
  std::int64_t n_ = 0, first_ = 0;
};

}  // namespace

template <class T>
void backward_direction(const TangentNet<T>& net, const Places& at, Trace<T>& trace,
                        DualArray<T>& dy, States<T>& state, DualArray<T>* dx, Part part,
                        T* dparams) {
  Backward<T> pass(net, at, trace, state);
  for (std::int64_t n = net.time; n-- > 0;) pass.step(n, dy);
  if (dx) pass.input_gradient(*dx, part);
  if (dparams) pass.parameter_directions(dparams);
}

template void backward_direction<float>(const TangentNet<float>&, const Places&, Trace<float>&,
                                        DualArray<float>&, States<float>&, DualArray<float>*, Part,
                                        float*);
template void backward_direction<double>(const TangentNet<double>&, const Places&, Trace<double>&,
                                         DualArray<double>&, States<double>&, DualArray<double>*,
                                         Part, double*);

}  // namespace openrnn::cpu
