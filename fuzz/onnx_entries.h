// What the fuzzer of ONNX models runs, shared with the test that replays its corpus.
#pragma once

#include "formats/onnx/onnx_file.h"
#include "model_file_entries.h"
#include "openrnn/mapping_onnx.h"

namespace openrnn::formats {

/// Reads a model, its tensors and its networks, and writes it again; whether it is whole. External
/// data are the bytes after the first zero byte of the input.
inline bool fuzz_onnx(std::string_view input) {
  const std::string_view tail = input.substr(std::min(input.size(), input.find('\0')));
  try {
    const OnnxModel model = parse_onnx(
        std::make_shared<MemorySource>("m", input),
        [&](const std::string& name) { return std::make_unique<MemorySource>(name, tail); });
    networks_from_onnx(model);
    try {
      encode_onnx(model);
    } catch (const ArgumentError&) {  // an attribute of a kind that is not read
    }
  } catch (const Error&) {
    return false;
  }
  return fuzz_model_file(input);
}

}  // namespace openrnn::formats
