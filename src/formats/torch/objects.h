// The tensors and plain values of a pickle, with names for each.
#pragma once

#include "formats/torch/pickle.h"
#include "openrnn/formats_model_file.h"

namespace openrnn::formats {

/// A storage as a tensor of the pickle names it.
struct TorchStorage {
  std::string_view key;
  std::uint64_t bytes = 0;
  std::uint8_t element_bytes = 0;
  /// Of a storage that is a part of another one (old files): bytes before it, else 0.
  std::uint64_t before = 0;
  /// Where it is in the pickle, for messages.
  std::uint32_t at = 0;
};

struct TorchTensor {
  TensorInfo info;
  TorchStorage storage;
  std::uint8_t element_bytes = 0;
  /// Bytes from the start of the storage; all elements lie inside it.
  std::uint64_t first = 0;
  /// In elements; empty: row-major without gaps.
  Shape strides;
};

struct TorchObjects {
  std::vector<TorchTensor> tensors;
  std::vector<NamedValue> values;
};

/// Names are keys and positions joined by '.', below `prefix` unless that is empty: 'epoch',
/// 'model.rnn.weight_ih_l0', 'optimizer.state.0.exp_avg'. A list of numbers or of strings is one
/// value. What they take together is bounded by the size of the pickle. Views point into its bytes.
/// Throws: FormatError for what is no tensor and no plain value, UnsupportedError for tensors that
/// are not read.
TorchObjects torch_objects(const Pickle& pickle, const std::string& prefix);

}  // namespace openrnn::formats
