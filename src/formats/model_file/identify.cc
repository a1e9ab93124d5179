#include "formats/model_file/identify.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/hdf5/reader.h"
#include "formats/json_models/json_models.h"
#include "formats/model_file/looks_like.h"
#include "formats/npy/npz.h"
#include "formats/onnx/onnx_file.h"
#include "formats/safetensors/reader.h"
#include "formats/tensorflow/tensorflow.h"
#include "formats/torch/torch_file.h"

namespace openrnn {

namespace formats {

namespace {

// As far as the signatures reach, and enough to see that JSON is an index.
constexpr std::size_t kHeadBytes = 4096;

bool starts_as_safetensors(std::string_view head, std::uint64_t size) {
  std::uint64_t length = 0;
  if (head.size() < sizeof length + 2) return false;
  std::memcpy(&length, head.data(), sizeof length);
  return head[sizeof length] == '{' && length <= kMaxSafetensorsHeader &&
         length <= size - sizeof length;
}

// 'a zip archive with 'word/document.xml''.
std::string zip_looks_like(const ZipArchive& archive) {
  const std::vector<ZipEntry>& entries = archive.entries();
  if (entries.empty()) return "an empty zip archive";
  const bool has_pickle = std::ranges::any_of(
      entries, [](const ZipEntry& entry) { return entry.name.ends_with("data.pkl"); });
  if (has_pickle) return "a zip archive without NAME/data.pkl";
  return message("a zip archive with ",
                 entries.size() == 1 ? "" : message(entries.size(), " files, first "), "'",
                 excerpt(entries[0].name), "'");
}

// What the names of its entries tell.
FoundFile identify_zip(const ByteSource& file) {
  const ZipArchive archive(file);
  if (is_keras_archive(archive)) return {FileKind::kKerasArchive, "a Keras 3 archive"};
  if (is_npz(archive)) return {FileKind::kNpz, "an npz archive of NumPy"};
  const std::optional<std::string> root = find_torch_root(archive);
  if (!root) return {FileKind::kUnknown, zip_looks_like(archive)};
  if (kind_of_torch_zip(archive, *root) == FileKind::kTorch) {
    return {FileKind::kTorch, "a PyTorch file"};
  }
  return {FileKind::kTorchScript, "a TorchScript archive"};
}

FoundFile identify_hdf5(const ByteSource& file) {
  const FileKind kind = kind_of_hdf5(file);
  if (kind == FileKind::kKerasH5) return {kind, "a Keras HDF5 file"};
  if (kind == FileKind::kKerasWeights) return {kind, "a Keras 3 weights file"};
  return {kind, "an HDF5 file"};
}

bool starts_as_json(std::string_view head) {
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && head[first] == '{';
}

}  // namespace

FoundFile identify(const ByteSource& file) {
  const std::string head = file.read_string(0, std::min<std::uint64_t>(kHeadBytes, file.size()));
  if (starts_as_safetensors(head, file.size())) {
    return {FileKind::kSafetensors, "a safetensors file"};
  }
  if (starts_as_json(head)) {
    // "weight_map" may come after any amount of metadata.
    const bool index = file.size() <= kMaxSafetensorsHeader &&
                       file.read_string(0, file.size()).find("\"weight_map\"") != std::string::npos;
    if (index) return {FileKind::kSafetensorsIndex, "an index of safetensors files"};
    const FileKind model = kind_of_json_model(file);
    if (model == FileKind::kRtneural) return {model, "a file of RTNeural"};
    if (model == FileKind::kNam) return {model, "a file of NeuralAmpModeler"};
    return {FileKind::kUnknown, "a JSON file"};
  }
  if (head.starts_with("PK\x03\x04")) return identify_zip(file);
  if (head.starts_with(kHdf5Signature)) return identify_hdf5(file);
  if (starts_as_legacy_torch(head)) {
    return {FileKind::kTorchLegacy, "a PyTorch file of the old form"};
  }
  if (ends_as_table(file)) {
    return {FileKind::kTfCheckpointV1, "a TensorFlow checkpoint of version 1"};
  }
  if (starts_as_tf_graph(head, file.size())) return {FileKind::kTfGraph, "a graph of TensorFlow"};
  std::string what = looks_like(head);
  // What has no signature may be an ONNX model, which has none.
  if ((what == "a file" || what == "a text file") && looks_like_onnx(file)) {
    return {FileKind::kOnnx, "an ONNX model"};
  }
  return {FileKind::kUnknown, std::move(what)};
}

}  // namespace formats

FoundFile identify_file(const std::string& path) {
  if (const std::optional<formats::FoundBundle> bundle = formats::find_bundle(path)) {
    return {FileKind::kTfCheckpoint, bundle->what};
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return {FileKind::kUnknown, formats::folder_looks_like(path)};
  }
  return formats::identify(formats::FileSource(path));
}

}  // namespace openrnn
