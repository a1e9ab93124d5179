#include "formats/model_file/open.h"

#include <algorithm>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/hdf5/reader.h"
#include "formats/json_models/json_models.h"
#include "formats/model_file/identify.h"
#include "formats/model_file/looks_like.h"
#include "formats/npy/npz.h"
#include "formats/onnx/onnx_file.h"
#include "formats/tensorflow/tensorflow.h"
#include "formats/tensors/elements.h"
#include "formats/torch/torch_file.h"

namespace openrnn::formats {

namespace {

// Throws unless elements of this type can be read.
DType readable_dtype(const TensorInfo& info) {
  if (const std::optional<DType> dtype = find_dtype(info.dtype)) return *dtype;
  throw UnsupportedError(message("[read] tensor '", excerpt(info.name), "' has element type ",
                                 excerpt(info.dtype), ", expected one of OpenRNN's dtypes"));
}

// Any other byte in a C++ bool is undefined behaviour. `first`: the element that `bytes` begin
// with.
void check_bool_bytes(const FileContents& contents, std::size_t tensor, std::string_view bytes,
                      std::int64_t first = 0) {
  const auto* bad = std::find_if(bytes.begin(), bytes.end(),
                                 [](char c) { return static_cast<unsigned char>(c) > 1; });
  if (bad == bytes.end()) return;
  const TensorPlace& place = contents.places[tensor];
  const Extent& extent = contents.extents[place.extent];
  throw FormatError(extent.source->path(), extent.offset + place.first,
                    message("element ", first + (bad - bytes.begin()), " of tensor '",
                            excerpt(contents.tensors[tensor].name), "' is ",
                            int{static_cast<unsigned char>(*bad)}, ", expected 0 or 1"));
}

}  // namespace

FileContents open_contents(std::unique_ptr<ByteSource> file, const SourceOpener& open) {
  const FoundFile found = identify(*file);
  switch (found.kind) {
    case FileKind::kSafetensors:
      return read_safetensors(std::move(file));
    case FileKind::kSafetensorsIndex:
      return read_safetensors_index(*file, open);
    case FileKind::kTorch:
    case FileKind::kTorchScript:
      return read_torch_zip(std::move(file));
    case FileKind::kTorchLegacy:
      return read_torch_legacy(std::move(file));
    case FileKind::kOnnx:
      return read_onnx_contents(std::move(file), open);
    case FileKind::kKerasH5:
    case FileKind::kKerasWeights:
    case FileKind::kHdf5:
      return read_hdf5(std::move(file));
    case FileKind::kKerasArchive:
      return read_keras_archive(std::move(file));
    case FileKind::kTfCheckpointV1:
      return read_tf_v1(std::move(file));
    case FileKind::kTfGraph:
      return read_tf_graph(std::move(file));
    case FileKind::kRtneural:
      return read_rtneural(std::move(file));
    case FileKind::kNam:
      return read_nam(std::move(file));
    case FileKind::kNpz:
      return read_npz(std::move(file));
    case FileKind::kTfCheckpoint:
    case FileKind::kUnknown:
      break;
  }
  refuse_unknown(file->path(), found.what);
}

Array read_tensor(const FileContents& contents, std::size_t tensor) {
  const TensorInfo& info = contents.tensors[tensor];
  const DType dtype = readable_dtype(info);
  require_stored_elements(contents, tensor);
  Array out(dtype, info.shape);
  read_tensor_into(contents, tensor, out.data());
  return out;
}

void read_tensor_into(const FileContents& contents, std::size_t tensor, void* out) {
  const TensorInfo& info = contents.tensors[tensor];
  const DType dtype = readable_dtype(info);
  require_stored_elements(contents, tensor);
  copy_elements(contents, tensor, out);
  if (dtype != DType::kBool) return;
  const auto bytes = static_cast<std::size_t>(info.bytes);
  check_bool_bytes(contents, tensor, {static_cast<const char*>(out), bytes});
}

void read_tensor_rows(const FileContents& contents, std::size_t tensor, const RowVisitor& visit) {
  const TensorInfo& info = contents.tensors[tensor];
  const DType dtype = readable_dtype(info);
  require_stored_elements(contents, tensor);
  Shape shape = info.shape;
  const bool is_one = shape.size() < 2;
  const std::int64_t count = is_one ? 1 : shape[0];
  if (count == 0 || info.bytes == 0) return visit(0, Array(dtype, info.shape).view());
  const std::uint64_t row_bytes = info.bytes / static_cast<std::uint64_t>(count);
  std::int64_t first = 0;
  visit_elements(contents, tensor, row_bytes, [&](std::string_view rows) {
    if (dtype == DType::kBool) {
      check_bool_bytes(contents, tensor, rows, first * static_cast<std::int64_t>(row_bytes));
    }
    const auto here = static_cast<std::int64_t>(rows.size() / row_bytes);
    if (!is_one) shape[0] = here;
    visit(first, ConstArrayView{rows.data(), dtype, shape});
    first += here;
  });
}

void verify_contents(const FileContents& contents) {
  for (std::size_t i = 0; i < contents.extents.size(); ++i) verify_extent(contents, i);
}

std::string read_tensor_bytes(const FileContents& contents, std::size_t tensor) {
  require_stored_elements(contents, tensor);
  std::string bytes(static_cast<std::size_t>(contents.tensors[tensor].bytes), '\0');
  copy_elements(contents, tensor, bytes.data());
  return bytes;
}

std::optional<ConstArrayView> view_tensor(const FileContents& contents, std::size_t tensor) {
  const TensorInfo& info = contents.tensors[tensor];
  const TensorPlace& place = contents.places[tensor];
  const Extent& extent = contents.extents[place.extent];
  const DType dtype = readable_dtype(info);
  if (!place.strides.empty()) return std::nullopt;
  const std::string_view bytes = extent.source->mapped().substr(
      extent.offset + place.first, static_cast<std::size_t>(info.bytes));
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % dtype_size(dtype) != 0) return std::nullopt;
  if (dtype == DType::kBool) check_bool_bytes(contents, tensor, bytes);
  return ConstArrayView{bytes.data(), dtype, info.shape};
}

}  // namespace openrnn::formats
