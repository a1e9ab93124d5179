// Memory of other libraries as tensors.
#include "base/message.h"
#include "openrnn/runtime.h"
#include "python/dlpack/abi.h"
#include "python/dlpack/dlpack.h"

namespace openrnn::python {
namespace {

// What a capsule gave away. The producer may use the memory again as soon as it is told, so a GPU
// has to be done with it by then.
class Taken {
 public:
  Taken() = default;
  ~Taken() {
    if (!managed_ && !versioned_) return;
    try {
      if (device_) device_->wait();
    } catch (...) {
      // A GPU that failed does no more work.
    }
    if (!Py_IsInitialized()) return;
    const nb::gil_scoped_acquire lock;
    if (managed_ && managed_->deleter) managed_->deleter(managed_);
    if (versioned_ && versioned_->deleter) versioned_->deleter(versioned_);
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

  /// Takes what a capsule holds and marks it as taken.
  void take(nb::handle capsule) {
    if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
      versioned_ = static_cast<dlpack::ManagedVersioned*>(
          PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
      PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
      if (versioned_->major > 1) {
        throw TypeError(message("[from_dlpack] DLPack ", versioned_->major, ".", versioned_->minor,
                                ", expected version 1 or older"));
      }
    } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
      managed_ = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
      PyCapsule_SetName(capsule.ptr(), "used_dltensor");
    } else {
      throw TypeError(message("[from_dlpack] __dlpack__() returned ", quoted_type(capsule),
                              ", expected a capsule that nobody has taken"));
    }
  }
  void set_device(const Device& device) { device_ = &device; }
  const dlpack::Tensor& tensor() const {
    return versioned_ ? versioned_->tensor : managed_->tensor;
  }

 private:
  dlpack::Managed* managed_ = nullptr;
  dlpack::ManagedVersioned* versioned_ = nullptr;
  const Device* device_ = nullptr;
};

std::optional<DType> dtype_of(const dlpack::DataType& type) {
  if (type.lanes != 1) return std::nullopt;
  const auto is = [&type](std::uint8_t code, int bits) {
    return type.code == code && type.bits == bits;
  };
  if (is(dlpack::kFloat, 16)) return DType::kFloat16;
  if (is(dlpack::kFloat, 32)) return DType::kFloat32;
  if (is(dlpack::kFloat, 64)) return DType::kFloat64;
  if (is(dlpack::kInt, 32)) return DType::kInt32;
  if (is(dlpack::kInt, 64)) return DType::kInt64;
  if (is(dlpack::kUint, 8)) return DType::kUInt8;
  if (is(dlpack::kBool, 8)) return DType::kBool;
  return std::nullopt;
}

// Strides of dimensions of size 1 mean nothing, nor do those of an empty array.
bool is_row_major(const dlpack::Tensor& tensor) {
  if (!tensor.strides) return true;
  std::int64_t expected = 1;
  bool dense = true, empty = false;
  for (std::int32_t i = tensor.ndim; i-- > 0;) {
    empty = empty || tensor.shape[i] == 0;
    dense = dense && (tensor.shape[i] == 1 || tensor.strides[i] == expected);
    expected *= tensor.shape[i];
  }
  return dense || empty;
}

// As the device of the array is numbered: (type, ordinal).
std::pair<int, int> device_of(nb::handle value) {
  return nb::cast<std::pair<int, int>>(nb::tuple(value.attr("__dlpack_device__")()));
}

bool is_of_gpu(int type) { return type == dlpack::kCuda || type == dlpack::kCudaManaged; }

// Of anything: one that cannot tell where it lies is left to NumPy.
bool says_gpu(nb::handle value) {
  try {
    return is_of_gpu(device_of(value).first);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
  } catch (const nb::cast_error&) {
  }
  return false;
}

// `stream` 0: none to tell of.
nb::object capsule_of(nb::handle value, std::uintptr_t stream) {
  nb::dict options;
  if (stream) options["stream"] = stream;
  options["max_version"] = nb::make_tuple(1, 0);
  try {
    return value.attr("__dlpack__")(**options);
  } catch (nb::python_error& error) {
    // Older producers do not know the argument.
    if (!error.matches(PyExc_TypeError)) throw;
  }
  nb::del(options["max_version"]);
  return value.attr("__dlpack__")(**options);
}

}  // namespace

std::pair<int, int> dlpack_device(const Device& device) {
  if (!device.engine()) return {dlpack::kCpu, 0};
  const std::string_view name = device.name();
  if (!name.starts_with("gpu:")) {
    throw StateError(message("[dlpack] the tensor lies on ", name, ", expected cpu or a GPU"));
  }
  return {dlpack::kCuda, std::stoi(std::string(name.substr(4)))};
}

std::optional<Tensor> view_of_dlpack(nb::handle value) {
  const auto [type, ordinal] = device_of(value);
  const bool of_gpu = is_of_gpu(type);
  if (!of_gpu && type != dlpack::kCpu && type != dlpack::kCudaHost) {
    throw TypeError(message("[from_dlpack] an array on DLPack's device (", type, ", ", ordinal,
                            "), expected one of the cpu or of an NVIDIA GPU"));
  }
  const Device& place = device(of_gpu ? message("gpu:", ordinal) : std::string("cpu"));
  const auto taken = std::make_shared<Taken>();
  taken->take(capsule_of(value, place.stream()));
  taken->set_device(place);
  const dlpack::Tensor& tensor = taken->tensor();
  const std::optional<DType> dtype = dtype_of(tensor.dtype);
  if (!dtype || !is_row_major(tensor)) return std::nullopt;
  ConstArrayView memory{static_cast<const std::byte*>(tensor.data) + tensor.byte_offset,
                        *dtype,
                        {tensor.shape, tensor.shape + tensor.ndim}};
  if (memory.size() == 0) memory.data = nullptr;
  if (reinterpret_cast<std::uintptr_t>(memory.data) % dtype_size(*dtype) != 0) return std::nullopt;
  DeviceArray array = DeviceArray::borrow(place, memory, taken);
  return of_gpu ? Tensor(std::move(array)) : Tensor::of_host(std::move(array), place);
}

std::optional<Tensor> view_of_gpu_array(nb::handle value) {
  if (!nb::hasattr(value, "__dlpack__") || !nb::hasattr(value, "__dlpack_device__")) {
    return std::nullopt;
  }
  if (!says_gpu(value)) return std::nullopt;
  std::optional<Tensor> view = view_of_dlpack(value);
  if (view) return view;
  throw TypeError(message("[from_dlpack] ", quoted_type(value),
                          " on a GPU whose elements are not row-major or of a dtype that is not "
                          "there, expected contiguous float16, float32, float64, int32, int64, "
                          "uint8 or bool"));
}

}  // namespace openrnn::python
