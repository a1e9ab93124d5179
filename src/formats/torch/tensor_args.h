// The arguments with which a pickle makes a tensor.
#pragma once

#include "formats/torch/objects.h"

namespace openrnn::formats {

/// The tensor of this call, without a name. Throws: as torch_objects.
TorchTensor torch_tensor_of(const Pickle& pickle, const PickleNode& call);

}  // namespace openrnn::formats
