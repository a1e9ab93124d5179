// The inputs of ONNX's operators and the canonical form.
#include "base/message.h"
#include "mapping/onnx/weights.h"
#include "mapping/support/options.h"
#include "openrnn/mapping_onnx.h"

namespace openrnn {

namespace {

using mapping::OnnxWeights;

void require_onnx_layout(std::string_view call, const RnnSpec& spec) {
  constexpr std::string_view kHeld[] = {
      "input_mode",           "reset_after",       "activation",
      "recurrent_activation", "output_activation", "use_peepholes",
      "coupled_gates",        "gate_clip",         "use_bias"};
  mapping::require_held(call, "", mapping::plainest(spec), "the tensors of an ONNX operator",
                        kHeld);
}

// In the order of the public functions.
template <class Weights>
auto tensors_of(Weights& weights) {
  std::vector<decltype(&weights.w)> all{&weights.w, &weights.r};
  if (weights.b) all.push_back(&*weights.b);
  if (weights.p) all.push_back(&*weights.p);
  return all;
}

}  // namespace

CanonicalParams canonical_from_onnx(const ValidSpec& spec,
                                    std::span<const ConstArrayView> tensors) {
  require_onnx_layout("canonical_from_onnx", spec);
  const ParamsLayout layout(spec);
  Array params(spec->dtype, {layout.size()});
  std::size_t next = 0;
  for (std::int64_t layer = 0; layer < spec->num_layers; ++layer) {
    const OnnxWeights expected = mapping::onnx_weights_of(layout, params.view(), layer);
    mapping::OnnxWeightViews weights = mapping::views_of(expected);
    for (ConstArrayView* tensor : tensors_of(weights)) {
      if (next == tensors.size() || tensors[next].dtype != tensor->dtype ||
          tensors[next].shape != tensor->shape) {
        throw ArgumentError(message("[canonical_from_onnx] tensor ", next, " of ", tensors.size(),
                                    " does not fit, expected ", dtype_name(tensor->dtype), " ",
                                    to_string(tensor->shape)));
      }
      *tensor = tensors[next++];
    }
    mapping::fill_params(layout, layer, weights, params.view());
  }
  if (next != tensors.size()) {
    throw ArgumentError(
        message("[canonical_from_onnx] there are ", tensors.size(), " tensors, expected ", next));
  }
  return params_to_canonical(layout, params.view());
}

std::vector<Array> onnx_from_canonical(const ValidSpec& spec,
                                       std::span<const ConstArrayView> weights,
                                       std::span<const ConstArrayView> biases) {
  require_onnx_layout("onnx_from_canonical", spec);
  const ParamsLayout layout(spec);
  const Array params = canonical_to_params(layout, weights, biases);
  std::vector<Array> all;
  for (std::int64_t layer = 0; layer < spec->num_layers; ++layer) {
    OnnxWeights own = mapping::onnx_weights_of(layout, params.view(), layer);
    for (Array* tensor : tensors_of(own)) all.push_back(std::move(*tensor));
  }
  return all;
}

}  // namespace openrnn
