// The kernels' indices of a mode.
#pragma once

#include "cpu/kernels/kernels.h"
#include "openrnn/spec.h"

namespace openrnn::cpu {

inline int mode_index(const RnnSpec& spec) {
  if (spec.is_lstm()) return kModeLstm;
  if (spec.mode == RnnMode::kGru) return kModeGru;
  return spec.candidate_activation().kind == CellActivationKind::kRelu ? kModeRelu : kModeTanh;
}

/// Of a cell with options; that of a reset before the product has two parts, of which forward
/// begins with this one.
inline int cell_index(const RnnSpec& spec) {
  if (spec.is_lstm()) return kCellLstm;
  if (spec.mode != RnnMode::kGru) return kCellPlain;
  if (spec.projecting()) return kCellProjectedGru;
  return spec.reset_after ? kCellGru : kCellReset;
}

}  // namespace openrnn::cpu
