#include "mapping/onnx/weights.h"

#include <algorithm>
#include <cstring>

#include "mapping/onnx/facts.h"

namespace openrnn::mapping {

namespace {

enum class Part { kW, kR, kB, kP };

// Where the elements of a region are in ONNX's tensors: one piece each.
struct Place {
  Part part;
  std::int64_t offset;
};

std::int64_t index_of(std::span<const Gate> gates, Gate gate) {
  return std::find(gates.begin(), gates.end(), gate) - gates.begin();
}

Place place_of(const RnnSpec& spec, const ParamRegion& region) {
  const OnnxOperator& facts = recurrent_of(spec.mode);
  const Gate gate = gates_of(spec.mode)[static_cast<std::size_t>(region.gate)];
  const std::int64_t gates = spec.num_gates(), block = index_of(facts.gates, gate);
  const auto row = [&](std::int64_t all, std::int64_t at) { return region.direction * all + at; };
  switch (region.role) {
    case ParamRole::kInputWeight:
      return {Part::kW, row(gates, block) * region.size()};
    case ParamRole::kRecurrentWeight:
      return {Part::kR, row(gates, block) * region.size()};
    case ParamRole::kInputBias:
      return {Part::kB, row(2 * gates, block) * region.size()};
    case ParamRole::kRecurrentBias:
      return {Part::kB, row(2 * gates, gates + block) * region.size()};
    default:
      return {Part::kP, row(3, index_of(facts.peepholes, gate)) * region.size()};
  }
}

template <class Weights>
auto& part_of(Weights& weights, Part part) {
  switch (part) {
    case Part::kW:
      return weights.w;
    case Part::kR:
      return weights.r;
    case Part::kB:
      return *weights.b;
    case Part::kP:
      break;
  }
  return *weights.p;
}
void* data_of(Array& part) { return part.data(); }
const void* data_of(const ConstArrayView& part) { return part.data; }

// Calls `copy` with each region of the layer and the first byte of its place in ONNX's tensors.
template <class Weights, class Copy>
void for_each_piece(const ParamsLayout& layout, std::int64_t layer, Weights& weights,
                    const Copy& copy) {
  const auto element = static_cast<std::int64_t>(dtype_size(layout.spec().dtype));
  for (const auto regions : {layout.weights(), layout.biases()}) {
    for (const ParamRegion& region : regions) {
      if (region.layer != layer || region.size() == 0) continue;
      const Place place = place_of(layout.spec(), region);
      auto* const data = data_of(part_of(weights, place.part));
      copy(region.offset * element, static_cast<std::size_t>(region.size() * element),
           place.offset * element, data);
    }
  }
}

void put_identity(const RnnSpec& spec, Array* w) {
  const Array one = cast(Array::of<double>({1}, std::vector<double>{1.0}).view(), spec.dtype);
  const auto bytes = static_cast<std::int64_t>(dtype_size(spec.dtype));
  const std::int64_t rows = w->shape()[0] * w->shape()[1];
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t at = row * spec.input_size + row % spec.num_units;
    std::memcpy(static_cast<char*>(w->data()) + at * bytes, one.data(),
                static_cast<std::size_t>(bytes));
  }
}

}  // namespace

OnnxWeights onnx_weights_of(const ParamsLayout& layout, const ConstArrayView& params,
                            std::int64_t layer) {
  const RnnSpec& spec = layout.spec();
  const std::int64_t dirs = spec.num_dirs(), units = spec.num_units,
                     rows = spec.num_gates() * units;
  OnnxWeights weights{.w = Array(spec.dtype, {dirs, rows, spec.layer_input_size(layer)}),
                      .r = Array(spec.dtype, {dirs, rows, units})};
  if (spec.use_bias) weights.b = Array(spec.dtype, {dirs, 2 * rows});
  if (spec.use_peepholes) weights.p = Array(spec.dtype, {dirs, 3 * units});
  const auto* const from = static_cast<const char*>(params.data);
  for_each_piece(layout, layer, weights,
                 [&](std::int64_t offset, std::size_t bytes, std::int64_t place, void* part) {
                   std::memcpy(static_cast<char*>(part) + place, from + offset, bytes);
                 });
  if (layer == 0 && spec.skips_input()) put_identity(spec, &weights.w);
  return weights;
}

OnnxWeightViews views_of(const OnnxWeights& weights) {
  OnnxWeightViews views{.w = weights.w.view(), .r = weights.r.view()};
  if (weights.b) views.b = weights.b->view();
  if (weights.p) views.p = weights.p->view();
  return views;
}

void fill_params(const ParamsLayout& layout, std::int64_t layer, const OnnxWeightViews& weights,
                 ArrayView params) {
  auto* const to = static_cast<char*>(params.data);
  for_each_piece(layout, layer, weights,
                 [&](std::int64_t offset, std::size_t bytes, std::int64_t place, const void* part) {
                   std::memcpy(to + offset, static_cast<const char*>(part) + place, bytes);
                 });
}

}  // namespace openrnn::mapping
