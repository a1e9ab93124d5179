#include <protozero/pbf_writer.hpp>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/file/atomic_file.h"
#include "formats/onnx/onnx_file.h"
#include "formats/onnx/types.h"

namespace openrnn {

namespace formats {

namespace {

using protozero::pbf_writer;

// A message of protocol buffers is shorter than 2 GiB.
constexpr std::uint64_t kMostMessageBytes = (std::uint64_t{1} << 31) - 1;

void put_text(pbf_writer* out, std::uint32_t field, const std::string& text) {
  if (!text.empty()) out->add_string(field, text);
}

void put_tensor(pbf_writer* parent, std::uint32_t field, const OnnxTensor& tensor) {
  const OnnxType* type = find_onnx_type(tensor.element_type);
  const std::optional<std::uint64_t> count = element_count(tensor.shape);
  const bool strings = tensor.element_type == kOnnxString;
  if (!type || !count ||
      (strings ? tensor.strings.size() != *count
               : tensor.bytes.size() != (*count * type->bits + 7) / 8)) {
    throw ArgumentError(message("[write_onnx] tensor '", excerpt(tensor.name), "' of ",
                                tensor.type_name(), " ", openrnn::to_string(tensor.shape), " has ",
                                strings ? tensor.strings.size() : tensor.bytes.size(),
                                " bytes or strings, expected those of its shape"));
  }
  pbf_writer out(*parent, field);
  out.add_packed_int64(1, tensor.shape.begin(), tensor.shape.end());
  out.add_int32(2, tensor.element_type);
  for (const std::string& text : tensor.strings) out.add_bytes(6, text);
  put_text(&out, 8, tensor.name);
  if (!strings) out.add_bytes(9, tensor.bytes.data(), tensor.bytes.size());
}

void put_graph(pbf_writer* parent, std::uint32_t field, const OnnxGraph& graph);

// AttributeProto: each kind has a field and a number of its type.
struct AttributeWriter {
  pbf_writer* out;
  const OnnxAttribute& attribute;

  void operator()(std::monostate) const {
    throw ArgumentError(message("[write_onnx] attribute '", excerpt(attribute.name),
                                "' has no value, expected one"));
  }
  void operator()(float value) const {
    out->add_float(2, value);
    out->add_enum(20, 1);
  }
  void operator()(std::int64_t value) const {
    out->add_int64(3, value);
    out->add_enum(20, 2);
  }
  void operator()(const std::string& value) const {
    out->add_bytes(4, value);
    out->add_enum(20, 3);
  }
  void operator()(const std::shared_ptr<const OnnxTensor>& value) const {
    put_tensor(out, 5, *value);
    out->add_enum(20, 4);
  }
  void operator()(const std::shared_ptr<const OnnxGraph>& value) const {
    put_graph(out, 6, *value);
    out->add_enum(20, 5);
  }
  void operator()(const std::vector<float>& values) const {
    for (const float value : values) out->add_float(7, value);
    out->add_enum(20, 6);
  }
  void operator()(const std::vector<std::int64_t>& values) const {
    for (const std::int64_t value : values) out->add_int64(8, value);
    out->add_enum(20, 7);
  }
  void operator()(const std::vector<std::string>& values) const {
    for (const std::string& value : values) out->add_bytes(9, value);
    out->add_enum(20, 8);
  }
};

void put_node(pbf_writer* parent, const OnnxNode& node) {
  pbf_writer out(*parent, 1);
  for (const std::string& name : node.inputs) out.add_string(1, name);
  for (const std::string& name : node.outputs) out.add_string(2, name);
  put_text(&out, 3, node.name);
  out.add_string(4, node.op_type);
  for (const OnnxAttribute& attribute : node.attributes) {
    pbf_writer one(out, 5);
    one.add_string(1, attribute.name);
    std::visit(AttributeWriter{&one, attribute}, attribute.value);
  }
  put_text(&out, 7, node.domain);
}

// Messages without fields are written as such: a writer of protozero that got none leaves nothing.
void put_shape(pbf_writer* tensor_type, const std::vector<OnnxDim>& dims) {
  if (dims.empty()) return tensor_type->add_message(2, std::string());
  pbf_writer shape(*tensor_type, 2);
  for (const OnnxDim& dim : dims) {
    if (dim.size < 0 && dim.symbol.empty()) {
      shape.add_message(1, std::string());
      continue;
    }
    pbf_writer out(shape, 1);
    if (dim.size >= 0) {
      out.add_int64(1, dim.size);
    } else {
      out.add_string(2, dim.symbol);
    }
  }
}

void put_value_info(pbf_writer* parent, std::uint32_t field, const OnnxValueInfo& info) {
  pbf_writer out(*parent, field);
  out.add_string(1, info.name);
  if (!info.element_type) return;
  pbf_writer type(out, 2);
  pbf_writer tensor_type(type, 1);
  tensor_type.add_int32(1, info.element_type);
  if (info.shape) put_shape(&tensor_type, *info.shape);
}

void put_graph(pbf_writer* parent, std::uint32_t field, const OnnxGraph& graph) {
  pbf_writer out(*parent, field);
  for (const OnnxNode& node : graph.nodes) put_node(&out, node);
  // The format demands a name.
  out.add_string(2, graph.name);
  for (const OnnxTensor& tensor : graph.initializers) put_tensor(&out, 5, tensor);
  for (const OnnxValueInfo& input : graph.inputs) put_value_info(&out, 11, input);
  for (const OnnxValueInfo& output : graph.outputs) put_value_info(&out, 12, output);
}

// Before memory is asked for: a nested message may not be longer, either.
void check_onnx_size(const OnnxGraph& graph) {
  std::uint64_t bytes = 0;
  for (const OnnxTensor& tensor : graph.initializers) bytes += tensor.bytes.size();
  if (bytes <= kMostMessageBytes) return;
  throw UnsupportedError(
      message("[write_onnx] the tensors have ", bytes,
              " bytes, expected less than 2 GiB, the limit of protocol buffers"));
}

}  // namespace

std::string encode_onnx(const OnnxModel& model) {
  check_onnx_size(model.graph);
  std::string bytes;
  pbf_writer out(bytes);
  out.add_int64(1, model.ir_version);
  put_text(&out, 2, model.producer_name);
  put_text(&out, 3, model.producer_version);
  put_graph(&out, 7, model.graph);
  for (const auto& [domain, version] : model.opsets) {
    pbf_writer opset(out, 8);
    put_text(&opset, 1, domain);
    opset.add_int64(2, version);
  }
  for (const auto& [key, value] : model.metadata) {
    pbf_writer entry(out, 14);
    entry.add_string(1, key);
    entry.add_string(2, value);
  }
  if (bytes.size() > kMostMessageBytes) {
    throw UnsupportedError(
        message("[write_onnx] the model has ", bytes.size(), " bytes, expected less than 2 GiB"));
  }
  return bytes;
}

}  // namespace formats

void write_onnx(const std::string& path, const OnnxModel& model) {
  const std::string bytes = formats::encode_onnx(model);
  write_file_atomically(path, bytes);
}

}  // namespace openrnn
