// Whether the emulation of AMX can run here.
#pragma once

#include "cpu/isa/processor.h"

namespace openrnn::cpu {

inline bool has_emulation() { return processor_runs("amx_emulated"); }
inline constexpr const char* kNoEmulation = "the emulation of AMX needs AVX-512";

}  // namespace openrnn::cpu
