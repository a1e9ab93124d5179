// Moves elements between the opaque buffer and the tensors of the cell format.
#include "base/message.h"
#include "openrnn/saveables.h"

namespace openrnn {
namespace {

// A sum of two halves of 11 bits is exact enough in float that rounding it again is rounding once.
Half add(Half a, Half b) { return to_half(to_float(a) + to_float(b)); }
float add(float a, float b) { return a + b; }
double add(double a, double b) { return a + b; }
Half subtract(Half a, Half b) { return to_half(to_float(a) - to_float(b)); }
float subtract(float a, float b) { return a - b; }
double subtract(double a, double b) { return a - b; }
Half halve(Half a) { return to_half(0.5f * to_float(a)); }
float halve(float a) { return 0.5f * a; }
double halve(double a) { return 0.5 * a; }
bool same(Half a, Half b) { return to_float(a) == to_float(b); }
template <class T>
bool same(T a, T b) {
  return a == b;
}

template <class T>
void gather_part(const TfPart& part, bool is_bias, std::int64_t tensor_cols, const T* opaque,
                 T* tensor) {
  const T* from = opaque + part.offset;
  if (is_bias) {
    const T* second = part.second_offset < 0 ? nullptr : opaque + part.second_offset;
    for (std::int64_t i = 0; i < part.rows; ++i) {
      tensor[part.col + i] = second ? add(from[i], second[i]) : from[i];
    }
    return;
  }
  for (std::int64_t i = 0; i < part.rows; ++i) {
    for (std::int64_t j = 0; j < part.cols; ++j) {
      tensor[(part.row + j) * tensor_cols + part.col + i] = from[i * part.cols + j];
    }
  }
}

// Halves are equal unless the smallest subnormal would be lost: then the rest goes to the second.
template <class T>
void split_sum(T sum, T& first, T& second) {
  first = second = halve(sum);
  if (same(add(first, second), sum)) return;
  const T rest = subtract(sum, first);
  if (same(add(first, rest), sum)) second = rest;
}

template <class T>
void scatter_part(const TfPart& part, bool is_bias, std::int64_t tensor_cols, const T* tensor,
                  T* opaque) {
  T* to = opaque + part.offset;
  if (is_bias) {
    for (std::int64_t i = 0; i < part.rows; ++i) {
      const T value = tensor[part.col + i];
      if (part.second_offset < 0) {
        to[i] = value;
      } else {
        split_sum(value, to[i], opaque[part.second_offset + i]);
      }
    }
    return;
  }
  for (std::int64_t i = 0; i < part.rows; ++i) {
    for (std::int64_t j = 0; j < part.cols; ++j) {
      to[i * part.cols + j] = tensor[(part.row + j) * tensor_cols + part.col + i];
    }
  }
}

template <class Visitor>
void with_element_type(DType dtype, const Visitor& visit) {
  switch (dtype) {
    case DType::kFloat16:
      return visit(Half{});
    case DType::kFloat32:
      return visit(float{});
    default:
      return visit(double{});
  }
}

void check_tensor(const TfTensor& tensor, const std::string& named, DType dtype,
                  const ConstArrayView& given) {
  if (given.shape != tensor.shape) {
    throw ArgumentError(message(named, " has shape ", to_string(given.shape), ", expected ",
                                to_string(tensor.shape)));
  }
  if (given.dtype != dtype) {
    throw ArgumentError(
        message(named, " is ", dtype_name(given.dtype), ", expected ", dtype_name(dtype)));
  }
}

}  // namespace

std::vector<Array> TfCanonicalFormat::from_opaque(std::string_view call,
                                                  const ConstArrayView& params) const {
  check_params(call, spec_, params, opaque_size_);
  std::vector<Array> arrays;
  arrays.reserve(tensors_.size());
  for (const TfTensor& tensor : tensors_) {
    Array array(spec_.dtype, tensor.shape);
    with_element_type(spec_.dtype, [&]<class T>(T) {
      for (const TfPart& part : tensor.parts) {
        gather_part(part, tensor.kind == TfTensorKind::kBias, tensor.shape.back(),
                    params.as<T>().data(), array.as<T>().data());
      }
    });
    arrays.push_back(std::move(array));
  }
  return arrays;
}

Array TfCanonicalFormat::to_opaque(std::string_view call, std::string_view prefix,
                                   std::span<const ConstArrayView> tensors) const {
  if (tensors.size() != tensors_.size()) {
    throw ArgumentError(message("[", call, "] ", tensors.size(), " tensors, expected ",
                                tensors_.size(), " for ", describe(spec_)));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string named = message("[", call, "] tensor ", prefix, tensors_[i].name);
    check_tensor(tensors_[i], named, spec_.dtype, tensors[i]);
  }
  Array params(spec_.dtype, {opaque_size_});
  with_element_type(spec_.dtype, [&]<class T>(T) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      for (const TfPart& part : tensors_[i].parts) {
        scatter_part(part, tensors_[i].kind == TfTensorKind::kBias, tensors_[i].shape.back(),
                     tensors[i].as<T>().data(), params.as<T>().data());
      }
    }
  });
  return params;
}

}  // namespace openrnn
