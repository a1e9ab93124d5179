// ONNX models as plain structs, read and written: what a file says, not what it computes.
// Files are untrusted input: every length is checked before use.
#pragma once

#include <memory>

#include "openrnn/formats_model_file.h"

namespace openrnn {

/// A tensor of a file. Copies share the elements.
struct OPENRNN_API OnnxTensor {
  std::string name;
  /// ONNX's number: 1 float32, 7 int64, 10 float16, 11 float64, ...
  std::int32_t element_type = 0;
  Shape shape;
  /// Row-major and little-endian; empty for strings.
  std::string_view bytes;
  /// Keeps the bytes: a mapped file, which must not be truncated meanwhile, or memory.
  std::shared_ptr<const void> owner;
  /// The elements of a tensor of strings.
  std::vector<std::string> strings;

  /// 'float32', 'int8', 'int4', ...; 'element type 99' for an unknown one.
  std::string type_name() const;
  /// A copy. Throws: UnsupportedError for an element type without a DType.
  Array array() const;
  static OnnxTensor of(std::string name, Array values);
};

/// ONNX's number of a DType; all have one.
OPENRNN_API std::int32_t onnx_element_type(DType dtype);
/// Nothing for a type without a DType.
OPENRNN_API std::optional<DType> dtype_of_onnx(std::int32_t element_type);

struct OnnxGraph;

/// None is std::monostate: a kind that is not read (sparse tensors, types).
using OnnxAttributeValue =
    std::variant<std::monostate, float, std::int64_t, std::string,
                 std::shared_ptr<const OnnxTensor>, std::shared_ptr<const OnnxGraph>,
                 std::vector<float>, std::vector<std::int64_t>, std::vector<std::string>>;

struct OnnxAttribute {
  std::string name;
  OnnxAttributeValue value;
};

struct OPENRNN_API OnnxNode {
  std::string name;
  std::string op_type;
  /// Empty: ONNX's own operators, also where the file says 'ai.onnx'.
  std::string domain;
  /// An empty name: an optional input or output that is left out.
  std::vector<std::string> inputs, outputs;
  std::vector<OnnxAttribute> attributes;

  /// Null if there is none of that name.
  const OnnxAttribute* find(std::string_view attribute) const;
  /// Empty if the input is left out.
  const std::string& input(std::size_t index) const;
  const std::string& output(std::size_t index) const;
  /// Its name, or that of its first output where it has none.
  const std::string& label() const;
};

/// One dimension: a size, or a symbol such as 'batch', or neither.
struct OnnxDim {
  std::int64_t size = -1;
  std::string symbol;
};

/// An input or output of a graph.
struct OnnxValueInfo {
  std::string name;
  /// 0: not said, or no tensor.
  std::int32_t element_type = 0;
  /// Unset: the rank is not said.
  std::optional<std::vector<OnnxDim>> shape;
};

struct OnnxGraph {
  std::string name;
  /// Each after those whose outputs it takes, as the file has them.
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;
  /// Files of IR version 3 and below list the initializers here, too.
  std::vector<OnnxValueInfo> inputs, outputs;
  /// Names of initializers that are not read, as they are sparse.
  std::vector<std::string> sparse_initializers;
};

struct OPENRNN_API OnnxModel {
  std::int64_t ir_version = 0;
  std::string producer_name, producer_version;
  /// Version of the operators of each domain; "" is ONNX's own.
  std::map<std::string, std::int64_t> opsets;
  OnnxGraph graph;
  std::vector<std::pair<std::string, std::string>> metadata;
  /// 'domain::name' of functions that the model defines, whose bodies are not read.
  std::vector<std::string> functions;

  /// Of ONNX's own operators; 1 where the file does not say.
  std::int64_t opset() const;
};

/// Reads a model; elements stay in the mapped file, and external data in files of its own folder,
/// which are mapped, too. Graphs in attributes may be nested 32 deep.
/// Throws: IoError; FormatError, also for tensors whose size is not that of their shape, external
/// data outside of its file or folder, and names that are defined twice; UnsupportedError for
/// segments of tensors.
OPENRNN_API OnnxModel read_onnx(const std::string& path);

/// Writes one file beside, syncs and renames.
/// Throws: UnsupportedError, before anything is written, for a model of 2 GiB or more, which is the
/// limit of protocol buffers; ArgumentError for an attribute without a value or a tensor whose
/// bytes do not fit its shape; IoError; StateError while another writer has the file.
OPENRNN_API void write_onnx(const std::string& path, const OnnxModel& model);

}  // namespace openrnn
