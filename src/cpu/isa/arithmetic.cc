#include "cpu/isa/arithmetic.h"

#include <algorithm>

#include "base/message.h"
#include "cpu/isa/isa.h"
#include "openrnn/engine.h"

namespace openrnn::cpu {

Arithmetic arithmetic_of(const RnnSpec& spec, const KernelTable& table) {
  switch (spec.compute.weights_dtype) {
    case WeightsDType::kInt8:
      return kInt8;
    case WeightsDType::kFloat16:
      return kStoredHalf;
    case WeightsDType::kBfloat16:
      return kStoredBf16;
    default:
      break;
  }
  if (spec.compute.math == Math::kBf16) return may_use_tiles_of(table) ? kAmx : kDot;
  return spec.compute.math == Math::kBf16x3 && may_use_tiles_of(table) ? kBf16x3 : kExact;
}

std::string_view math_kind(const RnnSpec& spec) {
  switch (arithmetic_of(spec, kernels())) {
    case kInt8:
      return "int8";
    case kDot:
      return "dot";
    case kAmx:
      return "amx";
    case kBf16x3:
      return "bf16x3";
    default:
      return spec.dtype == DType::kFloat64 ? "float64" : "float32";
  }
}

Storage storage_of(DType dtype) {
  if (dtype == DType::kBfloat16) return kStorageBf16;
  return dtype == DType::kFloat16 ? kStorageHalf : kStorageWide;
}

std::string unsupported(const RnnSpec& spec) {
  if (const std::string reason = unsupported_on_cpu(spec); !reason.empty()) return reason;
  // The sum of this many products of 127 by 127 is the largest that fits 32 bits.
  constexpr std::int64_t kMostBytes = 133144;
  const std::int64_t widest = std::max({spec.num_units, spec.input_size, spec.output_size()});
  if (spec.compute.weights_dtype != WeightsDType::kInt8 || widest <= kMostBytes) return {};
  return message("sums of int8 are of at most ", kMostBytes, " products, and this network has ",
                 widest);
}

}  // namespace openrnn::cpu
