// Tensors as memory for other libraries.
#include "base/message.h"
#include "openrnn/runtime.h"
#include "python/dlpack/abi.h"
#include "python/dlpack/dlpack.h"

namespace openrnn::python {
namespace {

// What the consumer holds until it calls the deleter.
template <class Managed>
struct Export {
  Managed managed{};
  DeviceArray array;
  std::vector<std::int64_t> shape, strides;

  static void destroy(Managed* self) { delete static_cast<Export*>(self->context); }
};

dlpack::DataType type_of(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(8 * dtype_size(dtype));
  switch (dtype) {
    case DType::kInt32:
    case DType::kInt64:
      return {dlpack::kInt, bits, 1};
    case DType::kUInt8:
      return {dlpack::kUint, bits, 1};
    case DType::kBool:
      return {dlpack::kBool, bits, 1};
    default:
      return {dlpack::kFloat, bits, 1};
  }
}

template <class Managed>
Export<Managed>* make_export(DeviceArray array) {
  auto made = std::make_unique<Export<Managed>>();
  made->array = std::move(array);
  made->shape = made->array.shape();
  made->strides.assign(made->shape.size(), 1);
  for (std::size_t i = made->shape.size(); i-- > 1;) {
    made->strides[i - 1] = made->strides[i] * made->shape[i];
  }
  const auto [type, ordinal] = dlpack_device(made->array.device());
  made->managed.tensor = {.data = const_cast<void*>(made->array.data()),
                          .device = {type, ordinal},
                          .ndim = static_cast<std::int32_t>(made->shape.size()),
                          .dtype = type_of(made->array.dtype()),
                          .shape = made->shape.data(),
                          .strides = made->strides.data(),
                          .byte_offset = 0};
  made->managed.context = made.get();
  made->managed.deleter = Export<Managed>::destroy;
  return made.release();
}

// Nobody took it: the name says so.
template <class Managed>
void free_capsule(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

nb::object versioned_capsule(DeviceArray array, bool copied) {
  auto* const made = make_export<dlpack::ManagedVersioned>(std::move(array));
  made->managed.major = 1;
  made->managed.minor = 0;
  // A copy is the consumer's own.
  made->managed.flags = copied ? dlpack::kIsCopied : dlpack::kReadOnly;
  return nb::steal(PyCapsule_New(&made->managed, "dltensor_versioned", [](PyObject* capsule) {
    free_capsule<dlpack::ManagedVersioned>(capsule, "dltensor_versioned");
  }));
}

nb::object plain_capsule(DeviceArray array) {
  auto* const made = make_export<dlpack::Managed>(std::move(array));
  return nb::steal(PyCapsule_New(&made->managed, "dltensor", [](PyObject* capsule) {
    free_capsule<dlpack::Managed>(capsule, "dltensor");
  }));
}

const Device& wanted_device(nb::handle asked, const Device& own) {
  if (asked.is_none()) return own;
  const auto [type, ordinal] = nb::cast<std::pair<int, int>>(nb::tuple(asked));
  if (type == dlpack::kCpu) return device("cpu");
  if (type == dlpack::kCuda) return device(message("gpu:", ordinal));
  throw ArgumentError(message("[__dlpack__] dl_device is (", type, ", ", ordinal,
                              "), expected (1, 0), the cpu, or (2, N), a GPU"));
}

// None is the default stream of CUDA programs, -1 a consumer that waits by itself.
void order_before(nb::handle stream, const Device& device) {
  if (!device.stream()) {
    if (!stream.is_none() && nb::cast<std::int64_t>(stream) != -1) {
      throw ArgumentError("[__dlpack__] a stream for memory of the cpu, expected None");
    }
    return;
  }
  constexpr std::int64_t kDefaultStream = 1;
  const std::int64_t number = stream.is_none() ? kDefaultStream : nb::cast<std::int64_t>(stream);
  if (number == -1) return;
  if (number < 1) {
    throw ArgumentError(message("[__dlpack__] stream is ", number,
                                ", expected None, -1, 1, 2 or the address of a stream"));
  }
  device.go_before(static_cast<std::uintptr_t>(number));
}

}  // namespace

nb::object to_dlpack(const Tensor& tensor, const DlpackRequest& request) {
  const Device& own = tensor.device();
  const Device& wanted = wanted_device(request.dl_device, own);
  const bool may_copy = request.copy.is_none() || nb::cast<bool>(request.copy);
  const bool must_copy = !request.copy.is_none() && may_copy;
  const bool versioned =
      !request.max_version.is_none() && nb::cast<int>(nb::tuple(request.max_version)[0]) >= 1;
  const bool moves = &wanted != &own;
  // Those who do not ask for a version cannot be told that the memory is read-only.
  const bool copies = moves || !versioned || must_copy;
  if (copies && !may_copy) {
    throw nb::buffer_error(moves
                               ? "[__dlpack__] copy is False for another device, expected None"
                               : "[__dlpack__] copy is False without max_version, but only DLPack "
                                 "1 can say that memory is read-only: expected max_version (1, 0)");
  }
  DeviceArray array = on_device(tensor.value(), wanted);
  if (copies) array.make_unique_owner();
  order_before(request.stream, wanted);
  return versioned ? versioned_capsule(std::move(array), copies) : plain_capsule(std::move(array));
}

}  // namespace openrnn::python
