// ModelProto, ValueInfoProto, and what they have in common with the rest.
#include <algorithm>

#include "base/excerpt.h"
#include "base/message.h"
#include "base/utf8.h"
#include "formats/onnx/parser.h"
#include "formats/proto_fields.h"

namespace openrnn {

namespace formats {

namespace {

using protozero::pbf_reader;

}  // namespace

// A name that messages may print as it is.
std::string OnnxParser::name(pbf_reader* in) {
  const std::string_view text = proto_view(in);
  if (is_printable_utf8(text)) return std::string(text);
  file_.fail(text, "the name '" + excerpt(text) + "' is there, expected printable UTF-8");
}

std::pair<std::string, std::string> OnnxParser::two_strings(std::string_view part,
                                                            std::uint32_t first,
                                                            std::uint32_t second) {
  std::pair<std::string, std::string> texts;
  file_.read_fields(part, "an entry", [&](pbf_reader* in) {
    if (in->tag_and_type() == message_field(first)) {
      texts.first = name(in);
    } else if (in->tag_and_type() == message_field(second)) {
      texts.second = proto_view(in);
      if (!is_valid_utf8(texts.second)) file_.fail(part, "a text is not UTF-8");
    } else {
      in->skip();
    }
  });
  return texts;
}

OnnxDim OnnxParser::dim(std::string_view part) {
  OnnxDim dim;
  file_.read_fields(part, "a dimension", [&](pbf_reader* in) {
    if (in->tag_and_type() == varint_field(1)) {
      dim.size = in->get_int64();
    } else if (in->tag_and_type() == message_field(2)) {
      dim.symbol = name(in);
    } else {
      in->skip();
    }
  });
  return dim;
}

// TypeProto: field 1 is that of a tensor; sequences, maps and optional values are left out.
void OnnxParser::take_type(std::string_view part, OnnxValueInfo* info) {
  file_.read_fields(part, "a type", [&](pbf_reader* in) {
    if (in->tag_and_type() != message_field(1)) return in->skip();
    file_.read_fields(proto_view(in), "a tensor's type", [&](pbf_reader* of) {
      if (of->tag_and_type() == varint_field(1)) {
        info->element_type = of->get_int32();
      } else if (of->tag_and_type() == message_field(2)) {
        info->shape.emplace();
        file_.read_fields(proto_view(of), "a shape", [&](pbf_reader* dims) {
          if (dims->tag_and_type() != message_field(1)) return dims->skip();
          info->shape->push_back(dim(proto_view(dims)));
        });
      } else {
        of->skip();
      }
    });
  });
}

OnnxValueInfo OnnxParser::value_info(std::string_view part) {
  OnnxValueInfo info;
  file_.read_fields(part, "an input or output", [&](pbf_reader* in) {
    if (in->tag_and_type() == message_field(1)) {
      info.name = name(in);
    } else if (in->tag_and_type() == message_field(2)) {
      take_type(proto_view(in), &info);
    } else {
      in->skip();
    }
  });
  if (info.name.empty()) file_.fail(part, "an input or output has no name, expected one");
  return info;
}

// SparseTensorProto: its values, field 1, have the name.
std::string OnnxParser::sparse_name(std::string_view part) {
  std::string found;
  file_.read_fields(part, "a sparse tensor", [&](pbf_reader* in) {
    if (in->tag_and_type() != message_field(1)) return in->skip();
    file_.read_fields(proto_view(in), "a tensor", [&](pbf_reader* of) {
      if (of->tag_and_type() != message_field(8)) return of->skip();
      found = name(of);
    });
  });
  return found;
}

void OnnxParser::take_opset(std::string_view part, OnnxModel* model) {
  std::string domain;
  std::int64_t version = 0;
  file_.read_fields(part, "a set of operators", [&](pbf_reader* in) {
    if (in->tag_and_type() == message_field(1)) {
      domain = name(in);
    } else if (in->tag_and_type() == varint_field(2)) {
      version = in->get_int64();
    } else {
      in->skip();
    }
  });
  if (domain == "ai.onnx") domain.clear();
  if (!model->opsets.emplace(domain, version).second) {
    file_.fail(part, "the domain '" + domain + "' has two versions, expected one");
  }
}

void OnnxParser::take_field(pbf_reader* in, OnnxModel* model, bool* has_graph) {
  switch (in->tag_and_type()) {
    case varint_field(1):
      model->ir_version = in->get_int64();
      return;
    case message_field(2):
      model->producer_name = name(in);
      return;
    case message_field(3):
      model->producer_version = name(in);
      return;
    case message_field(7): {
      const std::string_view part = proto_view(in);
      if (*has_graph) file_.fail(part, "the model has two graphs, expected one");
      *has_graph = true;
      model->graph = graph(part, 0);
      return;
    }
    case message_field(8):
      return take_opset(proto_view(in), model);
    case message_field(14):
      model->metadata.push_back(two_strings(proto_view(in), 1, 2));
      return;
    case message_field(25): {
      // FunctionProto: name 1, domain 10.
      const auto [function, domain] = two_strings(proto_view(in), 1, 10);
      model->functions.push_back(excerpt(domain) + "::" + function);
      return;
    }
    default:
      in->skip();
  }
}

OnnxModel OnnxParser::model() {
  OnnxModel model;
  bool has_graph = false;
  file_.read_fields(file_.bytes, "the model",
                    [&](pbf_reader* in) { take_field(in, &model, &has_graph); });
  if (!has_graph) file_.fail(file_.bytes, "the model has no graph, expected one");
  return model;
}

OnnxModel parse_onnx(std::shared_ptr<const ByteSource> file, const SourceOpener& open) {
  return OnnxParser(file, open).model();
}

bool looks_like_onnx(const ByteSource& file) {
  // Length-delimited fields of a ModelProto; 1 and 5 are varints.
  constexpr std::uint32_t kMessages[] = {2, 3, 4, 6, 7, 8, 14, 20, 25, 26};
  // A tag has one byte or two, a length ten at most.
  constexpr std::uint64_t kLongest = 12;
  bool has_version = false, has_graph = false;
  for (std::uint64_t at = 0; at < file.size();) {
    const std::string head = file.read_string(at, std::min(kLongest, file.size() - at));
    try {
      pbf_reader in(head.data(), head.size());
      const char* value = head.data();
      const std::uint64_t key = protozero::decode_varint(&value, head.data() + head.size());
      const auto tag = static_cast<std::uint32_t>(std::min<std::uint64_t>(key, 0xffffffffu));
      const std::uint64_t number = protozero::decode_varint(&value, head.data() + head.size());
      at += static_cast<std::uint64_t>(value - head.data());
      if (tag == varint_field(1)) {
        has_version = number >= 1 && number < 1000;
        if (!has_version) return false;
      } else if (tag != varint_field(5)) {
        const bool known = std::any_of(std::begin(kMessages), std::end(kMessages),
                                       [&](std::uint32_t of) { return tag == message_field(of); });
        if (!known) return false;
        has_graph |= tag == message_field(7);
        if (number > file.size() - at) break;  // cut: the reader says where
        at += number;
      }
    } catch (const protozero::exception&) {
      break;
    }
  }
  return has_version && has_graph;
}

}  // namespace formats

OnnxModel read_onnx(const std::string& path) {
  const std::string folder = formats::folder_of(path);
  return formats::parse_onnx(std::make_shared<formats::FileSource>(path),
                             [&](const std::string& name) {
                               return std::make_unique<formats::FileSource>(folder + "/" + name);
                             });
}

}  // namespace openrnn
