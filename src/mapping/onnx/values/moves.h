// ONNX's operators that move elements or convert them, and compute nothing else.
#pragma once

#include "mapping/onnx/values/arrays.h"
#include "openrnn/formats_onnx.h"

namespace openrnn::mapping {

/// Cast, Concat, Constant, ConstantOfShape, Expand, Flatten, Gather, Identity, Reshape, Shape,
/// Size, Slice, Split, Squeeze, Transpose, Unsqueeze, of ONNX's own domain.
bool is_move(const OnnxNode& node);
/// Their names.
std::vector<std::string_view> move_names();

/// The outputs. `inputs` are those of the node, null where one is left out. What was an attribute
/// in an older set of operators and is an input now may be either.
/// Throws: UnsupportedError naming the node for attributes, inputs and element types that are not
/// as the operator has them; ArgumentError for shapes that do not fit.
std::vector<Array> compute_move(const OnnxNode& node, const std::vector<const Array*>& inputs,
                                MemoryBudget* budget);

}  // namespace openrnn::mapping
