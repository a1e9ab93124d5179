#include "formats/tf_dtype.h"

#include "base/message.h"

namespace openrnn::formats {

namespace {

struct TfType {
  int number;
  std::string_view name;
  std::size_t size;
  std::optional<DType> dtype = {};
};

constexpr TfType kTypes[] = {
    {1, "float32", 4, DType::kFloat32},
    {2, "float64", 8, DType::kFloat64},
    {3, "int32", 4, DType::kInt32},
    {4, "uint8", 1, DType::kUInt8},
    {5, "int16", 2},
    {6, "int8", 1},
    {kTfString, "string", 0},
    {8, "complex64", 8},
    {9, "int64", 8, DType::kInt64},
    {10, "bool", 1, DType::kBool},
    {11, "qint8", 1},
    {12, "quint8", 1},
    {13, "qint32", 4},
    {14, "bfloat16", 2, DType::kBfloat16},
    {15, "qint16", 2},
    {16, "quint16", 2},
    {17, "uint16", 2},
    {18, "complex128", 16},
    {19, "float16", 2, DType::kFloat16},
    {20, "resource", 0},
    {21, "variant", 0},
    {22, "uint32", 4},
    {23, "uint64", 8},
    {24, "float8_e5m2", 1},
    {25, "float8_e4m3fn", 1},
};

const TfType* find(int number) {
  for (const TfType& type : kTypes) {
    if (type.number == number) return &type;
  }
  return nullptr;
}

}  // namespace

std::string tf_dtype_name(int number) {
  const TfType* type = find(number);
  return type ? std::string(type->name) : message("unknown (", number, ")");
}

std::size_t tf_dtype_size(int number) {
  const TfType* type = find(number);
  return type ? type->size : 0;
}

std::optional<DType> from_tf_dtype(int number) {
  const TfType* type = find(number);
  return type ? type->dtype : std::nullopt;
}

int to_tf_dtype(DType dtype) {
  for (const TfType& type : kTypes) {
    if (type.dtype == dtype) return type.number;
  }
  throw UnsupportedError(
      message("[to_tf_dtype] dtype is ", dtype_name(dtype), ", expected one that TensorFlow has"));
}

}  // namespace openrnn::formats
