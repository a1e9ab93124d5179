#include "cpu/tangent/tangent.h"

#include "cpu/tangent/trace.h"

namespace openrnn::cpu {
namespace {

/// `width` elements from `place` on, or back to there; nothing where there is no array.
template <class T>
void read(DType dtype, const void* from, std::int64_t place, std::int64_t width, T* to) {
  if (from == nullptr) return;
  for (std::int64_t k = 0; k < width; ++k) {
    if (dtype == DType::kFloat16) {
      to[k] = static_cast<T>(to_float(static_cast<const Half*>(from)[place + k]));
    } else if (dtype == DType::kBfloat16) {
      to[k] = static_cast<T>(to_float(static_cast<const Bfloat16*>(from)[place + k]));
    } else {
      to[k] = static_cast<const T*>(from)[place + k];
    }
  }
}
template <class T>
void write(DType dtype, const T* from, std::int64_t place, std::int64_t width, void* to) {
  if (to == nullptr) return;
  for (std::int64_t k = 0; k < width; ++k) {
    if (dtype == DType::kFloat16) {
      static_cast<Half*>(to)[place + k] = to_half(static_cast<float>(from[k]));
    } else if (dtype == DType::kBfloat16) {
      static_cast<Bfloat16*>(to)[place + k] = to_bfloat16(static_cast<float>(from[k]));
    } else {
      static_cast<T*>(to)[place + k] = from[k];
    }
  }
}

template <class T>
class Network {
 public:
  explicit Network(const TangentArgs& args)
      : args_(args), net_(args), dtype_(args.spec.dtype), traces_(net_.places.size()) {}

  void forward() {
    DualArray<T> input = sequence(args_.at.x, args_.direction.x, net_.places[0].inputs);
    const std::int64_t width = net_.dirs * net_.outputs;
    for (std::int64_t layer = 0; layer < args_.spec.num_layers; ++layer) {
      DualArray<T> output(net_.steps() * width);
      for (std::int64_t d = 0; d < net_.dirs; ++d) run(layer, d, input, output);
      if (layer + 1 < args_.spec.num_layers) drop(layer, output);
      input = std::move(output);
    }
    write_sequence(input.d(), width, args_.moved.y);
  }

  void backward() {
    std::vector<T> dparams;
    if (args_.curvature.params) dparams.assign(static_cast<std::size_t>(net_.params.size()), T(0));
    DualArray<T> dy = sequence(args_.gradients.y, nullptr, net_.dirs * net_.outputs);
    for (std::int64_t layer = args_.spec.num_layers; layer-- > 0;) {
      DualArray<T> dx(net_.steps() * args_.spec.layer_input_size(layer));
      for (std::int64_t d = 0; d < net_.dirs; ++d) {
        run_back(layer, d, dy, dx, dparams.empty() ? nullptr : dparams.data());
      }
      if (layer > 0) drop(layer - 1, dx);
      dy = std::move(dx);
    }
    write_sequence(dy.d(), args_.spec.input_size, args_.curvature.x);
    write(dtype_, dparams.data(), 0, static_cast<std::int64_t>(dparams.size()),
          args_.curvature.params);
  }

 private:
  template <class Visit>  // (t, b, row of [T, B, ..])
  void for_steps(const Visit& visit) const {
    for (std::int64_t b = 0; b < net_.batch; ++b) {
      const std::int64_t length = net_.lengths[static_cast<std::size_t>(b)];
      for (std::int64_t t = 0; t < length; ++t) visit(t, b, t * net_.batch + b);
    }
  }
  std::int64_t place_of(std::int64_t t, std::int64_t b) const {
    return args_.time_major ? t * net_.batch + b : b * net_.time + t;
  }
  std::int64_t state_place(std::int64_t p, std::int64_t b) const {
    const auto count = static_cast<std::int64_t>(net_.places.size());
    return args_.time_major ? p * net_.batch + b : b * count + p;
  }

