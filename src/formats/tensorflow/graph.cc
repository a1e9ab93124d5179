// A GraphDef: nodes, and functions that are made of nodes. Nothing is nested deeper than a
// function's node's attribute's tensor.
#include <protozero/pbf_reader.hpp>
#include <unordered_set>

#include "base/excerpt.h"
#include "base/message.h"
#include "base/utf8.h"
#include "formats/coding.h"
#include "formats/file/owned_source.h"
#include "formats/proto_fields.h"
#include "formats/tensorflow/tensor_proto.h"
#include "formats/tensorflow/tensorflow.h"
#include "formats/tf_dtype.h"

namespace openrnn::formats {

namespace {

using protozero::pbf_reader;

// One element can stand for all of a constant. They are repeated while the constants have at most
// this many times the file's bytes; beyond it a small file could ask for all memory.
constexpr std::uint64_t kMostRepeated = 16, kAlwaysRepeated = std::uint64_t{1} << 20;

std::string_view graph_bytes(pbf_reader* in) {
  const protozero::data_view view = in->get_view();
  return {view.data(), view.size()};
}

// The field of the given number that is a message or string: the last one, or nothing.
std::string_view graph_field(std::string_view bytes, std::uint32_t tag) {
  std::string_view found;
  pbf_reader in(bytes.data(), bytes.size());
  while (in.next()) {
    if (in.tag_and_type() == message_field(tag)) {
      found = graph_bytes(&in);
    } else {
      in.skip();
    }
  }
  return found;
}

// The tensor of the attribute `value`.
std::optional<std::string_view> constant_of(std::string_view node) {
  if (graph_field(node, 2) != "Const") return std::nullopt;
  pbf_reader in(node.data(), node.size());
  while (in.next()) {
    if (in.tag_and_type() != message_field(5)) {
      in.skip();
      continue;
    }
    const std::string_view entry = graph_bytes(&in);
    if (graph_field(entry, 1) == "value") return graph_field(graph_field(entry, 2), 8);
  }
  return std::nullopt;
}

class GraphReader {
 public:
  explicit GraphReader(const ByteSource& file) : file_(file), all_(file.mapped()) {
    contents_.kind = FileKind::kTfGraph;
  }

  FileContents read() && {
    try {
      pbf_reader in(all_.data(), all_.size());
      while (in.next()) {
        if (in.tag_and_type() == message_field(1)) {
          take_node("", graph_bytes(&in));
        } else if (in.tag_and_type() == message_field(2)) {
          take_library(graph_bytes(&in));
        } else {
          in.skip();
        }
      }
    } catch (const protozero::exception&) {
      throw FormatError(file_.path(), at_, "the graph is damaged or cut short behind this place");
    }
    return std::move(contents_);
  }

 private:
  void take_library(std::string_view library) {
    pbf_reader in(library.data(), library.size());
    while (in.next()) {
      if (in.tag_and_type() != message_field(1)) {
        in.skip();
        continue;
      }
      const std::string_view function = graph_bytes(&in);
      const std::string name(graph_field(graph_field(function, 1), 1));
      pbf_reader nodes(function.data(), function.size());
      while (nodes.next()) {
        if (nodes.tag_and_type() == message_field(3)) {
          take_node(name + "/", graph_bytes(&nodes));
        } else {
          nodes.skip();
        }
      }
    }
  }

  void take_node(const std::string& function, std::string_view node) {
    at_ = static_cast<std::uint64_t>(node.data() - all_.data());
    const std::optional<std::string_view> constant = constant_of(node);
    if (!constant) return;
    const std::string name = function + std::string(graph_field(node, 1));
    const std::string named = "the constant '" + excerpt(name) + "'";
    if (name.empty() || !is_printable_utf8(name)) {
      throw FormatError(file_.path(), at_, named + " has no name or a control character");
    }
    if (!names_.insert(name).second) {
      throw FormatError(file_.path(), at_, named + " is there twice, expected once");
    }
    TfTensorProto proto;
    if (!decode_tensor_proto(*constant, 0, &proto) || !element_count(proto.shape)) {
      throw FormatError(file_.path(), at_, named + " is damaged or has an impossible shape");
    }
    add(name, named, std::move(proto));
  }

  void add(const std::string& name, const std::string& named, TfTensorProto proto) {
    const std::uint64_t width = tf_dtype_size(proto.dtype);
    TensorInfo info{.name = name, .dtype = tf_dtype_name(proto.dtype), .shape = proto.shape};
    if (__builtin_mul_overflow(*element_count(proto.shape), width, &info.bytes)) {
      throw FormatError(file_.path(), at_, named + " has an impossible shape");
    }
    const std::uint64_t stored = proto.content.empty() ? proto.values.size() : proto.content.size();
    const bool repeats = stored < info.bytes && stored % std::max<std::uint64_t>(width, 1) == 0;
    if (width > 0 && stored != info.bytes && (!proto.content.empty() || !repeats)) {
      throw FormatError(file_.path(), at_,
                        message(named, " has ", stored, " bytes, expected ", info.bytes));
    }
    TensorPlace place{.extent = contents_.extents.size()};
    if (!proto.content.empty()) {
      const auto offset = static_cast<std::uint64_t>(proto.content.data() - all_.data());
      contents_.extents.push_back({&file_, offset, stored, std::nullopt});
    } else {
      if (repeats) repeat(info, width, &proto.values, &place);
      auto source = std::make_unique<OwnedSource>(file_.path(), std::move(proto.values));
      contents_.extents.push_back({source.get(), 0, source->size(), std::nullopt});
      contents_.sources.push_back(std::move(source));
    }
    contents_.tensors.push_back(std::move(info));
    contents_.places.push_back(std::move(place));
  }

  // The last element stands for those that follow it; none at all for zeros.
  void repeat(const TensorInfo& info, std::uint64_t width, std::string* values,
              TensorPlace* place) {
    if (values->empty()) values->assign(width, '\0');
    if (info.bytes <= kAlwaysRepeated - std::min(repeated_, kAlwaysRepeated) ||
        (repeated_ + info.bytes) / kMostRepeated <= all_.size()) {
      repeated_ += info.bytes;
      const std::string last = values->substr(values->size() - width);
      values->reserve(info.bytes);
      while (values->size() < info.bytes) *values += last;
      return;
    }
    // It is listed, and refused when it is read: it has more elements than are stored.
    place->element_bytes = width;
    place->strides.assign(info.shape.size(), 0);
  }

  const ByteSource& file_;
  std::string_view all_;
  FileContents contents_;
  std::unordered_set<std::string> names_;
  std::uint64_t at_ = 0, repeated_ = 0;
};

bool is_operation_name(std::string_view name) {
  return !name.empty() && name.find_first_not_of(
                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "0123456789_>") == std::string_view::npos;
}

}  // namespace

bool starts_as_tf_graph(std::string_view head, std::uint64_t size) {
  constexpr char kNode = 0x0a, kName = 0x0a, kOperation = 0x12;
  ByteCursor in(head);
  char tag = 0;
  std::uint64_t length = 0;
  std::string_view name, operation;
  const auto next = [&](char expected) {
    return in.fixed(&tag) && tag == expected && in.varint64(&length);
  };
  return next(kNode) && length <= size && next(kName) && length > 0 && in.bytes(length, &name) &&
         is_printable_utf8(name) && next(kOperation) && in.bytes(length, &operation) &&
         is_operation_name(operation);
}

FileContents read_tf_graph(std::unique_ptr<ByteSource> file) {
  FileContents contents = GraphReader(*file).read();
  contents.sources.push_back(std::move(file));
  return contents;
}

}  // namespace openrnn::formats
