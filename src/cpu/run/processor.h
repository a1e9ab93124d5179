// What this processor and its operating system allow.
#pragma once

#include <string_view>

namespace openrnn::cpu {

/// Whether the kernels of that name can run here. The first question for 'amx' asks the operating
/// system to let this process (and its children) use the tile registers.
bool processor_runs(std::string_view name);
/// Whether there are products of bytes among the instructions of AVX-512 (VNNI).
bool has_byte_products();
/// Whether products of bfloat16 with AVX-512 are there and faster than float32.
bool bf16_dot_pays();

}  // namespace openrnn::cpu
