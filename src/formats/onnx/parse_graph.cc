// GraphProto, NodeProto, AttributeProto.
#include <unordered_set>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/onnx/parser.h"
#include "formats/proto_fields.h"

namespace openrnn::formats {

namespace {

using protozero::pbf_reader;

// Graphs in attributes of nodes; models of today nest two or three.
constexpr int kMostGraphDepth = 32;

constexpr std::uint32_t fixed32_field(std::uint32_t tag) {
  return protozero::tag_and_type(tag, protozero::pbf_wire_type::fixed32);
}

}  // namespace

// The value as T, which it is made unless there was none: a list may come in several fields.
template <class T>
T* OnnxParser::the_value(std::string_view part, OnnxAttributeValue* value) {
  if (std::holds_alternative<std::monostate>(*value)) return &value->emplace<T>();
  if (T* found = std::get_if<T>(value)) return found;
  file_.fail(part, "an attribute has values of two kinds, expected one");
}

void OnnxParser::take_value(std::string_view part, pbf_reader* in, int depth,
                            OnnxAttributeValue* value) {
  switch (in->tag_and_type()) {
    case fixed32_field(2):
      *the_value<float>(part, value) = in->get_float();
      return;
    case varint_field(3):
      *the_value<std::int64_t>(part, value) = in->get_int64();
      return;
    case message_field(4):
      *the_value<std::string>(part, value) = proto_view(in);
      return;
    case message_field(5):
      *the_value<std::shared_ptr<const OnnxTensor>>(part, value) =
          std::make_shared<const OnnxTensor>(tensors_.read(proto_view(in)));
      return;
    case message_field(6):
      *the_value<std::shared_ptr<const OnnxGraph>>(part, value) =
          std::make_shared<const OnnxGraph>(graph(proto_view(in), depth + 1));
      return;
    case fixed32_field(7):
      the_value<std::vector<float>>(part, value)->push_back(in->get_float());
      return;
    case message_field(7):
      for (const float x : in->get_packed_float()) {
        the_value<std::vector<float>>(part, value)->push_back(x);
      }
      return;
    case varint_field(8):
    case message_field(8):
      return each_varint(in, [&](std::int64_t x) {
        the_value<std::vector<std::int64_t>>(part, value)->push_back(x);
      });
    case message_field(9):
      the_value<std::vector<std::string>>(part, value)->emplace_back(proto_view(in));
      return;
    default:
      in->skip();
  }
}

namespace {

// What the attribute is by its type where no field says it: zero, or an empty list.
OnnxAttributeValue empty_attribute(std::int32_t type) {
  switch (type) {
    case 1:
      return 0.0f;
    case 2:
      return std::int64_t{0};
    case 3:
      return std::string();
    case 6:
      return std::vector<float>();
    case 7:
      return std::vector<std::int64_t>();
    case 8:
      return std::vector<std::string>();
    default:
      return std::monostate();
  }
}

}  // namespace

OnnxAttribute OnnxParser::attribute(std::string_view part, int depth) {
  OnnxAttribute attribute;
  std::int32_t type = 0;
  file_.read_fields(part, "an attribute", [&](pbf_reader* in) {
    if (in->tag_and_type() == message_field(1)) {
      attribute.name = name(in);
    } else if (in->tag_and_type() == varint_field(20)) {
      type = in->get_enum();
    } else {
      take_value(part, in, depth, &attribute.value);
    }
  });
  if (attribute.name.empty()) file_.fail(part, "an attribute has no name, expected one");
  if (std::holds_alternative<std::monostate>(attribute.value)) {
    attribute.value = empty_attribute(type);
  }
  return attribute;
}

OnnxNode OnnxParser::node(std::string_view part, int depth) {
  OnnxNode node;
  file_.read_fields(part, "a node", [&](pbf_reader* in) {
    switch (in->tag_and_type()) {
      case message_field(1):
        node.inputs.push_back(name(in));
        return;
      case message_field(2):
        node.outputs.push_back(name(in));
        return;
      case message_field(3):
        node.name = name(in);
        return;
      case message_field(4):
        node.op_type = name(in);
        return;
      case message_field(5):
        node.attributes.push_back(attribute(proto_view(in), depth));
        return;
      case message_field(7):
        node.domain = name(in);
        return;
      default:
        in->skip();
    }
  });
  if (node.op_type.empty()) file_.fail(part, "a node has no operator, expected one");
  if (node.domain == "ai.onnx") node.domain.clear();
  std::unordered_set<std::string_view> names;
  for (const OnnxAttribute& one : node.attributes) {
    if (names.insert(one.name).second) continue;
    file_.fail(part, message("node '", excerpt(node.label()), "' has the attribute '",
                             excerpt(one.name), "' twice, expected it once"));
  }
  return node;
}

// A name is defined once; only files of old versions list initializers as inputs, too.
void OnnxParser::check_names(std::string_view part, const OnnxGraph& graph) {
  std::unordered_set<std::string_view> initializers, names;
  const auto define = [&](std::unordered_set<std::string_view>* in, const std::string& name) {
    if (name.empty() || in->insert(name).second) return;
    file_.fail(part, "'" + excerpt(name) + "' is defined twice, expected once");
  };
  for (const OnnxTensor& tensor : graph.initializers) {
    if (tensor.name.empty()) file_.fail(part, "an initializer has no name, expected one");
    define(&initializers, tensor.name);
  }
  for (const OnnxValueInfo& input : graph.inputs) define(&names, input.name);
  for (const OnnxTensor& tensor : graph.initializers) names.insert(tensor.name);
  for (const OnnxNode& node : graph.nodes) {
    for (const std::string& output : node.outputs) define(&names, output);
  }
}

OnnxGraph OnnxParser::graph(std::string_view part, int depth) {
  if (depth > kMostGraphDepth) {
    file_.fail(part, message("graphs are nested deeper than ", kMostGraphDepth));
  }
  OnnxGraph graph;
  file_.read_fields(part, "a graph", [&](pbf_reader* in) {
    switch (in->tag_and_type()) {
      case message_field(1):
        graph.nodes.push_back(node(proto_view(in), depth));
        return;
      case message_field(2):
        graph.name = name(in);
        return;
      case message_field(5):
        graph.initializers.push_back(tensors_.read(proto_view(in)));
        return;
      case message_field(11):
        graph.inputs.push_back(value_info(proto_view(in)));
        return;
      case message_field(12):
        graph.outputs.push_back(value_info(proto_view(in)));
        return;
      case message_field(15):
        graph.sparse_initializers.push_back(sparse_name(proto_view(in)));
        return;
      default:
        in->skip();
    }
  });
  check_names(part, graph);
  return graph;
}

}  // namespace openrnn::formats
