#include "formats/torch/names.h"

namespace openrnn::formats {

namespace {

struct KnownName {
  std::string_view module, name;
  NameRole role;
};

constexpr KnownName kNames[] = {
    {"torch._utils", "_rebuild_tensor", NameRole::kTensor},
    {"torch._utils", "_rebuild_tensor_v2", NameRole::kTensor},
    {"torch._utils", "_rebuild_tensor_v3", NameRole::kTensorOfDtype},
    {"torch._utils", "_rebuild_parameter", NameRole::kParameter},
    {"torch._utils", "_rebuild_parameter_with_state", NameRole::kParameter},
    {"torch.storage", "UntypedStorage", NameRole::kUntypedStorage},
    {"torch", "UntypedStorage", NameRole::kUntypedStorage},
    {"collections", "OrderedDict", NameRole::kMapping},
    {"torch", "Size", NameRole::kFirst},
    {"torch", "device", NameRole::kFirst},
    {"_codecs", "encode", NameRole::kFirst},
    {"__builtin__", "set", NameRole::kFirst},
    {"__builtin__", "frozenset", NameRole::kFirst},
    {"builtins", "set", NameRole::kFirst},
    {"builtins", "frozenset", NameRole::kFirst},
    {"torch.jit._pickle", "build_intlist", NameRole::kFirst},
    {"torch.jit._pickle", "build_tensorlist", NameRole::kFirst},
    {"torch.jit._pickle", "build_doublelist", NameRole::kFirst},
    {"torch.jit._pickle", "build_boollist", NameRole::kFirst},
    {"torch.jit._pickle", "restore_type_tag", NameRole::kFirst},
};

struct TorchType {
  std::string_view dtype;
  /// Empty: a type without a class of storages.
  std::string_view storage;
  std::uint8_t bytes;
};

constexpr TorchType kTorchTypes[] = {
    {"float32", "FloatStorage", 4},
    {"float64", "DoubleStorage", 8},
    {"float16", "HalfStorage", 2},
    {"bfloat16", "BFloat16Storage", 2},
    {"int64", "LongStorage", 8},
    {"int32", "IntStorage", 4},
    {"int16", "ShortStorage", 2},
    {"int8", "CharStorage", 1},
    {"uint8", "ByteStorage", 1},
    {"bool", "BoolStorage", 1},
    {"complex64", "ComplexFloatStorage", 8},
    {"complex128", "ComplexDoubleStorage", 16},
    {"uint16", "", 2},
    {"uint32", "", 4},
    {"uint64", "", 8},
    {"float8_e5m2", "", 1},
    {"float8_e4m3fn", "", 1},
    {"float8_e5m2fnuz", "", 1},
    {"float8_e4m3fnuz", "", 1},
    {"float8_e8m0fnu", "", 1},
};

}  // namespace

std::optional<TorchName> find_torch_name(std::string_view module, std::string_view name) {
  for (const KnownName& known : kNames) {
    if (known.module == module && known.name == name) return TorchName{.role = known.role};
  }
  if (module == "torch" || module == "torch.cuda") {
    for (const TorchType& type : kTorchTypes) {
      if (!type.storage.empty() && type.storage == name) {
        return TorchName{NameRole::kStorage, type.dtype, type.bytes};
      }
      if (type.dtype == name) return TorchName{NameRole::kDtype, type.dtype, type.bytes};
    }
  }
  if (module.starts_with("__torch__.") || module == "__torch__") {
    return TorchName{.role = NameRole::kClass};
  }
  return std::nullopt;
}

std::string_view storage_class_of(std::string_view dtype) {
  for (const TorchType& type : kTorchTypes) {
    if (type.dtype == dtype) return type.storage;
  }
  return {};
}

}  // namespace openrnn::formats
