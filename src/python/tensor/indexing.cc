// x[key]: integers, slices, None, ..., and arrays of integers or truth values, as NumPy has them.
#include <algorithm>

#include "base/message.h"
#include "openrnn/ops.h"
#include "python/tensor/arithmetic.h"

namespace openrnn::python {
namespace {

[[noreturn]] void index_error(const std::string& text) {
  PyErr_SetString(PyExc_IndexError, text.c_str());
  throw nb::python_error();
}

// Integers or truth values that name several elements; nothing for one integer.
std::optional<Tensor> as_array(nb::handle key) {
  if (PyBool_Check(key.ptr())) {
    throw UnsupportedError("[Tensor] the index is True or False, expected an integer or an array");
  }
  const Tensor* tensor = nullptr;
  const bool given = nb::try_cast<const Tensor*>(key, tensor) && tensor;
  const bool sequence = PyList_Check(key.ptr()) || PyTuple_Check(key.ptr());
  if (!given && !sequence && !nb::hasattr(key, "ndim")) return std::nullopt;
  const bool scalar = !sequence && nb::cast<int>(key.attr("ndim")) == 0;
  if (scalar && !(given && tensor->is_symbolic())) {
    const Tensor one = given ? *tensor : as_tensor(key, {.call = "Tensor"});
    if (one.dtype() == DType::kBool || is_floating(one.dtype())) {
      throw TypeError(message("[Tensor] the index is a ", dtype_name(one.dtype()),
                              ", expected an integer or an array"));
    }
    return std::nullopt;
  }
  Tensor array = given ? *tensor : as_tensor(key, {.call = "Tensor"});
  if (is_floating(array.dtype()) && !array.is_symbolic() && array.value().size() == 0) {
    return Tensor(Array(DType::kInt32, array.shape()).view());
  }
  if (is_floating(array.dtype())) {
    throw TypeError(message("[Tensor] the index is an array of ", dtype_name(array.dtype()),
                            ", expected integers or truth values"));
  }
  if (array.dtype() == DType::kBool || array.dtype() == DType::kInt32) return array;
  return ops::cast(array, DType::kInt32);
}

struct Key {
  nb::handle given;
  std::optional<Tensor> array;
  bool none = false, slice = false;

