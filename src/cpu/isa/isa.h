// The one place where an instruction set is chosen.
#pragma once

#include <string_view>
#include <vector>

#include "cpu/kernels/kernels.h"

namespace openrnn::cpu {

/// 'scalar', 'avx2', 'avx512', 'amx' or 'neon': what new calls and new packings use. The first call
/// reads OPENRNN_ISA, else takes the widest that this processor has. 'amx' is 'avx512' with other
/// kernels for bfloat16; 'amx_emulated' is 'amx' bit for bit on any processor with AVX-512, slowly,
/// and only when forced. Throws: EngineError when OPENRNN_ISA names one that is unknown or that
/// this processor lacks.
std::string_view isa_name();
/// The instruction sets that this processor has, widest last, without 'amx_emulated'.
std::vector<std::string_view> available_isas();
/// Chooses for all later packing and products; parameters packed before keep theirs. Empty: the
/// default again. Throws: EngineError when `name` is unknown or this processor lacks it.
void force_isa(std::string_view name);
/// Whether `table` has tiles that may be used; for those of AMX the first call asks the operating
/// system. If refused, the choice falls back to 'avx512'. Throws: EngineError when it was forced.
bool may_use_tiles_of(const KernelTable& table);
/// The kernels of isa_name(). Throws as it.
const KernelTable& kernels();
/// The fastest of this processor for one arithmetic that `table` has, with its packing.
template <class T>
const Kernels<T>& kernels_for(const KernelTable& table, Arithmetic arithmetic);
template <>
const Kernels<float>& kernels_for<float>(const KernelTable& table, Arithmetic arithmetic);
template <>
const Kernels<double>& kernels_for<double>(const KernelTable& table, Arithmetic arithmetic);

}  // namespace openrnn::cpu
