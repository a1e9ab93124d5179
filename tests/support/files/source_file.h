#pragma once

#include <string>

namespace openrnn {

/// The path of a file of the source tree: source_file("tests/golden/cpu_hashes.txt").
std::string source_file(const std::string& path);

}  // namespace openrnn
