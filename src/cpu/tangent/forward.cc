// One direction of one layer, step by step, forward.
#include <algorithm>

#include "cpu/tangent/functions.h"
#include "cpu/tangent/trace.h"

namespace openrnn::cpu {
namespace {

template <class T>
class Forward {
 public:
  Forward(const TangentNet<T>& net, const Places& at, States<T>& state, Trace<T>& trace)
      : net_(net),
        at_(at),
        state_(state),
        trace_(trace),
        sums_(net.batch * net.gates * net.units),
        argument_(net.batch * net.units),
        emitted_(net.batch * net.units),
        scratch_(static_cast<std::size_t>(net.batch * net.units)) {
    const std::int64_t all = net.steps() * net.units, outputs = net.steps() * net.outputs;
    trace.h_before = DualArray<T>(outputs);
    for (std::size_t k = 0; k < static_cast<std::size_t>(net.gates); ++k) {
      trace.value[k] = trace.slope[k] = DualArray<T>(all);
    }
    if (net.lstm) {
      trace.c_before = trace.c = trace.cell_value = trace.cell_slope = DualArray<T>(all);
      trace.clip.assign(static_cast<std::size_t>(all), T(1));
    }
    if (net.gru) trace.recurrent = DualArray<T>(all);
    entering_ = DualArray<T>(net.batch * net.outputs);
    if (!trace.masks.state.empty()) trace.entering = DualArray<T>(outputs);
    if (net.gru && !net.spec.reset_after) {
      trace.reset = DualArray<T>(all);
      reset_ = DualArray<T>(net.batch * net.units);
    }
    if (net.projects) {
      trace.emitted = DualArray<T>(all);
      projected_ = DualArray<T>(net.batch * net.outputs);
      trace.proj_clip.assign(static_cast<std::size_t>(outputs), T(1));
    }
    // W x + bW of all steps at once.
    if (!at.skips) {
      input_ = DualArray<T>(net.steps() * net.gates * net.units);
      times_transposed(net, trace.x, {at.w, net.gates * net.units, at.inputs}, input_,
                       trace.x_moves);
    }
  }

  void step(std::int64_t n, DualArray<T>& y) {
    first_ = n * net_.batch * net_.units;
    keep(state_.h, n * net_.batch * net_.outputs, trace_.h_before);
    if (net_.lstm) keep(state_.c, first_, trace_.c_before);
    trace_.masks.draw(net_, n);
    for (std::int64_t k = 0; k < entering_.size(); ++k) {
      entering_.at(k).set(0, masked(trace_.masks.state, k, state_.h[k]));
    }
    if (trace_.entering.size() > 0) keep(entering_, n * net_.batch * net_.outputs, trace_.entering);
    const bool reset_before = net_.gru && !net_.spec.reset_after;
    recurrent(entering_, 0, reset_before ? 2 : net_.gates);
    if (net_.lstm) lstm();
    if (net_.gru) gru();
    if (!net_.lstm && !net_.gru) {
      gate(kH, [](std::int64_t, std::int64_t, Dual<T> sum) { return sum; });
      for (std::int64_t k = 0; k < emitted_.size(); ++k) {
        emitted_.at(k).set(0, candidate(kH, k));
      }
    }
    put_out(n, y);
  }

 private:
  static void keep(const DualArray<T>& from, std::int64_t first, DualArray<T>& to) {
    const DualPtr<T> place = to.at(first);
    for (std::int64_t k = 0; k < from.size(); ++k) place.set(k, from[k]);
  }

  // R h of gates [from, to) into sums_, which has these gates alone: [B, (to - from) * U].
  void recurrent(const DualArray<T>& h, std::int64_t from, std::int64_t to) {
    if (sums_.size() != net_.batch * (to - from) * net_.units) {
      sums_ = DualArray<T>(net_.batch * (to - from) * net_.units);
    }
    times_transposed(
        net_, h, {at_.r + from * net_.units * net_.outputs, (to - from) * net_.units, net_.outputs},
        sums_);
    first_gate_ = from;
    gates_here_ = to - from;
  }

