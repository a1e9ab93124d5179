// TensorProto, which holds the elements of constants in graphs and of checkpoints of version 1.
#pragma once

#include <string>
#include <string_view>

#include "openrnn/base.h"

namespace openrnn::formats {

struct TfTensorProto {
  int dtype = 0;
  Shape shape;
  /// Elements as bytes, a part of what was decoded; empty where they are in `values`.
  std::string_view content;
  /// Elements of the lists of numbers, as bytes of `dtype`.
  std::string values;
};

/// Checks the encoding alone; false if the bytes are no such message. `dtype`: that of the elements
/// where the message does not say it; 0: it must. Of strings no elements are decoded.
bool decode_tensor_proto(std::string_view bytes, int dtype, TfTensorProto* tensor);

}  // namespace openrnn::formats