  // [T, B, width], 0 where the caller's array is padding, which is not read.
  DualArray<T> sequence(const void* values, const void* direction, std::int64_t width) const {
    DualArray<T> all(net_.steps() * width);
    for_steps([&](std::int64_t t, std::int64_t b, std::int64_t row) {
      const DualPtr<T> to = all.at(row * width);
      read(dtype_, values, place_of(t, b) * width, width, to.v);
      read(dtype_, direction, place_of(t, b) * width, width, to.d);
    });
    return all;
  }
  void write_sequence(const T* from, std::int64_t width, void* to) const {
    for (std::int64_t t = 0; t < net_.time; ++t) {
      for (std::int64_t b = 0; b < net_.batch; ++b) {
        write(dtype_, from + (t * net_.batch + b) * width, place_of(t, b) * width, width, to);
      }
    }
  }

  DualArray<T> state(const void* values, const void* direction, std::int64_t p,
                     std::int64_t width) const {
    DualArray<T> all(net_.batch * width);
    for (std::int64_t b = 0; b < net_.batch; ++b) {
      const DualPtr<T> to = all.at(b * width);
      read(dtype_, values, state_place(p, b) * width, width, to.v);
      read(dtype_, direction, state_place(p, b) * width, width, to.d);
    }
    return all;
  }
  void write_state(const DualArray<T>& from, std::int64_t p, std::int64_t width, void* to) const {
    for (std::int64_t b = 0; b < net_.batch; ++b) {
      write(dtype_, from.d() + b * width, state_place(p, b) * width, width, to);
    }
  }

  // Rows of columns [first, first + width) in the order of the direction: `copy(of [T, B], own)`.
  template <class Copy>
  void reorder(std::int64_t d, std::int64_t full, std::int64_t first, std::int64_t width,
               const Copy& copy) const {
    for_steps([&](std::int64_t n, std::int64_t b, std::int64_t own) {
      const std::int64_t from = net_.row_of(n, b, d == 1) * full + first;
      for (std::int64_t k = 0; k < width; ++k) copy(from + k, own * width + k);
    });
  }

  void run(std::int64_t layer, std::int64_t d, const DualArray<T>& input, DualArray<T>& output) {
    const std::int64_t p = layer * net_.dirs + d, inputs = args_.spec.layer_input_size(layer);
    Trace<T>& trace = traces_[static_cast<std::size_t>(p)];
    trace.x = DualArray<T>(net_.steps() * inputs);
    trace.masks = StepMasks<T>(args_, net_, p);
    trace.x_moves = layer > 0 || args_.direction.x != nullptr;
    reorder(d, inputs, 0, inputs,
            [&](std::int64_t from, std::int64_t own) { trace.x.at(own).set(0, input[from]); });
    States<T> states{state(args_.at.h0, args_.direction.h0, p, net_.outputs), {}};
    if (net_.lstm) states.c = state(args_.at.c0, args_.direction.c0, p, net_.units);
    DualArray<T> y(net_.steps() * net_.outputs);
    forward_direction(net_, net_.places[static_cast<std::size_t>(p)], states, trace, y);
    reorder(d, net_.dirs * net_.outputs, d * net_.outputs, net_.outputs,
            [&](std::int64_t to, std::int64_t own) { output.at(to).set(0, y[own]); });
    write_state(states.h, p, net_.outputs, args_.moved.hn);
    if (net_.lstm) write_state(states.c, p, net_.units, args_.moved.cn);
  }

  void run_back(std::int64_t layer, std::int64_t d, const DualArray<T>& dy, DualArray<T>& dx,
                T* dparams) {
    const std::int64_t p = layer * net_.dirs + d, inputs = args_.spec.layer_input_size(layer);
    DualArray<T> own_dy(net_.steps() * net_.outputs), own_dx(net_.steps() * inputs);
    reorder(d, net_.dirs * net_.outputs, d * net_.outputs, net_.outputs,
            [&](std::int64_t from, std::int64_t own) { own_dy.at(own).set(0, dy[from]); });
    States<T> states{state(args_.gradients.hn, nullptr, p, net_.outputs), {}};
    if (net_.lstm) states.c = state(args_.gradients.cn, nullptr, p, net_.units);
    backward_direction(net_, net_.places[static_cast<std::size_t>(p)],
                       traces_[static_cast<std::size_t>(p)], own_dy, states,
                       layer > 0 || args_.curvature.x ? &own_dx : nullptr,
                       layer > 0 ? Part::kBoth : Part::kDerivatives, dparams);
    reorder(d, inputs, 0, inputs,
            [&](std::int64_t to, std::int64_t own) { dx.at(to).add(0, own_dx[own]); });
    write_state(states.h, p, net_.outputs, args_.curvature.h0);
    if (net_.lstm) write_state(states.c, p, net_.units, args_.curvature.c0);
  }

