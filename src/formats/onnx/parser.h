// Messages of ONNX as the structs of formats_onnx.h.
#pragma once

#include "formats/onnx/tensor_reader.h"

namespace openrnn::formats {

class OnnxParser {
 public:
  OnnxParser(const std::shared_ptr<const ByteSource>& source, const SourceOpener& open)
      : file_{source->path(), source->mapped()}, tensors_(file_, source, open) {}

  OnnxModel model();

 private:
  OnnxGraph graph(std::string_view part, int depth);
  OnnxNode node(std::string_view part, int depth);
  OnnxAttribute attribute(std::string_view part, int depth);
  template <class T>
  T* the_value(std::string_view part, OnnxAttributeValue* value);
  void take_value(std::string_view part, protozero::pbf_reader* in, int depth,
                  OnnxAttributeValue* value);
  OnnxValueInfo value_info(std::string_view part);
  void take_type(std::string_view part, OnnxValueInfo* info);
  OnnxDim dim(std::string_view part);
  void take_opset(std::string_view part, OnnxModel* model);
  void take_field(protozero::pbf_reader* in, OnnxModel* model, bool* has_graph);
  std::pair<std::string, std::string> two_strings(std::string_view part, std::uint32_t first,
                                                  std::uint32_t second);
  void check_names(std::string_view part, const OnnxGraph& graph);
  std::string sparse_name(std::string_view part);
  std::string name(protozero::pbf_reader* in);

  ProtoFile file_;
  OnnxTensorReader tensors_;
};

}  // namespace openrnn::formats
