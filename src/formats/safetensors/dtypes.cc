#include "formats/safetensors/dtypes.h"

#include "base/message.h"

namespace openrnn::formats {

namespace {

constexpr SafetensorsType kTypes[] = {
    {"BOOL", "bool", 8},
    {"U8", "uint8", 8},
    {"I8", "int8", 8},
    {"F8_E5M2", "float8_e5m2", 8},
    {"F8_E4M3", "float8_e4m3fn", 8},
    {"F8_E8M0", "float8_e8m0fnu", 8},
    {"F8_E4M3FNUZ", "float8_e4m3fnuz", 8},
    {"F8_E5M2FNUZ", "float8_e5m2fnuz", 8},
    {"I16", "int16", 16},
    {"U16", "uint16", 16},
    {"F16", "float16", 16},
    {"BF16", "bfloat16", 16},
    {"I32", "int32", 32},
    {"U32", "uint32", 32},
    {"F32", "float32", 32},
    {"C64", "complex64", 64},
    {"F64", "float64", 64},
    {"I64", "int64", 64},
    {"U64", "uint64", 64},
    {"F4", "float4_e2m1fn", 4},
    {"F6_E2M3", "float6_e2m3fn", 6},
    {"F6_E3M2", "float6_e3m2fn", 6},
};

}  // namespace

const SafetensorsType* find_safetensors_type(std::string_view code) {
  for (const SafetensorsType& type : kTypes) {
    if (type.code == code) return &type;
  }
  return nullptr;
}

const SafetensorsType& safetensors_type_of(DType dtype) {
  for (const SafetensorsType& type : kTypes) {
    if (type.name == dtype_name(dtype)) return type;
  }
  throw UnsupportedError(message("[write_safetensors] dtype is ", dtype_name(dtype),
                                 ", expected one that safetensors has"));
}

}  // namespace openrnn::formats