  // Dropout between a layer and the next, of outputs or of their gradients.
  void drop(std::int64_t layer, DualArray<T>& output) const {
    const double rate = args_.spec.training.dropout;
    if (!args_.training || rate == 0.0) return;
    const std::int64_t width = net_.dirs * net_.outputs;
    std::vector<T> mask(static_cast<std::size_t>(width));
    for_steps([&](std::int64_t t, std::int64_t b, std::int64_t row) {
      const DropoutRow at{static_cast<std::uint32_t>(layer), static_cast<std::uint32_t>(t),
                          static_cast<std::uint32_t>(args_.dropout.first_row + b)};
      dropout_mask<T>(args_.dropout, at, rate, mask);
      for (std::int64_t k = 0; k < width; ++k) {
        const DualPtr<T> place = output.at(row * width + k);
        place.set(0, mask[static_cast<std::size_t>(k)] * place[0]);
      }
    });
  }

  const TangentArgs& args_;
  TangentNet<T> net_;
  DType dtype_;
  std::vector<Trace<T>> traces_;
};

template <class T>
void run(const TangentArgs& args) {
  Network<T> network(args);
  network.forward();
  if (args.curvature.any()) network.backward();
}

}  // namespace

template <class T>
TangentNet<T>::TangentNet(const TangentArgs& args)
    : spec(args.spec),
      time(args.max_time),
      batch(args.batch),
      units(spec.num_units),
      outputs(spec.hidden_size()),
      gates(spec.num_gates()),
      dirs(spec.num_dirs()),
      lstm(spec.is_lstm()),
      gru(spec.mode == RnnMode::kGru),
      projects(spec.projecting()),
      moves(args.direction.params != nullptr) {
  const ParamsLayout layout(spec);
  params = DualArray<T>(layout.size());
  read(spec.dtype, args.at.params, 0, layout.size(), params.at(0).v);
  read(spec.dtype, args.direction.params, 0, layout.size(), params.at(0).d);
  functions.fill(spec.gate_activation());
  functions[lstm ? kC : gru ? kN : kH] = spec.candidate_activation();
  for (std::int64_t l = 0; l < spec.num_layers; ++l) {
    for (std::int64_t d = 0; d < dirs; ++d) {
      Places at{.inputs = spec.layer_input_size(l), .skips = l == 0 && spec.skips_input()};
      at.w = layout.weight(l, d, ParamRole::kInputWeight, 0).offset;
      at.r = layout.weight(l, d, ParamRole::kRecurrentWeight, 0).offset;
      if (projects) at.wp = layout.weight(l, d, ParamRole::kProjection, 0).offset;
      if (spec.use_bias) at.bw = layout.bias(l, d, ParamRole::kInputBias, 0).offset;
      if (spec.biases_per_gate() == 2)
        at.br = layout.bias(l, d, ParamRole::kRecurrentBias, 0).offset;
      for (const std::size_t k : {kI, kF, kO}) {
        if (!spec.use_peepholes) break;
        at.peephole[k] =
            layout.bias(l, d, ParamRole::kPeephole, static_cast<std::int64_t>(k)).offset;
      }
      places.push_back(at);
    }
  }
  for (std::int64_t b = 0; b < batch; ++b) {
    lengths.push_back(args.sequence_lengths ? args.sequence_lengths[b] : time);
  }
}

bool has_tangent(const RnnSpec& spec) {
  const bool projected_gru = spec.mode == RnnMode::kGru && spec.projecting();
  return !projected_gru && !spec.normalizes();
}

void tangent(const TangentArgs& args) {
  if (args.spec.dtype == DType::kFloat64) return run<double>(args);
  run<float>(args);
}

}  // namespace openrnn::cpu
