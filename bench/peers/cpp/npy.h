// Arrays in NumPy's format: little-endian float32 and int32, C order, all that the workers need.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace peers {

/// Throws: std::runtime_error for a file that is missing or of another type.
std::vector<float> read_floats(const std::string& path);
std::vector<std::int32_t> read_integers(const std::string& path);
/// One dimension.
void write_floats(const std::string& path, const std::vector<float>& values);

}  // namespace peers
