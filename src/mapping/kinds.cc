#include "mapping/kinds.h"

#include "mapping/json/json.h"
#include "mapping/keras/keras.h"
#include "mapping/onnx/onnx.h"
#include "mapping/own/own.h"
#include "mapping/support/values.h"
#include "mapping/tensorflow/tensorflow.h"
#include "mapping/torch/checkpoint.h"
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

// Numbers alone, which numpy.savez(**names) makes arrays of, are values.
void take_scalars(const ModelFile& file, MappedModel* model) {
  std::erase_if(model->not_understood, [&](const std::string& name) {
    const TensorInfo& info = file.info(name);
    if (!info.shape.empty()) return false;
    if (info.dtype == "int64") {
      model->values.push_back({name, file.read(name).as<std::int64_t>()[0]});
    } else if (info.dtype == "bool") {
      model->values.push_back({name, file.read(name).as<bool>()[0]});
    } else if (info.dtype == "float64") {
      model->values.push_back({name, file.read(name).as<double>()[0]});
    } else {
      return false;
    }
    return true;
  });
}

// Names are PyTorch's, or those of TensorFlow's variables.
MappedModel load_npz(const std::string& path, const MappingHints& hints) {
  const ModelFile file(path);
  MappedModel model = map_torch(file, hints);
  if (model.networks.empty() && model.notes.empty()) model = map_tensorflow(file, hints);
  take_scalars(file, &model);
  return model;
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
    {FileKind::kNpz, load_npz},
};

void save_safetensors(const std::string& path, const MappedModel& model) {
  const TorchCheckpoint checkpoint =
      torch_checkpoint_of(model, "a safetensors file of PyTorch's names");
  const FlatCheckpoint flat = flat_checkpoint(checkpoint);
  write_safetensors(path, flat.views, {.metadata = text_values(flat.values)});
}

void save_npz(const std::string& path, const MappedModel& model) {
  const TorchCheckpoint checkpoint =
      torch_checkpoint_of(model, "an npz archive of PyTorch's names");
  const FlatCheckpoint flat = flat_checkpoint(checkpoint);
  write_npz(path, flat.views, flat.values);
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
constexpr std::string_view kEndingsOfNpz[] = {".npz"};

bool holds_none(std::string_view) { return false; }

constexpr WritableFormat kWritable[] = {
    {ModelFormat::kOpenrnn, "openrnn", kOwnEndings, save_own, true},
    {ModelFormat::kSafetensors, "safetensors", kEndingsOfSafetensors, save_safetensors},
    {ModelFormat::kTorch, "torch", kEndingsOfTorch, save_torch},
    {ModelFormat::kOnnx, "onnx", kEndingsOfOnnx, save_onnx},
    {ModelFormat::kKeras, "keras", kEndingsOfKeras, save_keras_archive, true, holds_none},
    {ModelFormat::kKerasWeights, "keras_weights", kEndingsOfKerasWeights, save_keras_weights, false,
     holds_none},
    {ModelFormat::kKerasH5, "keras_h5", kEndingsOfKerasH5, save_keras_h5, true, holds_none},
    {ModelFormat::kTensorflow, "tensorflow", kEndingsOfTensorflow, save_tensorflow},
    {ModelFormat::kRtneural, "rtneural", kEndingsOfRtneural, save_rtneural, true, holds_none},
    {ModelFormat::kNam, "nam", kEndingsOfNam, save_nam, true, nam_holds},
    {ModelFormat::kNpz, "npz", kEndingsOfNpz, save_npz},
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
