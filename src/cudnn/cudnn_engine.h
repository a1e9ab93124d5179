// The recurrent computation through cuDNN.
#pragma once

#include "openrnn/engine.h"

namespace openrnn::cudnn {

/// The engine over the memory of one GPU, which must exist. Lives as long as the process.
const Engine& cudnn_engine(int ordinal);

}  // namespace openrnn::cudnn
