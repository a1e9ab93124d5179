#include "cpu/math.h"

#include "cpu/isa.h"

namespace openrnn::cpu {

std::string_view math_kind(const RnnSpec& spec) {
  if (spec.dtype == DType::kFloat64) return "float64";
  if (spec.weights_dtype == WeightsDType::kInt8) return "int8";
  const bool amx = isa_name() == "amx" || isa_name() == "amx_emulated";
  if (spec.math == Math::kBf16) return amx ? "amx" : "dot";
  return spec.math == Math::kBf16x3 && amx ? "bf16x3" : "float32";
}

}  // namespace openrnn::cpu