  std::size_t axes() const {
    if (none) return 0;
    return array && array->dtype() == DType::kBool ? array->shape().size() : 1;
  }
  bool basic() const { return none || slice; }
};

// The keys, the dots replaced by whole slices.
std::vector<Key> parsed(nb::handle key, const Shape& shape) {
  const nb::tuple given =
      nb::isinstance<nb::tuple>(key) ? nb::borrow<nb::tuple>(key) : nb::make_tuple(nb::borrow(key));
  std::vector<Key> keys;
  std::optional<std::size_t> dots;
  std::size_t axes = 0;
  for (const nb::handle one : given) {
    if (one.ptr() == Py_Ellipsis) {
      if (dots) index_error("[Tensor] two ellipses, expected at most one");
      dots = keys.size();
      continue;
    }
    Key next{.given = one, .none = one.is_none(), .slice = PySlice_Check(one.ptr()) != 0};
    if (!next.basic()) next.array = as_array(one);
    axes += next.axes();
    keys.push_back(std::move(next));
  }
  if (axes > shape.size()) {
    index_error(
        message("[Tensor] ", axes, " indices for shape ", to_string(shape), ", expected fewer"));
  }
  static const nb::handle whole =
      nb::object(nb::steal(PySlice_New(nullptr, nullptr, nullptr))).release();
  if (dots) {
    keys.insert(keys.begin() + static_cast<std::ptrdiff_t>(*dots), shape.size() - axes,
                Key{.given = whole, .slice = true});
  }
  return keys;
}

std::optional<std::int64_t> bound(nb::handle slice, const char* name) {
  const nb::object value = slice.attr(name);
  return value.is_none() ? std::nullopt : std::optional(as_int("Tensor", value));
}

Tensor slice_axis(const Tensor& x, std::int64_t axis, nb::handle key) {
  const std::int64_t size = x.shape()[static_cast<std::size_t>(axis)];
  const std::int64_t step = bound(key, "step").value_or(1);
  if (size < 0 || step != 1 || !is_floating(x.dtype())) {
    return ops::strided_slice(
        x, {.axis = axis, .begin = bound(key, "start"), .end = bound(key, "stop"), .step = step});
  }
  Py_ssize_t begin = 0, end = 0, one = 1;
  if (PySlice_Unpack(key.ptr(), &begin, &end, &one) != 0) throw nb::python_error();
  const Py_ssize_t count = PySlice_AdjustIndices(static_cast<Py_ssize_t>(size), &begin, &end, one);
  return count == size ? x : ops::slice(x, {.axis = axis, .begin = begin, .size = count});
}

// Of an integer of Python or NumPy, or a tensor of one; as_array has refused all others.
std::int64_t index_of(nb::handle key) {
  const Tensor* tensor = nullptr;
  const bool given = nb::try_cast<const Tensor*>(key, tensor) && tensor;
  return given ? static_cast<std::int64_t>(tensor->item()) : as_int("Tensor", key);
}

Tensor take_one(const Tensor& x, std::int64_t axis, nb::handle key) {
  const std::int64_t size = x.shape()[static_cast<std::size_t>(axis)];
  const std::int64_t index = index_of(key);
  if (size >= 0 && (index < -size || index >= size)) {
    index_error(message("[Tensor] the index is ", index, ", expected ", -size, " to ", size - 1));
  }
  if (size < 0 || !is_floating(x.dtype())) {
    const auto end = index == -1 ? std::nullopt : std::optional(index + 1);
    return ops::squeeze(ops::strided_slice(x, {.axis = axis, .begin = index, .end = end}), {axis});
  }
  const std::int64_t begin = index < 0 ? index + size : index;
  return ops::squeeze(ops::slice(x, {.axis = axis, .begin = begin, .size = 1}), {axis});
}

// `count` axes from `axis` on as one.
Tensor merged(const Tensor& x, std::int64_t axis, std::size_t count) {
  if (count == 1) return x;
  Shape shape = x.shape();
  const auto begin = shape.begin() + axis;
  std::int64_t size = 1;
  for (std::size_t i = 0; i < count; ++i) size = begin[i] < 0 || size < 0 ? -1 : size * begin[i];
  shape.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
  shape.insert(shape.begin() + axis, size);
  return ops::reshape(x, shape);
}

Tensor take_true(const Tensor& x, std::int64_t axis, const Tensor& mask) {
  if (mask.is_symbolic()) {
    throw UnsupportedError("[Tensor] the index is a symbolic mask, expected one with values");
  }
  const Shape of(x.shape().begin() + axis,
                 x.shape().begin() + axis + static_cast<std::ptrdiff_t>(mask.shape().size()));
  if (!shapes_fit(of, mask.shape())) {
    index_error(message("[Tensor] the mask has shape ", to_string(mask.shape()), ", expected ",
                        to_string(of)));
  }
  const Array host = mask.to_host();
  std::vector<std::int32_t> places;
  for (std::size_t i = 0; i < host.as<bool>().size(); ++i) {
    if (host.as<bool>()[i]) places.push_back(static_cast<std::int32_t>(i));
  }
  const Tensor indices(
      ConstArrayView{places.data(), DType::kInt32, {static_cast<std::int64_t>(places.size())}});
  return ops::gather(merged(x, axis, mask.shape().size()), indices, axis);
}

// Places within `sizes` of arrays that broadcast, as one number each.
Tensor joined(const std::vector<Tensor>& arrays, const Shape& sizes) {
  Shape shape;
  for (const Tensor& array : arrays) {
    Shape both(std::max(shape.size(), array.shape().size()), 1);
    for (std::size_t i = 0; i < both.size(); ++i) {
      const auto from_end = [&](const Shape& s) {
        return i < s.size() ? s[s.size() - 1 - i] : std::int64_t{1};
      };
      const std::int64_t a = from_end(shape), b = from_end(array.shape());
      if (a != b && a != 1 && b != 1) {
        index_error(message("[Tensor] an index of shape ", to_string(array.shape()),
                            ", expected one that broadcasts with ", to_string(shape)));
      }
      both[both.size() - 1 - i] = a == 1 ? b : a;
    }
    shape = both;
  }
  Array places(DType::kInt32, shape);
  const std::span<std::int32_t> to = places.as<std::int32_t>();
  for (std::size_t n = 0; n < arrays.size(); ++n) {
    const Array host = ops::broadcast_to(arrays[n], shape).to_host();
    const std::span<const std::int32_t> from = host.as<std::int32_t>();
    for (std::size_t i = 0; i < to.size(); ++i) {
      const std::int64_t size = sizes[n], index = from[i] < 0 ? from[i] + size : from[i];
      if (index < 0 || index >= size) {
        index_error(
            message("[Tensor] the index is ", from[i], ", expected ", -size, " to ", size - 1));
      }
      to[i] = static_cast<std::int32_t>(to[i] * size + index);
    }
  }
  return Tensor(places.view());
}

Tensor take_arrays(const Tensor& x, std::int64_t axis, const std::vector<Tensor>& arrays) {
  const auto begin = x.shape().begin() + axis;
  const Shape sizes(begin, begin + static_cast<std::ptrdiff_t>(arrays.size()));
  const bool open = std::any_of(sizes.begin(), sizes.end(), [](auto size) { return size < 0; });
  const bool symbolic = any_symbolic(arrays);
  if (arrays.size() == 1 && (open || symbolic)) return ops::gather(x, arrays[0], axis);
  if (open || symbolic) {
    throw UnsupportedError("[Tensor] several arrays as indices of a symbolic tensor, expected one");
  }
  return ops::gather(merged(x, axis, arrays.size()), joined(arrays, sizes), axis);
}

// Where the arrays are, and the integers that go with them: side by side, or NumPy would move the
// axes that they make to the front.
void require_side_by_side(const std::vector<Key>& keys) {
  const auto advanced = [](const Key& key) { return !key.basic(); };
  const auto first = std::find_if(keys.begin(), keys.end(), advanced);
  const auto last = std::find_if(keys.rbegin(), keys.rend(), advanced).base();
  if (std::none_of(keys.begin(), keys.end(),
                   [](const Key& key) { return key.array.has_value(); })) {
    return;
  }
  if (!std::all_of(first, last, advanced)) {
    throw UnsupportedError(
        "[Tensor] arrays as indices with a slice between them, expected them side by side");
  }
}

}  // namespace

Tensor get_item(const Tensor& x, nb::handle key) {
  const std::vector<Key> keys = parsed(key, x.shape());
  require_side_by_side(keys);
  Tensor result = x;
  std::int64_t axis = 0, first = 0;
  std::vector<Tensor> arrays;
  bool masked = false;
  for (const Key& one : keys) {
    if (one.none) {
      result = ops::expand_dims(result, axis++);
    } else if (one.slice) {
      result = slice_axis(result, axis++, one.given);
    } else if (!one.array) {
      result = take_one(result, axis, one.given);
    } else {
      if (arrays.empty()) first = axis;
      masked = masked || one.array->dtype() == DType::kBool;
      axis += static_cast<std::int64_t>(one.axes());
      arrays.push_back(*one.array);
    }
  }
  if (arrays.empty()) return result;
  if (!masked) return take_arrays(result, first, arrays);
  if (arrays.size() > 1) {
    throw UnsupportedError("[Tensor] a mask beside other arrays, expected it as the only one");
  }
  return take_true(result, first, arrays[0]);
}

}  // namespace openrnn::python
