// One operator of a program.
#pragma once

#include "mapping/onnx/values/arrays.h"
#include "openrnn/formats_onnx.h"

namespace openrnn::onnx {

/// What an operator computes from: null where an input is left out.
struct KernelCall {
  const OnnxNode& node;
  /// The version of ONNX's operators.
  std::int64_t opset;
  const std::vector<const Array*>& inputs;

  const Array* optional(std::size_t index) const {
    return index < inputs.size() ? inputs[index] : nullptr;
  }
  /// Throws: ArgumentError if it is left out.
  const Array& input(std::size_t index) const;
};

using Kernel = std::vector<Array> (*)(const KernelCall& call);

struct KernelRow {
  std::string_view op_type;
  Kernel compute;
  /// The attributes that the kernel heeds: another one is refused before anything runs.
  std::vector<std::string_view> attributes;
};

/// Sums and products of arrays, and the functions of one.
std::span<const KernelRow> arithmetic_kernels();
std::span<const KernelRow> function_kernels();
/// Those of windows, edges and means along axes.
std::span<const KernelRow> convolution_kernels();
std::span<const KernelRow> padding_kernels();
std::span<const KernelRow> reduce_kernels();

inline std::vector<Array> one_output(Array array) {
  std::vector<Array> outputs;
  outputs.push_back(std::move(array));
  return outputs;
}

}  // namespace openrnn::onnx
