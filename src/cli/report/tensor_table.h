// The tensors of a file as a table.
#pragma once

#include <vector>

#include "openrnn/formats_model_file.h"

namespace openrnn::cli {

/// One line for each, below a head. The result is the sum of their bytes.
std::uint64_t print_tensor_table(const std::vector<TensorInfo>& tensors);
/// In one line, shortened if it is long.
std::string text_of_value(const PlainValue& value);

}  // namespace openrnn::cli
