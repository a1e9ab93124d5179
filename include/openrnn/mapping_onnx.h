// ONNX's recurrent operators as networks, and networks as ONNX models, in memory.
#pragma once

#include "openrnn/formats_onnx.h"
#include "openrnn/mapping.h"

namespace openrnn {

/// Networks of the nodes RNN, LSTM and GRU of all graphs of a model whose weights are constants, or
/// moved from such (Cast, Concat, Reshape, Slice, Transpose, ...); layers that are chained as
/// exporters chain them are one network. Notes say why no network was made of a node, and name what
/// is quantised, unrolled or written out in the body of a Scan or Loop.
OPENRNN_API MappedModel networks_from_onnx(const OnnxModel& model);

struct OnnxExportOptions {
  /// An input `lengths` [B], int32.
  bool lengths = false;
  /// Inputs `h0` [L*D, B, U], and `c0` of an LSTM, instead of the states that the network has.
  bool states = false;
};
/// A graph of standard operators: for each network x [T, B, I] in, y [T, B, D*U], h [L*D, B, U] and
/// c of an LSTM out, with the network's name and '/' before them. The set of operators is that of
/// version 14, or 22 with bfloat16.
/// Throws: UnsupportedError naming the network and each option that ONNX cannot hold.
OPENRNN_API OnnxModel onnx_from_networks(const MappedModel& model,
                                         const OnnxExportOptions& options = {});

/// The canonical form of the inputs W, R, B (with use_bias) and P (with use_peepholes) of each
/// layer in turn. Throws: UnsupportedError naming the options that ONNX lacks; ArgumentError for a
/// wrong count, shape or dtype, and as RnnSpec::validate.
OPENRNN_API CanonicalParams canonical_from_onnx(const ValidSpec& spec,
                                                std::span<const ConstArrayView> tensors);
/// The inverse. Throws: as above, and as canonical_to_params.
OPENRNN_API std::vector<Array> onnx_from_canonical(const ValidSpec& spec,
                                                   std::span<const ConstArrayView> weights,
                                                   std::span<const ConstArrayView> biases);

}  // namespace openrnn
