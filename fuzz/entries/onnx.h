// What the fuzzer of ONNX models runs, shared with the test that replays its corpus.
#pragma once

#include "formats/onnx/onnx_file.h"
#include "model_file.h"
#include "openrnn/mapping_onnx.h"
#include "openrnn/onnx.h"

namespace openrnn::formats {

/// Computes the graph with zeros, where its inputs are small; a size that is not said is 2.
inline void run_onnx(const OnnxModel& model) {
  constexpr std::int64_t kMostElements = 1 << 12;
  const fuzz::MemoryLimit limit(fuzz::MemoryLimit::kOfRun);
  try {
    const OnnxProgram program(model);
    std::map<std::string, Array> arrays;
    std::map<std::string, ConstArrayView> views;
    for (const OnnxValueInfo& input : program.inputs()) {
      Shape shape;
      std::int64_t elements = 1;
      for (const OnnxDim& dim : input.shape.value_or(std::vector<OnnxDim>())) {
        shape.push_back(dim.size < 0 ? 2 : dim.size);
        if (shape.back() > kMostElements) return;
        elements *= shape.back();
        if (elements > kMostElements) return;
      }
      const DType dtype = dtype_of_onnx(input.element_type).value_or(DType::kFloat32);
      const Array& made = arrays.insert_or_assign(input.name, Array(dtype, shape)).first->second;
      views.insert_or_assign(input.name, made.view());
    }
    program.run(views);
  } catch (const Error&) {
  }
}

/// Reads a model, its tensors and its networks, runs it, and writes it again; whether it is whole.
/// External data are the bytes after the first zero byte of the input.
inline bool fuzz_onnx(std::string_view input) {
  const fuzz::MemoryLimit limit(fuzz::MemoryLimit::of_onnx(input.size()));
  const std::string_view tail = input.substr(std::min(input.size(), input.find('\0')));
  try {
    const OnnxModel model = parse_onnx(
        std::make_shared<MemorySource>("m", input),
        [&](const std::string& name) { return std::make_unique<MemorySource>(name, tail); });
    fuzz::use_networks(networks_from_onnx(model));
    run_onnx(model);
    try {
      encode_onnx(model);
    } catch (const ArgumentError&) {  // an attribute of a kind that is not read
    }
  } catch (const Error&) {
    return false;
  }
  return read_model_file(input);
}

}  // namespace openrnn::formats