  Dual<T> bias(std::int64_t offset, std::size_t k, std::int64_t u) const {
    return net_.params[offset + static_cast<std::int64_t>(k) * net_.units + u];
  }

  Dual<T> input_side(std::size_t k, std::int64_t b, std::int64_t u) const {
    const std::int64_t row = first_ / net_.units + b;
    const std::int64_t column = static_cast<std::int64_t>(k) * net_.units + u;
    Dual<T> sum =
        at_.skips ? trace_.x[row * at_.inputs + u] : input_[row * net_.gates * net_.units + column];
    if (net_.spec.use_bias) sum = sum + bias(at_.bw, k, u);
    if (net_.lstm && k == kF) sum.v += static_cast<T>(net_.spec.forget_bias);
    return sum;
  }

  Dual<T> recurrent_side(std::size_t k, std::int64_t b, std::int64_t u) const {
    const std::int64_t gate = static_cast<std::int64_t>(k) - first_gate_;
    const Dual<T> sum = sums_[(b * gates_here_ + gate) * net_.units + u];
    return net_.spec.biases_per_gate() == 2 ? sum + bias(at_.br, k, u) : sum;
  }

  // Gate k of all rows, `adjust` of whose sums goes into the activation.
  template <class Adjust>
  void gate(std::size_t k, const Adjust& adjust) {
    for (std::int64_t b = 0; b < net_.batch; ++b) {
      for (std::int64_t u = 0; u < net_.units; ++u) {
        const Dual<T> sum = input_side(k, b, u) + recurrent_side(k, b, u);
        argument_.at(b * net_.units + u).set(0, adjust(b, u, sum));
      }
    }
    activate(k);
  }
  void activate(std::size_t k) {
    evaluate<T>(net_.functions[k], net_.spec.gate_clip, argument_.size(), argument_.at(0),
                trace_.value[k].at(first_), trace_.slope[k].at(first_), scratch_.data());
  }

  Dual<T> peephole(std::size_t k, std::int64_t u, Dual<T> c) const {
    return net_.spec.use_peepholes ? net_.params[at_.peephole[k] + u] * c : Dual<T>();
  }

  // The candidate's value as the state takes it in.
  Dual<T> candidate(std::size_t gate, std::int64_t k) const {
    return masked(trace_.masks.candidate, k, trace_.value[gate][first_ + k]);
  }

  void lstm() {
    const auto before = [this](std::size_t k) {
      return [this, k](std::int64_t b, std::int64_t u, Dual<T> sum) {
        return sum + peephole(k, u, state_.c[b * net_.units + u]);
      };
    };
    gate(kI, before(kI));
    if (!net_.spec.coupled_gates) gate(kF, before(kF));
    gate(kC, [](std::int64_t, std::int64_t, Dual<T> sum) { return sum; });
    const auto& clip = net_.spec.cell_clip;
    for (std::int64_t k = 0; k < argument_.size(); ++k) {
      const Dual<T> i = trace_.value[kI][first_ + k];
      if (net_.spec.coupled_gates) trace_.value[kF].at(first_ + k).set(0, Dual<T>{T(1), T(0)} - i);
      Dual<T> c = trace_.value[kF][first_ + k] * state_.c[k] + i * candidate(kC, k);
      if (clip) {
        const T low = static_cast<T>((*clip)[0]), high = static_cast<T>((*clip)[1]);
        const bool out = c.v < low || high < c.v;
        trace_.clip[static_cast<std::size_t>(first_ + k)] = out ? T(0) : T(1);
        c = out ? Dual<T>{std::clamp(c.v, low, high), T(0)} : c;
      }
      trace_.c.at(first_ + k).set(0, c);
    }
    gate(kO, [this](std::int64_t b, std::int64_t u, Dual<T> sum) {
      return sum + peephole(kO, u, trace_.c[first_ + b * net_.units + u]);
    });
    evaluate<T>(net_.spec.cell_activation(), {}, argument_.size(), trace_.c.at(first_),
                trace_.cell_value.at(first_), trace_.cell_slope.at(first_), scratch_.data());
    for (std::int64_t k = 0; k < emitted_.size(); ++k) {
      emitted_.at(k).set(0, trace_.value[kO][first_ + k] * trace_.cell_value[first_ + k]);
    }
  }

