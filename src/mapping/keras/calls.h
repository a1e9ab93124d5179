// What the layers of a Keras model are called on: outputs of other layers, and masks.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "openrnn/mapping_layers.h"

namespace openrnn::mapping {

/// Which steps of a sequence count: those at which `of` is another number than `value`. With `any`
/// `of` has elements at each step, and one of them is another number.
struct KerasMask {
  LayerOutput of;
  double value = 0.0;
  bool any = false;

  friend bool operator==(const KerasMask&, const KerasMask&) = default;
};

/// The masks that layers hand on with their outputs, as LayerGraph computes them.
class KerasMasks {
 public:
  /// Its inputs have been added.
  void add(const MappedLayer& layer);
  /// Null where all steps count.
  const KerasMask* find(const LayerOutput& output) const;

 private:
  std::map<std::pair<std::string, std::int64_t>, KerasMask> masks_;
};

/// What the layers of one model have made so far, by their names in it.
struct KerasMade {
  std::map<std::string, std::vector<LayerOutput>> outputs;
  /// By Keras 3's operations.
  std::map<std::string, KerasMask> masks;

  /// `place`: as is_keras_place. Throws: NoKerasLayer.
  LayerOutput find(const nlohmann::json& place) const;
};

/// ["lstm", 0, 1], which may have options behind it.
bool is_keras_place(const nlohmann::json& item);

/// Whether a node is one of Keras 3's operations, which stand among the layers.
bool is_keras_operation(const nlohmann::json& node);
/// Whether it is one of those that Keras puts there for masks: NotEqual, Any.
bool is_keras_mask(const nlohmann::json& node);
/// What it computes. Throws: NoKerasLayer for anything but a mask.
KerasMask read_keras_mask(const nlohmann::json& node, const KerasMade& made);

/// What a layer is called on.
struct KerasCall {
  std::vector<LayerOutput> inputs;
  /// It is given a mask, which is that of its input.
  bool has_mask = false;
};

/// Throws: NoKerasLayer, also for a mask that is not that of its input.
KerasCall read_keras_call(const nlohmann::json& node, const KerasMade& made,
                          const KerasMasks& masks);

}  // namespace openrnn::mapping
