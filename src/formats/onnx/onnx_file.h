// ONNX: a protocol buffer, ModelProto, and files of external data.
#pragma once

#include "formats/tensors/contents.h"
#include "openrnn/formats_onnx.h"

namespace openrnn::formats {

/// Whether the top-level fields are those of a ModelProto, as far as they can be walked. There is
/// no signature.
bool looks_like_onnx(const ByteSource& file);

/// `open` opens a file of external data by its name in the model's folder.
/// Throws: FormatError, UnsupportedError, IoError.
OnnxModel parse_onnx(std::shared_ptr<const ByteSource> file, const SourceOpener& open);

/// The initializers and constants of all graphs as named tensors.
FileContents read_onnx_contents(std::shared_ptr<const ByteSource> file, const SourceOpener& open);

/// The bytes of a ModelProto. Throws: as write_onnx.
std::string encode_onnx(const OnnxModel& model);

}  // namespace openrnn::formats
