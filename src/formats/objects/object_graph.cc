#include "formats/objects/object_graph.h"

#include <algorithm>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <set>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/proto_fields.h"
#include "openrnn/formats.h"

namespace openrnn::formats {
namespace {

using protozero::pbf_reader;

class Decoder {
 public:
  Decoder(const std::string& path, std::string_view bytes) : path_(path), bytes_(bytes) {}

  ObjectGraph graph() try {
    ObjectGraph graph;
    pbf_reader in(bytes_.data(), bytes_.size());
    while (in.next()) {
      if (in.tag_and_type() == message_field(1)) {
        graph.nodes.push_back(node(in.get_view()));
      } else {
        in.skip();
      }
    }
    check(graph);
    return graph;
  } catch (const protozero::exception& error) {
    throw FormatError(path_, at_, message("the object graph is broken: ", error.what()));
  }

 private:
  pbf_reader open(protozero::data_view view) {
    at_ = static_cast<std::uint64_t>(view.data() - bytes_.data());
    return pbf_reader(view);
  }

  ObjectNode node(protozero::data_view view) {
    ObjectNode node;
    pbf_reader in = open(view);
    while (in.next()) {
      switch (in.tag_and_type()) {
        case message_field(1):
          node.children.push_back(child(in.get_view()));
          break;
        case message_field(2):
          node.attributes.push_back(attribute(in.get_view()));
          break;
        case message_field(3):
          node.slots.push_back(slot(in.get_view()));
          break;
        case message_field(5):
          node.has_values = flag(in.get_view());
          break;
        default:
          in.skip();
      }
    }
    return node;
  }

  ObjectChild child(protozero::data_view view) {
    ObjectChild child;
    pbf_reader in = open(view);
    while (in.next()) {
      if (in.tag_and_type() == varint_field(1)) {
        child.node = index(in.get_int32());
      } else if (in.tag_and_type() == message_field(2)) {
        child.name = in.get_string();
      } else {
        in.skip();
      }
    }
    return child;
  }

  ObjectAttribute attribute(protozero::data_view view) {
    ObjectAttribute attribute;
    pbf_reader in = open(view);
    while (in.next()) {
      switch (in.tag_and_type()) {
        case message_field(1):
          attribute.name = in.get_string();
          break;
        case message_field(2):
          attribute.full_name = in.get_string();
          break;
        case message_field(3):
          attribute.key = in.get_string();
          break;
        default:
          in.skip();
      }
    }
    return attribute;
  }

  ObjectSlot slot(protozero::data_view view) {
    ObjectSlot slot;
    pbf_reader in = open(view);
    while (in.next()) {
      switch (in.tag_and_type()) {
        case varint_field(1):
          slot.original = index(in.get_int32());
          break;
        case message_field(2):
          slot.name = in.get_string();
          break;
        case varint_field(3):
          slot.node = index(in.get_int32());
          break;
        default:
          in.skip();
      }
    }
    return slot;
  }

  bool flag(protozero::data_view view) {
    bool value = false;
    pbf_reader in = open(view);
    while (in.next()) {
      if (in.tag_and_type() == varint_field(1)) {
        value = in.get_bool();
      } else {
        in.skip();
      }
    }
    return value;
  }

  std::size_t index(std::int32_t number) {
    if (number < 0) throw FormatError(path_, at_, message("an object has the number ", number));
    largest_ = std::max(largest_, static_cast<std::size_t>(number));
    return static_cast<std::size_t>(number);
  }

  void check(const ObjectGraph& graph) const {
    if (graph.nodes.empty()) throw FormatError(path_, 0, "the object graph has no objects");
    if (largest_ >= graph.nodes.size()) {
      throw FormatError(path_, bytes_.size(),
                        message("the object graph names the object ", largest_, ", and has ",
                                graph.nodes.size()));
    }
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      std::set<std::string_view> names;
      for (const ObjectChild& child : graph.nodes[i].children) {
        if (names.insert(child.name).second) continue;
        throw FormatError(
            path_, 0, message("the object ", i, " has two children '", excerpt(child.name), "'"));
      }
    }
  }

  const std::string& path_;
  std::string_view bytes_;
  std::uint64_t at_ = 0;  // start of the innermost message
  std::size_t largest_ = 0;
};

// An absent field means zero or empty.
void add_index(protozero::pbf_writer& out, std::uint32_t tag, std::size_t index) {
  if (index != 0) out.add_int32(tag, static_cast<std::int32_t>(index));
}
void add_text(protozero::pbf_writer& out, std::uint32_t tag, const std::string& text) {
  if (!text.empty()) out.add_string(tag, text);
}

std::string encode_node(const ObjectNode& node) {
  std::string bytes;
  protozero::pbf_writer out(bytes);
  for (const ObjectChild& child : node.children) {
    protozero::pbf_writer inner(out, 1);
    add_index(inner, 1, child.node);
    add_text(inner, 2, child.name);
  }
  for (const ObjectAttribute& attribute : node.attributes) {
    protozero::pbf_writer inner(out, 2);
    add_text(inner, 1, attribute.name);
    add_text(inner, 2, attribute.full_name);
    add_text(inner, 3, attribute.key);
  }
  for (const ObjectSlot& slot : node.slots) {
    protozero::pbf_writer inner(out, 3);
    add_index(inner, 1, slot.original);
    add_text(inner, 2, slot.name);
    add_index(inner, 3, slot.node);
  }
  protozero::pbf_writer flag(out, 5);
  if (node.has_values) flag.add_bool(1, true);
  return bytes;
}

}  // namespace

const ObjectChild* ObjectNode::child(std::string_view name) const {
  for (const ObjectChild& one : children) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

const std::string* ObjectNode::value_key() const {
  for (const ObjectAttribute& attribute : attributes) {
    if (attribute.name == kValueAttribute) return &attribute.key;
  }
  return nullptr;
}

ObjectGraph decode_object_graph(const std::string& path, std::string_view bytes) {
  return Decoder(path, bytes).graph();
}

std::string encode_object_graph(const ObjectGraph& graph) {
  std::string bytes;
  protozero::pbf_writer out(bytes);
  for (const ObjectNode& node : graph.nodes) out.add_message(1, encode_node(node));
  return bytes;
}

}  // namespace openrnn::formats
