// Moves elements between the opaque buffer and the tensors of the cell format.
#include <algorithm>
#include <type_traits>

#include "base/array/transpose.h"
#include "base/message.h"
#include "saveables/parts.h"

namespace openrnn {
namespace {

using saveables::BiasForm;

template <class T>
T computed(T value) {
  return value;
}
float computed(Half value) { return to_float(value); }
float computed(Bfloat16 value) { return to_float(value); }
template <class T, class C>
T stored(C value) {
  if constexpr (std::is_same_v<T, Half>) {
    return to_half(value);
  } else if constexpr (std::is_same_v<T, Bfloat16>) {
    return to_bfloat16(value);
  } else {
    return value;
  }
}

// A sum of two values of at most 11 bits is exact enough in float that rounding it again is
// rounding once.
template <class T>
T add(T a, T b) {
  return stored<T>(computed(a) + computed(b));
}
template <class T>
T subtract(T a, T b) {
  return stored<T>(computed(a) - computed(b));
}
template <class T>
T halve(T a) {
  return stored<T>(computed(a) / 2);
}
template <class T>
bool same(T a, T b) {
  return computed(a) == computed(b);
}

template <class T>
void gather_bias(const TfPart& part, BiasForm form, const T* opaque, T* tensor) {
  const T* first = opaque + part.offset;
  const T* second = part.second_offset < 0 ? nullptr : opaque + part.second_offset;
  const T* one = form == BiasForm::kRecurrent && second ? second : first;
  const bool sum = form == BiasForm::kSum && second;
  for (std::int64_t i = 0; i < part.rows; ++i) {
    tensor[part.col + i] = sum ? add(first[i], second[i]) : one[i];
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
void scatter_bias(const TfPart& part, BiasForm form, const T* tensor, T* opaque) {
  T* first = opaque + part.offset;
  T* second = part.second_offset < 0 ? nullptr : opaque + part.second_offset;
  for (std::int64_t i = 0; i < part.rows; ++i) {
    const T value = tensor[part.col + i];
    if (form == BiasForm::kSum && second) {
      split_sum(value, first[i], second[i]);
    } else {
      (form == BiasForm::kRecurrent ? second : first)[i] = value;
    }
  }
}

template <class Visitor>
void with_element_type(DType dtype, const Visitor& visit) {
  switch (dtype) {
    case DType::kFloat16:
      return visit(Half{});
    case DType::kBfloat16:
      return visit(Bfloat16{});
    case DType::kFloat32:
      return visit(float{});
    default:
      return visit(double{});
  }
}

std::size_t size_of(std::int64_t count) { return static_cast<std::size_t>(count); }

// A region is the transpose of its part of the tensor.
void gather_matrix(const TfPart& part, const ConstArrayView& opaque, Array* tensor) {
  const std::int64_t width = static_cast<std::int64_t>(dtype_size(opaque.dtype)),
                     stride = tensor->shape().back();
  transpose(static_cast<const std::byte*>(opaque.data) + part.offset * width, size_of(part.cols),
            size_of(part.rows), size_of(part.cols), size_of(width),
            static_cast<std::byte*>(tensor->data()) + (part.row * stride + part.col) * width,
            size_of(stride));
}

void scatter_matrix(const TfPart& part, std::int64_t first, const ConstArrayView& rows,
                    Array* opaque) {
  const std::int64_t begin = std::max(first, part.row),
                     end = std::min(first + rows.shape[0], part.row + part.cols);
  if (begin >= end) return;
  const std::int64_t width = static_cast<std::int64_t>(dtype_size(rows.dtype)),
                     stride = rows.shape.back();
  transpose(
      static_cast<const std::byte*>(rows.data) + ((begin - first) * stride + part.col) * width,
      size_of(stride), size_of(end - begin), size_of(part.rows), size_of(width),
      static_cast<std::byte*>(opaque->data()) + (part.offset + begin - part.row) * width,
      size_of(part.cols));
}

// An absent matrix (skip_input) may come as [0], as it has no elements.
bool fits(const Shape& given, const TfTensor& tensor) {
  return given == tensor.shape || (shape_size(tensor.shape) == 0 && given == Shape{0});
}

void check_tensor(const TfTensor& tensor, const std::string& named, DType dtype,
                  const ConstArrayView& given) {
  if (!fits(given.shape, tensor)) {
    throw ArgumentError(message(named, " has shape ", to_string(given.shape), ", expected ",
                                to_string(tensor.shape)));
  }
  if (given.dtype != dtype) {
    throw ArgumentError(
        message(named, " is ", dtype_name(given.dtype), ", expected ", dtype_name(dtype)));
  }
}

}  // namespace

namespace saveables {

Array tensor_of(const TfTensor& tensor, BiasForm form, const ConstArrayView& opaque) {
  Array array(opaque.dtype, tensor.shape);
  for (const TfPart& part : tensor.parts) {
    if (tensor.kind != TfTensorKind::kBias) {
      gather_matrix(part, opaque, &array);
      continue;
    }
    with_element_type(opaque.dtype, [&]<class T>(T) {
      gather_bias(part, form, opaque.as<T>().data(), array.as<T>().data());
    });
  }
  return array;
}

void set_rows(const TfTensor& tensor, BiasForm form, std::int64_t first, const ConstArrayView& rows,
              Array* opaque) {
  for (const TfPart& part : tensor.parts) {
    if (tensor.kind != TfTensorKind::kBias) {
      if (rows.shape.size() == 2) scatter_matrix(part, first, rows, opaque);
      continue;
    }
    with_element_type(opaque->dtype(), [&]<class T>(T) {
      scatter_bias(part, form, rows.as<T>().data(), opaque->as<T>().data());
    });
  }
}

}  // namespace saveables

using saveables::set_rows;
using saveables::tensor_of;

std::vector<Array> TfCanonicalFormat::from_opaque(std::string_view call,
                                                  const ConstArrayView& params) const {
  check_params(call, spec_, params, opaque_size_);
  std::vector<Array> arrays;
  arrays.reserve(tensors_.size());
  for (const TfTensor& tensor : tensors_)
    arrays.push_back(tensor_of(tensor, BiasForm::kSum, params));
  return arrays;
}

void TfCanonicalFormat::check_tensors(std::string_view call, std::string_view prefix, DType dtype,
                                      std::span<const ConstArrayView> tensors) const {
  if (tensors.size() != tensors_.size()) {
    throw ArgumentError(message("[", call, "] ", tensors.size(), " tensors, expected ",
                                tensors_.size(), " for ", describe(spec_)));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string named = message("[", call, "] tensor ", prefix, tensors_[i].name);
    check_tensor(tensors_[i], named, dtype, tensors[i]);
  }
}

Array TfCanonicalFormat::to_opaque(std::string_view call, std::string_view prefix,
                                   std::span<const ConstArrayView> tensors) const {
  check_tensors(call, prefix, spec_.dtype, tensors);
  Array params(spec_.dtype, {opaque_size_});
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    set_rows(tensors_[i], BiasForm::kSum, 0, tensors[i], &params);
  }
  return params;
}

std::vector<Array> TfCanonicalFormat::slots_from_opaque(std::string_view call,
                                                        const ConstArrayView& slots) const {
  check_slots(call, spec_, slots, opaque_size_);
  std::vector<Array> arrays;
  for (const TfTensor& tensor : tensors_)
    arrays.push_back(tensor_of(tensor, BiasForm::kInput, slots));
  for (const TfTensor& tensor : tensors_) {
    if (tensor.sums_biases()) arrays.push_back(tensor_of(tensor, BiasForm::kRecurrent, slots));
  }
  return arrays;
}

Array TfCanonicalFormat::slots_to_opaque(std::string_view call, std::string_view prefix,
                                         std::span<const ConstArrayView> tensors) const {
  std::size_t whole = tensors_.size();
  for (const TfTensor& tensor : tensors_) whole += tensor.sums_biases();
  if (tensors.size() != tensors_.size() && tensors.size() != whole) {
    throw ArgumentError(message("[", call, "] ", tensors.size(), " tensors of a slot, expected ",
                                tensors_.size(), ", or ", whole,
                                " with those of the recurrent biases, for ", describe(spec_)));
  }
  const DType dtype = tensors[0].dtype;
  if (!is_floating(dtype)) {
    throw ArgumentError(message("[", call, "] tensor ", prefix, tensors_[0].name, " is ",
                                dtype_name(dtype),
                                ", expected float16, bfloat16, float32 or float64"));
  }
  check_tensors(call, prefix, dtype, tensors.first(tensors_.size()));
  Array slots(dtype, {opaque_size_});
  std::size_t next = tensors_.size();
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    set_rows(tensors_[i], BiasForm::kInput, 0, tensors[i], &slots);
    if (!tensors_[i].sums_biases()) continue;
    const ConstArrayView& part = tensors.size() == whole ? tensors[next++] : tensors[i];
    check_tensor(tensors_[i],
                 message("[", call, "] the recurrent bias' part of ", prefix, tensors_[i].name),
                 dtype, part);
    set_rows(tensors_[i], BiasForm::kRecurrent, 0, part, &slots);
  }
  return slots;
}

}  // namespace openrnn
