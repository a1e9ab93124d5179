// The kernels' index of a mode.
#pragma once

#include "cpu/kernels/kernels.h"
#include "openrnn/spec.h"

namespace openrnn::cpu {

inline int mode_index(RnnMode mode) {
  switch (mode) {
    case RnnMode::kRnnRelu:
      return kModeRelu;
    case RnnMode::kRnnTanh:
      return kModeTanh;
    case RnnMode::kLstm:
      return kModeLstm;
    default:
      return kModeGru;
  }
}

}  // namespace openrnn::cpu
