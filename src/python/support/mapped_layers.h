// The layers of whole models, as lists and dictionaries in Python.
#pragma once

#include "openrnn/mapping.h"
#include "python/support/convert.h"

namespace openrnn::python {

/// [{"name", "kind", "inputs": [(layer, index)], "options", "weights", "slots", "tensors"}].
nb::list layers_to_python(const std::vector<MappedLayer>& layers);
/// The inverse; weights may be left out. Throws: ArgumentError as layer_option; TypeError.
std::vector<MappedLayer> layers_from_python(nb::handle layers);
/// [(layer, index)].
nb::list outputs_to_python(const std::vector<LayerOutput>& outputs);
std::vector<LayerOutput> outputs_from_python(nb::handle outputs);

}  // namespace openrnn::python
