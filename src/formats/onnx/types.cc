#include "formats/onnx/types.h"

#include <cstring>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/tensors/contents.h"
#include "openrnn/formats_onnx.h"

namespace openrnn {

namespace formats {

namespace {

// TensorProto: float_data 4, int32_data 5, string_data 6, int64_data 7, double_data 10, uint64_data
// 11. Complex numbers are two elements of float_data or double_data.
constexpr OnnxType kOnnxTypes[] = {
    {1, "float32", 32, 4},       {2, "uint8", 8, 5},
    {3, "int8", 8, 5},           {4, "uint16", 16, 5},
    {5, "int16", 16, 5},         {6, "int32", 32, 5},
    {7, "int64", 64, 7},         {kOnnxString, "string", 0, 6},
    {kOnnxBool, "bool", 8, 5},   {10, "float16", 16, 5},
    {11, "float64", 64, 10},     {12, "uint32", 32, 11},
    {13, "uint64", 64, 11},      {14, "complex64", 64, 4},
    {15, "complex128", 128, 10}, {16, "bfloat16", 16, 5},
    {17, "float8_e4m3fn", 8, 5}, {18, "float8_e4m3fnuz", 8, 5},
    {19, "float8_e5m2", 8, 5},   {20, "float8_e5m2fnuz", 8, 5},
    {21, "uint4", 4, 5},         {22, "int4", 4, 5},
    {23, "float4_e2m1fn", 4, 5}, {24, "float8_e8m0fnu", 8, 5},
    {25, "uint2", 2, 5},         {26, "int2", 2, 5},
};

}  // namespace

const OnnxType* find_onnx_type(std::int32_t number) {
  for (const OnnxType& type : kOnnxTypes) {
    if (type.number == number) return &type;
  }
  return nullptr;
}

}  // namespace formats

std::int32_t onnx_element_type(DType dtype) {
  for (const formats::OnnxType& type : formats::kOnnxTypes) {
    if (type.name == dtype_name(dtype)) return type.number;
  }
  throw UnsupportedError(
      message("[onnx_element_type] dtype is ", dtype_name(dtype), ", expected one that ONNX has"));
}

std::optional<DType> dtype_of_onnx(std::int32_t element_type) {
  const formats::OnnxType* type = formats::find_onnx_type(element_type);
  return type ? formats::find_dtype(type->name) : std::nullopt;
}

std::string OnnxTensor::type_name() const {
  const formats::OnnxType* type = formats::find_onnx_type(element_type);
  return type ? std::string(type->name) : message("element type ", element_type);
}

Array OnnxTensor::array() const {
  const std::optional<DType> dtype = dtype_of_onnx(element_type);
  if (!dtype) {
    throw UnsupportedError(message("[onnx] tensor '", excerpt(name), "' has element type ",
                                   type_name(), ", expected one of OpenRNN's dtypes"));
  }
  Array out(*dtype, shape);
  if (out.size_bytes() != bytes.size()) {
    throw ArgumentError(message("[onnx] tensor '", excerpt(name), "' has ", bytes.size(),
                                " bytes, expected ", out.size_bytes(), " of shape ",
                                openrnn::to_string(shape)));
  }
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

OnnxTensor OnnxTensor::of(std::string name, Array values) {
  const auto owned = std::make_shared<const Array>(std::move(values));
  return {.name = std::move(name),
          .element_type = onnx_element_type(owned->dtype()),
          .shape = owned->shape(),
          .bytes = {static_cast<const char*>(owned->data()), owned->size_bytes()},
          .owner = owned,
          .strings = {}};
}

const OnnxAttribute* OnnxNode::find(std::string_view attribute) const {
  for (const OnnxAttribute& one : attributes) {
    if (one.name == attribute) return &one;
  }
  return nullptr;
}

namespace {

const std::string& name_at(const std::vector<std::string>& names, std::size_t index) {
  static const std::string none;
  return index < names.size() ? names[index] : none;
}

}  // namespace

const std::string& OnnxNode::input(std::size_t index) const { return name_at(inputs, index); }
const std::string& OnnxNode::output(std::size_t index) const { return name_at(outputs, index); }
const std::string& OnnxNode::label() const { return name.empty() ? name_at(outputs, 0) : name; }

std::int64_t OnnxModel::opset() const {
  const auto found = opsets.find("");
  return found == opsets.end() ? 1 : found->second;
}

}  // namespace openrnn
