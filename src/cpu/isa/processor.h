// Features of this processor and its operating system.
#pragma once

#include <string_view>

namespace openrnn::cpu {

/// Whether the kernels of that name can run here. 'amx' can until its tiles are refused.
bool processor_runs(std::string_view name);
/// Whether processor and operating system keep the tiles of AMX.
bool keeps_amx_tiles();
/// Whether there are products of bytes among the instructions of AVX-512 (VNNI).
bool has_byte_products();
/// Whether AVX-512 has products of bfloat16 that are faster than float32.
bool bf16_dot_pays();

}  // namespace openrnn::cpu
