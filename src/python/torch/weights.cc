#include "python/torch/weights.h"

#include <cstring>

#include "base/hash/content_hash.h"
#include "base/message.h"
#include "openrnn/runtime.h"

namespace openrnn::python::torch {
namespace {

// Names that are looked up at each call.
PyObject* name(const char* text) {
  return PyUnicode_InternFromString(text);  // kept for ever
}

nb::object call_method(PyObject* object, PyObject* method) {
  PyObject* const args[] = {object};
  return nb::steal(
      PyObject_VectorcallMethod(method, args, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
}

nb::object checked(nb::object value) {
  if (!value.is_valid()) throw nb::python_error();
  return value;
}

bool is_true(PyObject* tensor, PyObject* method) {
  return checked(call_method(tensor, method)).ptr() == Py_True;
}

nb::object attribute(PyObject* tensor, PyObject* attribute_name) {
  return checked(nb::steal(PyObject_GetAttr(tensor, attribute_name)));
}

bool has_shape(PyObject* tensor, const nb::tuple& expected) {
  static PyObject* const kShape = name("shape");
  const nb::object shape = attribute(tensor, kShape);
  const int equal = PyObject_RichCompareBool(shape.ptr(), expected.ptr(), Py_EQ);
  if (equal < 0) throw nb::python_error();
  return equal == 1;
}

// `at` is where it lay before.
Readable read(const Network& network, const Piece& piece, PyObject* tensor, const void*& at) {
  static PyObject* const kPointer = name("data_ptr");
  static PyObject* const kContiguous = name("is_contiguous");
  static PyObject* const kDType = name("dtype");
  static PyObject* const kOnCpu = name("is_cpu");
  if (tensor == Py_None) return Readable::kOther;
  if (attribute(tensor, kDType).ptr() != network.dtype.ptr() || !has_shape(tensor, piece.shape) ||
      attribute(tensor, kOnCpu).ptr() != Py_True) {
    return Readable::kOther;
  }
  if (!is_true(tensor, kContiguous)) return Readable::kNotContiguous;
  const nb::object pointer = checked(call_method(tensor, kPointer));
  at = PyLong_AsVoidPtr(pointer.ptr());
  if (PyErr_Occurred()) throw nb::python_error();
  return Readable::kYes;
}

bool serves(const PackedParams& packed, PackFor purpose) {
  return packed.purpose() == purpose || purpose == PackFor::kInference;
}

}  // namespace

Readable read_addresses(const Network& network, nb::handle tensors,
                        std::vector<const void*>& addresses) {
  const auto count = static_cast<std::size_t>(nb::len(tensors));
  if (count != network.pieces.size()) return Readable::kOther;
  addresses.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const nb::object tensor =
        checked(nb::steal(PySequence_GetItem(tensors.ptr(), static_cast<Py_ssize_t>(i))));
    const Readable found = read(network, network.pieces[i], tensor.ptr(), addresses[i]);
    if (found != Readable::kYes) return found;
  }
  return Readable::kYes;
}

std::uint64_t hash_of(const Network& network, const std::vector<const void*>& addresses) {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(network.pieces[i].size()) * network.element;
    hash = content_hash(addresses[i], bytes, hash);
  }
  return hash;
}

DeviceArray gathered(const Network& network, const std::vector<const void*>& addresses) {
  DeviceArray params(device("cpu"), network.spec->dtype, {network.layout.size()});
  auto* const to = static_cast<std::byte*>(params.mutable_data());
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const Piece& piece = network.pieces[i];
    const auto bytes = static_cast<std::size_t>(piece.size()) * network.element;
    if (bytes == 0) continue;
    std::memcpy(to + static_cast<std::size_t>(piece.offset) * network.element, addresses[i], bytes);
  }
  return params;
}

std::shared_ptr<PackedWeights::Packed> PackedWeights::get(const Network& network,
                                                          const Contents& contents, PackFor purpose,
                                                          int threads) {
  const std::lock_guard lock(mutex_);
  if (packed_ && hash_ == contents.hash && serves(*packed_->params, purpose)) return packed_;
  // Free the old one first: it may be as large as the new one.
  packed_.reset();
  const DeviceArray params = gathered(network, contents.at);
  auto packed = std::make_shared<Packed>();
  packed->params =
      network.engine->pack(network.spec, {params.data(), params.dtype(), params.shape()},
                           {purpose, threads, params.share()});
  ++packings_;
  // Of the copy: another thread may have written to the tensors since they were hashed.
  std::vector<const void*> at;
  for (const Piece& piece : network.pieces) {
    at.push_back(static_cast<const std::byte*>(params.data()) +
                 static_cast<std::size_t>(piece.offset) * network.element);
  }
  hash_ = hash_of(network, at);
  packed_ = packed;
  return packed;
}

std::shared_ptr<PackedWeights::Packed> PackedWeights::last(PackFor purpose) const {
  const std::lock_guard lock(mutex_);
  return packed_ && serves(*packed_->params, purpose) ? packed_ : nullptr;
}

std::uint64_t PackedWeights::packings() const {
  const std::lock_guard lock(mutex_);
  return packings_;
}

void PackedWeights::drop() {
  const std::lock_guard lock(mutex_);
  packed_.reset();
}

}  // namespace openrnn::python::torch
