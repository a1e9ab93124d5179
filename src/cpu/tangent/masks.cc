#include "cpu/tangent/masks.h"

#include "cpu/tangent/trace.h"

namespace openrnn::cpu {

template <class T>
StepMasks<T>::StepMasks(const TangentArgs& args, const TangentNet<T>& net,
                        std::int64_t pseudo_layer)
    : args_(&args), batch_(net.batch), pseudo_layer_(pseudo_layer) {
  const auto sized = [&](bool on, std::int64_t width) {
    return std::vector<T>(on ? static_cast<std::size_t>(net.batch * width) : 0, T(1));
  };
  state = sized(args.training && args.spec.training.drops_state(), net.outputs);
  candidate = sized(args.training && args.spec.training.drops_candidate(), net.units);
  kept = sized(args.spec.zoneout > 0.0, net.outputs);
  kept_cell = sized(args.spec.zoneout_cell > 0.0, net.units);
  for (std::int64_t b = 0; b < net.batch; ++b) {
    draw_row(MaskOf::kRecurrentState, 0, b, args.spec.training.recurrent_dropout, state);
  }
}

template <class T>
void StepMasks<T>::draw(const TangentNet<T>& net, std::int64_t n) {
  const double rate = args_->spec.training.recurrent_dropout;
  draw_rows(net, MaskOf::kCandidate, n, rate, candidate);
  keep_rows(net, MaskOf::kZoneout, n, args_->spec.zoneout, kept);
  keep_rows(net, MaskOf::kZoneoutCell, n, args_->spec.zoneout_cell, kept_cell);
}

template <class T>
void StepMasks<T>::draw_row(MaskOf masks, std::int64_t t, std::int64_t b, double rate,
                            std::vector<T>& to) const {
  if (to.empty()) return;
  const std::size_t width = to.size() / static_cast<std::size_t>(batch_);
  dropout_mask<T>(key_of(args_->dropout, masks),
                  {static_cast<std::uint32_t>(pseudo_layer_), static_cast<std::uint32_t>(t),
                   static_cast<std::uint32_t>(args_->dropout.first_row + b)},
                  rate, std::span<T>(to).subspan(static_cast<std::size_t>(b) * width, width));
}

template <class T>
void StepMasks<T>::draw_rows(const TangentNet<T>& net, MaskOf masks, std::int64_t n, double rate,
                             std::vector<T>& to) const {
  const bool backward = net.dirs == 2 && pseudo_layer_ % 2 == 1;
  for (std::int64_t b = 0; b < net.batch; ++b) {
    if (net.active(n, b)) draw_row(masks, net.row_of(n, b, backward) / net.batch, b, rate, to);
  }
}

// What dropout would drop keeps its value; outside of training each keeps the rate of it.
template <class T>
void StepMasks<T>::keep_rows(const TangentNet<T>& net, MaskOf masks, std::int64_t n, double rate,
                             std::vector<T>& to) const {
  if (args_->training) draw_rows(net, masks, n, rate, to);
  for (std::size_t k = 0; k < to.size(); ++k) {
    to[k] = !args_->training ? static_cast<T>(rate) : to[k] == T(0) ? T(1) : T(0);
  }
}

template struct StepMasks<float>;
template struct StepMasks<double>;

}  // namespace openrnn::cpu
