// The opaque buffer of a layer as the inputs W, R, B and P of ONNX's recurrent operators.
#pragma once

#include "openrnn/params.h"

namespace openrnn::mapping {

/// D directions, G gates in ONNX's order, I the width that enters the layer.
struct OnnxWeights {
  Array w;                      // [D, G*U, I]
  Array r;                      // [D, G*U, U]
  std::optional<Array> b = {};  // [D, 2*G*U]
  std::optional<Array> p = {};  // [D, 3*U]
};

/// The same, of memory that is another's: of any alignment.
struct OnnxWeightViews {
  ConstArrayView w, r;
  std::optional<ConstArrayView> b = {}, p = {};
};
OnnxWeightViews views_of(const OnnxWeights& weights);

/// Of a network with two biases a gate or none, without projection and layer normalization. Where
/// x itself enters the gates (skip_input), W repeats the identity.
OnnxWeights onnx_weights_of(const ParamsLayout& layout, const ConstArrayView& params,
                            std::int64_t layer);
/// The inverse: fills the part of `params` that belongs to the layer. The shapes fit.
void fill_params(const ParamsLayout& layout, std::int64_t layer, const OnnxWeightViews& weights,
                 ArrayView params);

}  // namespace openrnn::mapping
