// Which function the products of a network are on this machine.
#pragma once

#include "openrnn/spec.h"

namespace openrnn::cpu {

/// 'float64', 'float32', 'dot', 'amx', 'bf16x3' or 'int8', as Engine::math_kind.
std::string_view math_kind(const RnnSpec& spec);

}  // namespace openrnn::cpu
