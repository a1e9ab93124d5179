// Objects of torch.save, as they are written: tensors and plain values in dictionaries and lists.
#pragma once

#include "openrnn/formats_model_file.h"

namespace openrnn::formats {

struct TorchObject {
  enum class Kind : std::uint8_t {
    kValue,
    kTensor,
    kOrdered,   // an OrderedDict, as a state_dict is
    kDict,      // of strings
    kNumbered,  // a dictionary of integers, which `items` have as decimal names
    kList,      // names of `items` are not written
  };
  Kind kind = Kind::kValue;
  PlainValue value = {};
  ConstArrayView tensor = {};
  std::vector<std::pair<std::string, TorchObject>> items = {};

  static TorchObject of(PlainValue value) {
    return {.kind = Kind::kValue, .value = std::move(value)};
  }
  static TorchObject of_tensor(const ConstArrayView& tensor) {
    return {.kind = Kind::kTensor, .tensor = tensor};
  }
  void add(std::string name, TorchObject object) {
    items.emplace_back(std::move(name), std::move(object));
  }
};

/// Beside, synced and renamed. Throws, before anything is written: UnsupportedError for a dtype
/// without a storage in PyTorch, naming `call` and the tensor; IoError; StateError.
void write_torch_objects(std::string_view call, const std::string& path, const TorchObject& root);

}  // namespace openrnn::formats
