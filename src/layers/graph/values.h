// What each kind of layer computes on values.
#pragma once

#include <memory>
#include <vector>

#include "openrnn/layers.h"
#include "openrnn/mapping_layers.h"

namespace openrnn::layers {

/// Which steps count, [B, T]; null: all do.
using StepMask = std::shared_ptr<const std::vector<bool>>;

/// A value between two layers.
struct GraphValue {
  Tensor x;
  StepMask mask = {};
};

/// One layer of one call.
struct GraphStep {
  const MappedLayer& layer;
  std::vector<GraphValue> inputs;
  /// Null for kinds without one.
  Layer* made = nullptr;
  bool training = false;
  /// Of a stateful layer: read and written.
  std::vector<Tensor>* state = nullptr;
};

std::vector<GraphValue> compute_layer(const GraphStep& step);
/// The kind 'recurrent'.
std::vector<GraphValue> compute_recurrent(const GraphStep& step);
/// Over the last dimension where it is one of several elements.
Tensor apply_function(const LayerFunction& function, const Tensor& x);
/// Whether a Dense layer computes the function itself.
std::optional<Activation> own_activation(const LayerFunction& function);

}  // namespace openrnn::layers
