// The tensors of a model for those who do not ask what it computes.
#include <unordered_set>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/onnx/onnx_file.h"
#include "formats/onnx/types.h"

namespace openrnn::formats {

namespace {

// Elements of external data, or that are not in the file as they are.
class OnnxTensorSource : public MemorySource {
 public:
  OnnxTensorSource(const std::string& path, const OnnxTensor& tensor)
      : MemorySource(path, tensor.bytes), owner_(tensor.owner) {}

 private:
  std::shared_ptr<const void> owner_;
};

class OnnxContents {
 public:
  explicit OnnxContents(std::shared_ptr<const ByteSource> file) : file_(std::move(file)) {
    contents_.kind = FileKind::kOnnx;
    contents_.sources.push_back(file_);
  }

  void add_graph(const OnnxGraph& graph, const std::string& prefix) {
    for (const OnnxTensor& tensor : graph.initializers) add(tensor, prefix + tensor.name);
    for (const OnnxNode& node : graph.nodes) {
      for (const OnnxAttribute& attribute : node.attributes) {
        add_attribute(node, attribute, prefix);
      }
    }
  }
  void add_values(const OnnxModel& model);
  FileContents contents() && { return std::move(contents_); }

 private:
  void add_attribute(const OnnxNode& node, const OnnxAttribute& attribute,
                     const std::string& prefix) {
    const std::string& output = node.output(0);
    if (const auto* tensor = std::get_if<std::shared_ptr<const OnnxTensor>>(&attribute.value)) {
      if (node.op_type == "Constant" && !output.empty()) add(**tensor, prefix + output);
    }
    if (const auto* graph = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute.value)) {
      add_graph(**graph, prefix + output + "." + attribute.name + ".");
    }
  }
  void add(const OnnxTensor& tensor, std::string name);
  Extent extent_of(const OnnxTensor& tensor);

  std::shared_ptr<const ByteSource> file_;
  FileContents contents_;
  std::unordered_set<std::string> names_;
};

Extent OnnxContents::extent_of(const OnnxTensor& tensor) {
  if (tensor.owner == std::static_pointer_cast<const void>(file_) && !tensor.bytes.empty()) {
    const auto offset = static_cast<std::uint64_t>(tensor.bytes.data() - file_->mapped().data());
    return {file_.get(), offset, tensor.bytes.size(), {}};
  }
  contents_.sources.push_back(std::make_shared<OnnxTensorSource>(file_->path(), tensor));
  return {contents_.sources.back().get(), 0, tensor.bytes.size(), {}};
}

void OnnxContents::add(const OnnxTensor& tensor, std::string name) {
  // Strings are no tensors to read: they are in the structs of formats_onnx.h.
  if (tensor.element_type == kOnnxString) return;
  if (!names_.insert(name).second) {
    throw FormatError(file_->path(), 0,
                      "tensor '" + excerpt(name) + "' is there twice, expected unequal names");
  }
  contents_.tensors.push_back({.name = std::move(name),
                               .dtype = tensor.type_name(),
                               .shape = tensor.shape,
                               .bytes = tensor.bytes.size()});
  contents_.places.push_back({.extent = contents_.extents.size()});
  contents_.extents.push_back(extent_of(tensor));
}

std::vector<std::string> names_of_values(const std::vector<OnnxValueInfo>& values) {
  std::vector<std::string> names;
  for (const OnnxValueInfo& value : values) names.push_back(value.name);
  return names;
}

void OnnxContents::add_values(const OnnxModel& model) {
  std::vector<NamedValue>& values = contents_.values;
  values.push_back({"ir_version", model.ir_version});
  values.push_back({"producer_name", model.producer_name});
  values.push_back({"producer_version", model.producer_version});
  std::vector<std::string> opsets;
  for (const auto& [domain, version] : model.opsets) {
    opsets.push_back(message(domain.empty() ? "ai.onnx" : domain, " ", version));
  }
  values.push_back({"opset_import", opsets});
  values.push_back({"inputs", names_of_values(model.graph.inputs)});
  values.push_back({"outputs", names_of_values(model.graph.outputs)});
  for (const auto& [key, value] : model.metadata) values.push_back({"metadata." + key, value});
}

}  // namespace

FileContents read_onnx_contents(std::shared_ptr<const ByteSource> file, const SourceOpener& open) {
  const OnnxModel model = parse_onnx(file, open);
  OnnxContents contents(std::move(file));
  contents.add_graph(model.graph, "");
  contents.add_values(model);
  return std::move(contents).contents();
}

}  // namespace openrnn::formats
