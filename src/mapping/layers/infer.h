// What each kind of layer makes of its inputs: dtypes, shapes, masks.
#pragma once

#include "openrnn/mapping_layers.h"

namespace openrnn::mapping {

using LayerValues = std::vector<LayerValue>;

LayerValues infer_input(const MappedLayer& layer, std::span<const LayerValue> inputs,
                        const FindSpec& find_spec);
LayerValues infer_embedding(const MappedLayer& layer, std::span<const LayerValue> inputs,
                            const FindSpec& find_spec);
LayerValues infer_masking(const MappedLayer& layer, std::span<const LayerValue> inputs,
                          const FindSpec& find_spec);
LayerValues infer_recurrent(const MappedLayer& layer, std::span<const LayerValue> inputs,
                            const FindSpec& find_spec);
LayerValues infer_dense(const MappedLayer& layer, std::span<const LayerValue> inputs,
                        const FindSpec& find_spec);
LayerValues infer_activation(const MappedLayer& layer, std::span<const LayerValue> inputs,
                             const FindSpec& find_spec);
LayerValues infer_dropout(const MappedLayer& layer, std::span<const LayerValue> inputs,
                          const FindSpec& find_spec);
LayerValues infer_reshape(const MappedLayer& layer, std::span<const LayerValue> inputs,
                          const FindSpec& find_spec);
LayerValues infer_repeat(const MappedLayer& layer, std::span<const LayerValue> inputs,
                         const FindSpec& find_spec);
LayerValues infer_time_mean(const MappedLayer& layer, std::span<const LayerValue> inputs,
                            const FindSpec& find_spec);
LayerValues infer_concat(const MappedLayer& layer, std::span<const LayerValue> inputs,
                         const FindSpec& find_spec);
/// Of add, subtract, multiply and average.
LayerValues infer_elementwise(const MappedLayer& layer, std::span<const LayerValue> inputs,
                              const FindSpec& find_spec);

}  // namespace openrnn::mapping
