#include "python/support/buffer.h"

#include <cstring>

#include "cpu/device/cpu_device.h"

namespace openrnn::python {
namespace {

// Codes of the struct module in native size; 'l' is 8 bytes here, 'q' always.
std::optional<DType> dtype_of(const Py_buffer& buffer) {
  const char* format = buffer.format ? buffer.format : "B";
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (format[0] == '\0' || format[1] != '\0') return std::nullopt;
  switch (format[0]) {
    case 'e':
      return DType::kFloat16;
    case 'f':
      return DType::kFloat32;
    case 'd':
      return DType::kFloat64;
    case 'B':
      return DType::kUInt8;
    case '?':
      return DType::kBool;
    case 'i':
    case 'l':
    case 'q':
      return buffer.itemsize == 4 ? DType::kInt32 : DType::kInt64;
    default:
      return std::nullopt;
  }
}

// Null: the protocol has none.
const char* format_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return "e";
    case DType::kFloat32:
      return "f";
    case DType::kFloat64:
      return "d";
    case DType::kInt32:
      return "i";
    case DType::kInt64:
      return "q";
    case DType::kBool:
      return "?";
    case DType::kUInt8:
      return "B";
    case DType::kBfloat16:
      break;
  }
  return nullptr;
}

struct Export {
  Py_buffer view{};
  ~Export() {
    const nb::gil_scoped_acquire lock;
    PyBuffer_Release(&view);
  }
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  const Tensor& tensor = *nb::inst_ptr<Tensor>(self);
  if (tensor.is_symbolic() || tensor.empty()) {
    PyErr_SetString(PyExc_BufferError, "[Tensor] it is symbolic, expected one with a value");
    return -1;
  }
  if (tensor.device().engine()) {
    PyErr_SetString(PyExc_BufferError,
                    "[Tensor] it is on a GPU, expected one on the cpu: numpy() and to('cpu') copy");
    return -1;
  }
  if (!format_of(tensor.dtype())) {
    PyErr_SetString(PyExc_BufferError,
                    "[Tensor] the buffer protocol has no bfloat16, expected numpy() or DLPack");
    return -1;
  }
  if (flags & PyBUF_WRITABLE) {
    PyErr_SetString(PyExc_BufferError,
                    "[Tensor] a writable buffer is asked for, a tensor's value "
                    "never changes: expected a read-only request");
    return -1;
  }
  const ConstArrayView memory = tensor.value().host_view();
  const std::size_t rank = memory.shape.size();
  auto* sizes = new Py_ssize_t[2 * rank + 1];
  Py_ssize_t stride = static_cast<Py_ssize_t>(dtype_size(memory.dtype));
  for (std::size_t i = rank; i-- > 0;) {
    sizes[i] = static_cast<Py_ssize_t>(memory.shape[i]);
    sizes[rank + i] = stride;
    stride *= sizes[i];
  }
  // Never null, even for an empty array.
  static char nothing[AlignedBuffer::kAlignment];
  view->buf = memory.data ? const_cast<void*>(memory.data) : nothing;
  view->len = static_cast<Py_ssize_t>(memory.size_bytes());
  view->itemsize = static_cast<Py_ssize_t>(dtype_size(memory.dtype));
  view->readonly = 1;
  view->ndim = static_cast<int>(rank);
  view->format = (flags & PyBUF_FORMAT) ? const_cast<char*>(format_of(memory.dtype)) : nullptr;
  view->shape = sizes;
  view->strides = sizes + rank;
  view->suboffsets = nullptr;
  view->internal = sizes;
  view->obj = Py_NewRef(self);
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) {
  delete[] static_cast<Py_ssize_t*>(view->internal);
}

}  // namespace

PyType_Slot tensor_slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
    {0, nullptr},
};

std::optional<Tensor> from_buffer(nb::handle value, const AsTensor& how,
                                  std::optional<DType> words) {
  if (!PyObject_CheckBuffer(value.ptr()) || PyBytes_Check(value.ptr())) return std::nullopt;
  auto exported = std::make_shared<Export>();
  if (PyObject_GetBuffer(value.ptr(), &exported->view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
    PyErr_Clear();  // not contiguous, or of a kind without a format
    return std::nullopt;
  }
  const Py_buffer& view = exported->view;
  const std::optional<DType> dtype = words ? words : dtype_of(view);
  if (!dtype || (how.dtype && *dtype != *how.dtype) ||
      static_cast<Py_ssize_t>(dtype_size(*dtype)) != view.itemsize) {
    return std::nullopt;
  }
  ConstArrayView memory{view.buf, *dtype, {}};
  memory.shape.assign(view.shape, view.shape + view.ndim);
  const bool aligned = reinterpret_cast<std::uintptr_t>(view.buf) % dtype_size(*dtype) == 0;
  if (how.memory == Memory::kBorrow && aligned) {
    return Tensor::of_host(DeviceArray::borrow(cpu_device(), memory, exported));
  }
  return Tensor(memory);
}

}  // namespace openrnn::python
