// nanobind's ndarray reads and makes the capsules. What it knows nothing of is done here: streams
// of GPUs, other devices, copies, producers older than DLPack 1, and versions that are to come.
#include "python/support/dlpack.h"

#include <nanobind/ndarray.h>

#include <algorithm>

#include "base/message.h"
#include "openrnn/runtime.h"
#include "python/support/convert.h"

namespace openrnn::python {
namespace {

namespace place = nb::device;

constexpr nb::dlpack::dtype kHalf{static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
constexpr nb::dlpack::dtype kBfloat{static_cast<std::uint8_t>(nb::dlpack::dtype_code::Bfloat), 16,
                                    1};
constexpr std::pair<DType, nb::dlpack::dtype> kTypes[] = {
    {DType::kFloat16, kHalf},
    {DType::kBfloat16, kBfloat},
    {DType::kFloat32, nb::dtype<float>()},
    {DType::kFloat64, nb::dtype<double>()},
    {DType::kInt32, nb::dtype<std::int32_t>()},
    {DType::kInt64, nb::dtype<std::int64_t>()},
    {DType::kUInt8, nb::dtype<std::uint8_t>()},
    {DType::kBool, nb::dtype<bool>()},
};

// How a capsule 'dltensor_versioned' begins, which ndarray hides.
struct Versioned {
  std::uint32_t major, minor;
  void* context;
  void (*deleter)(Versioned* self);
  std::uint64_t flags;
};
constexpr std::uint64_t kIsCopied = 2;

// Null for any other object, also for a capsule that somebody took.
Versioned* versioned_in(nb::handle capsule) {
  constexpr const char* kName = "dltensor_versioned";
  if (!PyCapsule_IsValid(capsule.ptr(), kName)) return nullptr;
  return static_cast<Versioned*>(PyCapsule_GetPointer(capsule.ptr(), kName));
}

using RowMajor = nb::ndarray<nb::ro, nb::c_contig>;

// What a capsule gave away. The producer may use the memory again as soon as it is told, so a GPU
// has to be done with it by then.
struct BorrowedArray {
  BorrowedArray(const Device& of, RowMajor given) : device(of), array(std::move(given)) {}
  ~BorrowedArray() {
    try {
      device.wait();
    } catch (...) {
      // A GPU that failed does no more work.
    }
  }
  BorrowedArray(const BorrowedArray&) = delete;
  BorrowedArray& operator=(const BorrowedArray&) = delete;

  const Device& device;
  const RowMajor array;
};

// Empty when the memory is not row-major.
RowMajor taken_from(nb::handle capsule) {
  const Versioned* const versioned = versioned_in(capsule);
  if (!versioned && !PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    throw TypeError(message("[from_dlpack] __dlpack__() returned ", quoted_type(capsule),
                            ", expected a capsule that nobody has taken"));
  }
  if (versioned && versioned->major > nb::dlpack::major_version) {
    throw TypeError(message("[from_dlpack] DLPack ", versioned->major, ".", versioned->minor,
                            ", expected version 1 or older"));
  }
  RowMajor array;
  nb::try_cast(capsule, array);
  return array;
}

// As the device of the array is numbered: (type, ordinal).
std::pair<int, int> device_of(nb::handle value) {
  return nb::cast<std::pair<int, int>>(nb::tuple(value.attr("__dlpack_device__")()));
}

bool is_of_gpu(int type) {
  return type == place::cuda::value || type == place::cuda_managed::value;
}

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

// One that ndarray makes of the array, which lives as long as it.
template <class NdArray>
nb::object make_capsule(DeviceArray array, nb::handle max_version) {
  const auto [type, ordinal] = dlpack_device(array.device());
  const auto* const entry =
      std::ranges::find(kTypes, array.dtype(), &std::pair<DType, nb::dlpack::dtype>::first);
  const std::vector<std::size_t> shape(array.shape().begin(), array.shape().end());
  void* const memory = const_cast<void*>(array.data());
  const nb::capsule owner(new DeviceArray(std::move(array)),
                          [](void* held) noexcept { delete static_cast<DeviceArray*>(held); });
  const NdArray made(memory, shape.size(), shape.data(), owner, nullptr, entry->second, type,
                     ordinal);
  return nb::cast(made).attr("__dlpack__")("max_version"_a = max_version);
}

const Device& wanted_device(nb::handle asked, const Device& own) {
  if (asked.is_none()) return own;
  const auto [type, ordinal] = nb::cast<std::pair<int, int>>(nb::tuple(asked));
  if (type == place::cpu::value) return device("cpu");
  if (type == place::cuda::value) return device(message("gpu:", ordinal));
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

std::pair<int, int> dlpack_device(const Device& device) {
  if (!device.engine()) return {place::cpu::value, 0};
  const std::string_view name = device.name();
  if (!name.starts_with("gpu:")) {
    throw StateError(message("[dlpack] the tensor lies on ", name, ", expected cpu or a GPU"));
  }
  return {place::cuda::value, std::stoi(std::string(name.substr(4)))};
}

std::optional<Tensor> view_of_dlpack(nb::handle value) {
  const auto [type, ordinal] = device_of(value);
  const bool of_gpu = is_of_gpu(type);
  if (!of_gpu && type != place::cpu::value && type != place::cuda_host::value) {
    throw TypeError(message("[from_dlpack] an array on DLPack's device (", type, ", ", ordinal,
                            "), expected one of the cpu or of an NVIDIA GPU"));
  }
  const Device& its = device(of_gpu ? message("gpu:", ordinal) : std::string("cpu"));
  const auto borrowed =
      std::make_shared<BorrowedArray>(its, taken_from(capsule_of(value, its.stream())));
  const RowMajor& array = borrowed->array;
  if (!array.is_valid()) return std::nullopt;
  const auto* const entry =
      std::ranges::find(kTypes, array.dtype(), &std::pair<DType, nb::dlpack::dtype>::second);
  if (entry == std::end(kTypes)) return std::nullopt;
  const DType dtype = entry->first;
  ConstArrayView memory{array.data(), dtype, {array.shape_ptr(), array.shape_ptr() + array.ndim()}};
  if (memory.size() == 0) memory.data = nullptr;
  if (reinterpret_cast<std::uintptr_t>(memory.data) % dtype_size(dtype) != 0) return std::nullopt;
  DeviceArray view = DeviceArray::borrow(its, memory, borrowed);
  return of_gpu ? Tensor(std::move(view)) : Tensor::of_host(std::move(view), its);
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
                          "there, expected contiguous float16, bfloat16, float32, float64, int32, "
                          "int64, uint8 or bool"));
}

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
  if (!copies) {
    return make_capsule<nb::ndarray<nb::array_api, nb::ro>>(std::move(array), nb::make_tuple(1, 0));
  }
  // A copy is the consumer's own.
  nb::object capsule = make_capsule<nb::ndarray<nb::array_api>>(
      std::move(array), versioned ? nb::make_tuple(1, 0) : nb::object(nb::none()));
  if (Versioned* const copy = versioned_in(capsule)) copy->flags |= kIsCopied;
  return capsule;
}

}  // namespace openrnn::python
