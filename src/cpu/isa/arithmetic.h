// The arithmetic of a network's products on this machine.
#pragma once

#include "cpu/kernels/kernels.h"
#include "openrnn/spec.h"

namespace openrnn::cpu {

/// The arithmetic of a network's products with the kernels of `table`. Throws: as may_use_tiles_of,
/// which it asks for the math that needs them.
Arithmetic arithmetic_of(const RnnSpec& spec, const KernelTable& table);
/// Its name on this machine: 'float64', 'float32', 'dot', 'amx', 'bf16x3' or 'int8', as
/// Engine::math_kind.
std::string_view math_kind(const RnnSpec& spec);
/// What values of a floating dtype are stored as; kStorageWide of float32 and float64.
Storage storage_of(DType dtype);
/// Why the kernels cannot run the spec; empty when they can.
std::string unsupported(const RnnSpec& spec);

}  // namespace openrnn::cpu
