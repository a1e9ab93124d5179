// The names that a pickle of PyTorch may use, and what each means here. Nothing is ever called.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace openrnn::formats {

enum class NameRole : std::uint8_t {
  kTensor,          // _rebuild_tensor, of 4 arguments, and _rebuild_tensor_v2
  kTensorOfDtype,   // _rebuild_tensor_v3: the dtype is an argument, the storage has bytes
  kParameter,       // _rebuild_parameter: its first argument is a tensor
  kStorage,         // a class of storages of one element type
  kUntypedStorage,  // of bytes
  kDtype,           // torch.float32 and the like
  kMapping,         // OrderedDict
  kFirst,           // a call gives its first argument: sets, torch.Size, typed lists of TorchScript
  kClass,           // a class of a TorchScript archive: its state is what counts
};

struct TorchName {
  NameRole role = NameRole::kTensor;
  /// Of kStorage and kDtype: the usual name and size of an element.
  std::string_view dtype = {};
  std::uint8_t element_bytes = 0;
};

/// Nothing for a name that is not understood. Classes of TorchScript have modules of their own.
std::optional<TorchName> find_torch_name(std::string_view module, std::string_view name);
/// The class of storages of this element type, 'FloatStorage' for 'float32'; empty if none.
std::string_view storage_class_of(std::string_view dtype);

}  // namespace openrnn::formats
