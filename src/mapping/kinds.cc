#include "mapping/kinds.h"

#include "mapping/json/json.h"
#include "mapping/keras/keras.h"
#include "mapping/onnx/onnx.h"
#include "mapping/own/own.h"
#include "mapping/support/values.h"
#include "mapping/tensorflow/tensorflow.h"
#include "mapping/torch/torch.h"

namespace openrnn::mapping {

namespace {

MappedModel load_torch(const std::string& path, const MappingHints& hints) {
  return map_torch(ModelFile(path), hints);
}

MappedModel load_of_onnx(const std::string& path, const MappingHints&) { return load_onnx(path); }

MappedModel load_safetensors(const std::string& path, const MappingHints& hints) {
  const ModelFile file(path);
  return is_own(file) ? load_own(file) : map_torch(file, hints);
}

MappedModel load_keras(const std::string& path, const MappingHints& hints) {
  return map_keras(ModelFile(path), hints);
}

MappedModel load_tensorflow(const std::string& path, const MappingHints& hints) {
  return map_tensorflow(ModelFile(path), hints);
}

MappedModel load_rtneural(const std::string& path, const MappingHints&) {
  return map_rtneural(ModelFile(path));
}

MappedModel load_nam(const std::string& path, const MappingHints&) {
  return map_nam(ModelFile(path));
}

constexpr ReadableKind kReadable[] = {
    {FileKind::kSafetensors, load_safetensors},
    {FileKind::kSafetensorsIndex, load_torch},
    {FileKind::kTorch, load_torch},
    {FileKind::kTorchLegacy, load_torch},
    {FileKind::kTorchScript, load_torch},
    {FileKind::kTfCheckpoint, load_tensorflow},
    {FileKind::kTfCheckpointV1, load_tensorflow},
    {FileKind::kTfGraph, load_tensorflow},
    {FileKind::kOnnx, load_of_onnx},
    {FileKind::kKerasH5, load_keras},
    {FileKind::kKerasWeights, load_keras},
    {FileKind::kKerasArchive, load_keras},
    {FileKind::kRtneural, load_rtneural},
    {FileKind::kNam, load_nam},
};

void save_safetensors(const std::string& path, const MappedModel& model) {
  const TorchTensors tensors = torch_tensors_of(model, "a safetensors file of PyTorch's names");
  write_safetensors(path, tensors.views, {.metadata = text_values(model.values)});
}

void save_torch(const std::string& path, const MappedModel& model) {
  const TorchTensors tensors = torch_tensors_of(model, "a state_dict of PyTorch");
  write_torch_state_dict(path, tensors.views);
}

constexpr std::string_view kOwnEndings[] = {".openrnn"};
constexpr std::string_view kEndingsOfSafetensors[] = {".safetensors"};
constexpr std::string_view kEndingsOfOnnx[] = {".onnx"};
constexpr std::string_view kEndingsOfTensorflow[] = {".index"};
constexpr std::string_view kEndingsOfTorch[] = {".pt", ".pth", ".bin", ".ckpt"};

constexpr std::string_view kEndingsOfKeras[] = {".keras"};
constexpr std::string_view kEndingsOfKerasWeights[] = {".weights.h5"};
constexpr std::string_view kEndingsOfKerasH5[] = {".h5", ".hdf5"};

constexpr std::string_view kEndingsOfRtneural[] = {".json"};
constexpr std::string_view kEndingsOfNam[] = {".nam"};

constexpr WritableFormat kWritable[] = {
    {ModelFormat::kOpenrnn, "openrnn", kOwnEndings, save_own},
    {ModelFormat::kSafetensors, "safetensors", kEndingsOfSafetensors, save_safetensors},
    {ModelFormat::kTorch, "torch", kEndingsOfTorch, save_torch},
    {ModelFormat::kOnnx, "onnx", kEndingsOfOnnx, save_onnx},
    {ModelFormat::kKeras, "keras", kEndingsOfKeras, save_keras_archive},
    {ModelFormat::kKerasWeights, "keras_weights", kEndingsOfKerasWeights, save_keras_weights},
    {ModelFormat::kKerasH5, "keras_h5", kEndingsOfKerasH5, save_keras_h5},
    {ModelFormat::kTensorflow, "tensorflow", kEndingsOfTensorflow, save_tensorflow},
    {ModelFormat::kRtneural, "rtneural", kEndingsOfRtneural, save_rtneural},
    {ModelFormat::kNam, "nam", kEndingsOfNam, save_nam},
};

}  // namespace

const ReadableKind* find_readable(FileKind kind) {
  for (const ReadableKind& row : kReadable) {
    if (row.kind == kind) return &row;
  }
  return nullptr;
}

std::span<const WritableFormat> writable_formats() { return kWritable; }

}  // namespace openrnn::mapping
