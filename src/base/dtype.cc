#include <array>

#include "base/excerpt.h"
#include "base/message.h"
#include "openrnn/base.h"

namespace openrnn {
namespace {

struct DTypeInfo {
  DType dtype;
  std::size_t size;
  std::string_view name;
};

// In the order of the enumerators.
constexpr std::array kDTypes = {
    DTypeInfo{DType::kFloat16, 2, "float16"}, DTypeInfo{DType::kBfloat16, 2, "bfloat16"},
    DTypeInfo{DType::kFloat32, 4, "float32"}, DTypeInfo{DType::kFloat64, 8, "float64"},
    DTypeInfo{DType::kInt32, 4, "int32"},     DTypeInfo{DType::kInt64, 8, "int64"},
    DTypeInfo{DType::kUInt8, 1, "uint8"},     DTypeInfo{DType::kBool, 1, "bool"},
};

const DTypeInfo& info(DType dtype) { return kDTypes.at(static_cast<std::size_t>(dtype)); }

}  // namespace

std::size_t dtype_size(DType dtype) { return info(dtype).size; }
std::string_view dtype_name(DType dtype) { return info(dtype).name; }

DType parse_dtype(std::string_view name) {
  for (const DTypeInfo& entry : kDTypes) {
    if (entry.name == name) return entry.dtype;
  }
  std::string known;
  for (const DTypeInfo& entry : kDTypes) known += message(known.empty() ? "" : ", ", entry.name);
  throw ArgumentError(
      message("[parse_dtype] dtype is '", excerpt(name), "', expected one of ", known));
}

bool is_floating(DType dtype) {
  return is_16_bit_float(dtype) || dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

bool is_16_bit_float(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBfloat16; }

DType compute_dtype(DType dtype) { return is_16_bit_float(dtype) ? DType::kFloat32 : dtype; }

namespace detail {
void throw_dtype_mismatch(DType held, DType asked) {
  throw TypeError(
      message("[as] the array holds ", dtype_name(held), ", asked for ", dtype_name(asked)));
}
}  // namespace detail

}  // namespace openrnn
