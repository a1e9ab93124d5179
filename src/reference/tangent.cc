#include "reference/tangent.h"

#include "reference/dual.h"
#include "reference/sequence_gradient.h"
#include "reference/write.h"

namespace openrnn {
namespace reference {

/// Values, and what they are moved by; no data: zeros.
struct DualView {
  ConstArrayView values, direction;
};

template <>
struct Source<Dual> {
  using Type = DualView;
};

template <class Real>
Vector<Real> read(const DualView& source, std::size_t place, std::size_t width) {
  const Vector<double> values = read<double>(source.values, place, width);
  const Vector<double> direction = read<double>(source.direction, place, width);
  Vector<Real> duals;
  for (std::size_t k = 0; k < width; ++k) duals.emplace_back(values[k], direction[k]);
  return duals;
}

}  // namespace reference

namespace {

using namespace reference;  // NOLINT: this file is that namespace's face

Call call_of(const TangentArgs& args) {
  Call call;
  call.max_time = static_cast<std::size_t>(args.max_time);
  call.batch = static_cast<std::size_t>(args.batch);
  call.time_major = args.time_major;
  for (std::size_t b = 0; b < call.batch; ++b) {
    call.lengths.push_back(
        args.sequence_lengths ? static_cast<std::size_t>(args.sequence_lengths[b]) : call.max_time);
  }
  call.training = args.training;
  call.key = args.dropout;
  return call;
}

void write_direction(DType dtype, const Vector<Dual>& from, void* to) {
  std::vector<double> values;
  for (const Dual& each : from) values.push_back(each.d);
  write(dtype, values, to);
}

}  // namespace

void reference::tangent(const TangentArgs& args) {
  const Network net = make_network(args.spec);
  const Call call = call_of(args);
  const std::size_t states = net.pseudo.size() * call.batch;
  const std::size_t steps = call.max_time * call.batch;
  const auto view = [&](const void* data, std::size_t size) {
    return ConstArrayView{data, net.dtype, {static_cast<std::int64_t>(size)}};
  };
  const auto both = [&](const void* values, const void* direction, std::size_t size) {
    return DualView{view(values, size), view(direction, size)};
  };
  const Vector<Dual> params =
      read<Dual>(both(args.at.params, args.direction.params, net.size), 0, net.size);
  const std::size_t inputs = steps * net.pseudo[0].input;
  const auto forward =
      reference::forward<Dual>(net, call,
                               {params.data(), both(args.at.x, args.direction.x, inputs),
                                both(args.at.h0, args.direction.h0, states * net.hidden),
                                both(args.at.c0, args.direction.c0, states * net.units)});
  write_direction(net.dtype, forward.y, args.moved.y);
  write_direction(net.dtype, forward.hn, args.moved.hn);
  write_direction(net.dtype, forward.cn, args.moved.cn);
  if (!args.curvature.any()) return;
  const auto backward = reference::backward<Dual>(
      net, call, forward.tape,
      {params.data(), both(args.gradients.y, nullptr, steps * net.dirs * net.hidden),
       both(args.gradients.hn, nullptr, states * net.hidden),
       both(args.gradients.cn, nullptr, states * net.units)});
  write_direction(net.dtype, backward.dx, args.curvature.x);
  write_direction(net.dtype, backward.dh0, args.curvature.h0);
  write_direction(net.dtype, backward.dc0, args.curvature.c0);
  write_direction(net.dtype, backward.dparams, args.curvature.params);
}

}  // namespace openrnn
