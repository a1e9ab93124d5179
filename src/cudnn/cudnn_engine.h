// The recurrent computation through cuDNN.
#pragma once

#include "openrnn/engine.h"

namespace openrnn::cudnn {

/// The engine over the memory of one GPU, which must be there. Lives as long as the program.
const Engine& cudnn_engine(int ordinal);

}  // namespace openrnn::cudnn
