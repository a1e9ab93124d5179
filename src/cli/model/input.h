// Input files of the tool.
#pragma once

#include <string>

#include "openrnn/base.h"

namespace openrnn::cli {

/// A file of NumPy, CSV (rows by columns) or sound.
Array read_input(const std::string& path);
/// Numbers of any kind in a floating dtype.
Array as_floating(const Array& values, DType dtype);
/// Whole numbers as int32. Throws: ArgumentError naming the first that is none, or too large.
Array as_indices(const Array& values);

}  // namespace openrnn::cli
