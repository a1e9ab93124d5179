// Which function the products of a network are on this machine.
#pragma once

#include "cpu/kernels/kernels.h"
#include "openrnn/spec.h"

namespace openrnn::cpu {

/// What the products of a network multiply with, by the kernels of `table`. Throws: as
/// may_use_tiles_of, which it asks for the math that needs them.
Arithmetic arithmetic_of(const RnnSpec& spec, const KernelTable& table);
/// The same on this machine in words: 'float64', 'float32', 'dot', 'amx', 'bf16x3' or 'int8', as
/// Engine::math_kind.
std::string_view math_kind(const RnnSpec& spec);
/// Why the kernels cannot run the spec; empty when they can.
std::string unsupported(const RnnSpec& spec);

}  // namespace openrnn::cpu
