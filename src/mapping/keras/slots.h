// What Keras 3's optimizers keep beside the variables.
#pragma once

#include <string>
#include <vector>

#include "mapping/keras/values.h"
#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// Adds the slots of an optimizer to the networks and layers of a whole model: m and v of Adam,
/// momentum of SGD, rms of RMSprop, accumulator of Adagrad. Returns the tensors that they were made
/// from, which are none where the file has no optimizer or a note says why.
std::vector<std::string> add_keras_slots(const ModelFile& file, const ValueIndex& values,
                                         MappedModel* model);

}  // namespace openrnn::mapping