  void gru() {
    const auto plain = [](std::int64_t, std::int64_t, Dual<T> sum) { return sum; };
    gate(kR, plain);
    gate(kZ, plain);
    const bool after = net_.spec.reset_after;
    if (!after) {
      for (std::int64_t k = 0; k < reset_.size(); ++k) {
        reset_.at(k).set(0, trace_.value[kR][first_ + k] * entering_[k]);
      }
      keep(reset_, first_, trace_.reset);
      recurrent(reset_, 2, 3);
    }
    for (std::int64_t b = 0; b < net_.batch; ++b) {
      for (std::int64_t u = 0; u < net_.units; ++u) {
        const std::int64_t k = b * net_.units + u;
        const Dual<T> q = recurrent_side(kN, b, u);
        const Dual<T> r = trace_.value[kR][first_ + k];
        trace_.recurrent.at(first_ + k).set(0, q);
        argument_.at(k).set(0, input_side(kN, b, u) + (after ? r * q : q));
      }
    }
    activate(kN);
    for (std::int64_t k = 0; k < emitted_.size(); ++k) {
      const Dual<T> z = trace_.value[kZ][first_ + k], one{T(1), T(0)};
      emitted_.at(k).set(0, (one - z) * candidate(kN, k) + z * state_.h[k]);
    }
  }

  // The new state and the output, of rows whose step it is.
  void put_out(std::int64_t n, DualArray<T>& y) {
    const std::int64_t first = n * net_.batch * net_.outputs;
    if (net_.projects) {
      keep(emitted_, first_, trace_.emitted);
      projected_.clear();
      times_transposed(net_, emitted_, {at_.wp, net_.outputs, net_.units}, projected_);
      clip_projection(first);
    }
    const DualArray<T>& h = net_.projects ? projected_ : emitted_;
    for (std::int64_t b = 0; b < net_.batch; ++b) {
      if (!net_.active(n, b)) continue;
      for (std::int64_t k = b * net_.outputs; k < (b + 1) * net_.outputs; ++k) {
        const Dual<T> now = zoned_out(trace_.masks.kept, k, state_.h[k], h[k]);
        state_.h.at(k).set(0, now);
        y.at(first + k).set(0, now);
      }
      for (std::int64_t k = b * net_.units; net_.lstm && k < (b + 1) * net_.units; ++k) {
        state_.c.at(k).set(0,
                           zoned_out(trace_.masks.kept_cell, k, state_.c[k], trace_.c[first_ + k]));
      }
    }
  }

  void clip_projection(std::int64_t first) {
    if (!net_.spec.proj_clip) return;
    const T low = static_cast<T>((*net_.spec.proj_clip)[0]);
    const T high = static_cast<T>((*net_.spec.proj_clip)[1]);
    for (std::int64_t k = 0; k < projected_.size(); ++k) {
      const T value = projected_[k].v;
      if (low <= value && value <= high) continue;
      trace_.proj_clip[static_cast<std::size_t>(first + k)] = T(0);
      projected_.at(k).set(0, {std::clamp(value, low, high), T(0)});
    }
  }

  const TangentNet<T>& net_;
  const Places& at_;
  States<T>& state_;
  Trace<T>& trace_;
  DualArray<T> input_, sums_, argument_, emitted_, entering_, reset_, projected_;
  std::vector<T> scratch_;
  std::int64_t first_ = 0;  // of the step in [N, U]
  std::int64_t first_gate_ = 0, gates_here_ = 0;
};

}  // namespace

template <class T>
void forward_direction(const TangentNet<T>& net, const Places& at, States<T>& state,
                       Trace<T>& trace, DualArray<T>& y) {
  Forward<T> pass(net, at, state, trace);
  for (std::int64_t n = 0; n < net.time; ++n) pass.step(n, y);
}

template void forward_direction<float>(const TangentNet<float>&, const Places&, States<float>&,
                                       Trace<float>&, DualArray<float>&);
template void forward_direction<double>(const TangentNet<double>&, const Places&, States<double>&,
                                        Trace<double>&, DualArray<double>&);

}  // namespace openrnn::cpu
