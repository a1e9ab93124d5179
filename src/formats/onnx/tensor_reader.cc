#include "formats/onnx/tensor_reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/excerpt.h"
#include "base/message.h"
#include "base/utf8.h"
#include "formats/onnx/types.h"
#include "formats/proto_fields.h"

namespace openrnn::formats {

namespace {

using protozero::pbf_reader;

constexpr std::uint32_t kRawData = 9;

// Elements of a message in fields of their own, as bytes.
struct TypedElements {
  const ProtoFile& file;
  std::string_view message;
  const OnnxTensor& tensor;
  const OnnxType& type;
  std::string bytes = {};

  // Integers of up to 32 bits, each as a varint.
  void add_narrow(std::int64_t value) {
    const std::int64_t half = std::int64_t{1} << (std::max(type.bits, 8u) - 1);
    if (value < -half || value >= 2 * half) {
      file.fail(message, openrnn::message("tensor '", excerpt(tensor.name), "' has the element ",
                                          value, ", expected one of ", type.name));
    }
    bytes.append(reinterpret_cast<const char*>(&value), std::max(type.bits, 8u) / 8);
  }
  // 64 bits, or 32 of an unsigned integer.
  void add_wide(std::int64_t value) {
    bytes.append(reinterpret_cast<const char*>(&value), type.bits / 8);
  }
  template <class T>
  void add(T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void add_floats(pbf_reader* in) {
    if (in->wire_type() == protozero::pbf_wire_type::fixed32) return add(in->get_float());
    for (const float value : in->get_packed_float()) add(value);
  }
  void add_doubles(pbf_reader* in) {
    if (in->wire_type() == protozero::pbf_wire_type::fixed64) return add(in->get_double());
    for (const double value : in->get_packed_double()) add(value);
  }

  void take(pbf_reader* in) {
    switch (type.field) {
      case 4:
        return add_floats(in);
      case 10:
        return add_doubles(in);
      case 5:
        return each_varint(in, [&](std::int64_t value) { add_narrow(value); });
      default:
        return each_varint(in, [&](std::int64_t value) { add_wide(value); });
    }
  }
};

// A field of elements has one of them or, length-delimited, several; protozero only asserts it.
bool has_encoding_of(const pbf_reader& in, const OnnxType& type) {
  using Wire = protozero::pbf_wire_type;
  if (in.wire_type() == Wire::length_delimited) return true;
  return type.number != kOnnxString && in.wire_type() == (type.field == 4    ? Wire::fixed32
                                                          : type.field == 10 ? Wire::fixed64
                                                                             : Wire::varint);
}

bool is_data_field(std::uint32_t tag) {
  return tag == 4 || tag == 5 || tag == 6 || tag == 7 || tag == 10 || tag == 11 || tag == kRawData;
}

std::uint64_t elements_of(const ProtoFile& file, std::string_view part, const OnnxTensor& tensor) {
  const std::optional<std::uint64_t> count = element_count(tensor.shape);
  // 16 bytes are the longest element.
  if (count && *count <= (std::uint64_t{1} << 58)) return *count;
  file.fail(part, message("tensor '", excerpt(tensor.name), "' has impossible shape ",
                          excerpt(to_string(tensor.shape))));
}

void check_found(const ProtoFile& file, std::string_view part, const OnnxTensor& tensor,
                 std::uint64_t found, std::uint64_t expected, const char* unit) {
  if (found == expected) return;
  file.fail(part,
            message("tensor '", excerpt(tensor.name), "' has ", found, " ", unit, ", expected ",
                    expected, " of ", tensor.type_name(), " ", excerpt(to_string(tensor.shape))));
}

// Any other byte in a C++ bool is undefined behaviour.
void check_bools(const ProtoFile& file, std::string_view part, const OnnxTensor& tensor) {
  if (tensor.element_type != kOnnxBool) return;
  for (const char byte : tensor.bytes) {
    if (static_cast<unsigned char>(byte) <= 1) continue;
    file.fail(part, message("tensor '", excerpt(tensor.name), "' has the bool ",
                            int{static_cast<unsigned char>(byte)}, ", expected 0 or 1"));
  }
}

// A bare name: a path could lead to any file of the machine.
bool is_name_of_sibling(const std::string& name) {
  return is_printable_utf8(name) && !name.empty() && name != "." && name != ".." &&
         name.find('/') == std::string::npos && name.find('\\') == std::string::npos;
}

}  // namespace

// What is there besides elements.
struct OnnxTensorReader::Location {
  bool external = false;
  std::string name;
  std::optional<std::uint64_t> offset, length;
  // The one field that holds elements; 0: none does.
  std::uint32_t data_field = 0;
};

namespace {

// The two strings of an entry of a list of keys and values.
std::pair<std::string, std::string> entry_of(const ProtoFile& file, std::string_view part) {
  std::pair<std::string, std::string> entry;
  file.read_fields(part, "an entry", [&](pbf_reader* in) {
    if (in->tag_and_type() == message_field(1)) {
      entry.first = proto_view(in);
    } else if (in->tag_and_type() == message_field(2)) {
      entry.second = proto_view(in);
    } else {
      in->skip();
    }
  });
  return entry;
}

std::uint64_t unsigned_of(const ProtoFile& file, std::string_view part, const std::string& text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end) return value;
  file.fail(part, "external data has the number '" + excerpt(text) + "', expected a decimal one");
}

}  // namespace

const std::shared_ptr<const ByteSource>& OnnxTensorReader::external_file(std::string_view message,
                                                                         const std::string& name) {
  if (!is_name_of_sibling(name)) {
    file_.fail(message, "external data is in '" + excerpt(name) +
                            "', expected the name of a file in the folder of the model");
  }
  std::shared_ptr<const ByteSource>& source = external_[name];
  if (!source) source = open_(name);
  return source;
}

void OnnxTensorReader::read_external(std::string_view message, const Location& location,
                                     std::uint64_t expected, OnnxTensor* tensor) {
  const std::shared_ptr<const ByteSource>& source = external_file(message, location.name);
  check_found(file_, message, *tensor, location.length.value_or(expected), expected, "bytes");
  const std::uint64_t offset = location.offset.value_or(0);
  if (offset > source->size() || expected > source->size() - offset) {
    file_.fail(message, openrnn::message("tensor '", excerpt(tensor->name), "' has ", expected,
                                         " bytes at ", offset, " of '", excerpt(location.name),
                                         "', expected them inside its ", source->size()));
  }
  tensor->bytes = source->mapped().substr(offset, expected);
  tensor->owner = source;
}

void OnnxTensorReader::take_location(std::string_view message, std::string_view entry,
                                     Location* location) {
  const auto [key, value] = entry_of(file_, entry);
  if (key == "location") location->name = value;
  if (key == "offset") location->offset = unsigned_of(file_, message, value);
  if (key == "length") location->length = unsigned_of(file_, message, value);
}

void OnnxTensorReader::take_field(std::string_view message, pbf_reader* in, OnnxTensor* tensor,
                                  Location* location) {
  if (is_data_field(in->tag())) {
    if (location->data_field && location->data_field != in->tag()) {
      file_.fail(message, "a tensor has elements in two fields, expected one");
    }
    location->data_field = in->tag();
    if (in->tag_and_type() != message_field(kRawData)) return in->skip();
    tensor->bytes = proto_view(in);
    return;
  }
  switch (in->tag_and_type()) {
    case varint_field(1):
    case message_field(1):
      return each_varint(in, [&](std::int64_t size) { tensor->shape.push_back(size); });
    case varint_field(2):
      tensor->element_type = in->get_int32();
      return;
    case message_field(3):
      throw UnsupportedError("[onnx] " + file_.path +
                             " has a tensor in segments, expected whole tensors");
    case message_field(8):
      tensor->name = proto_view(in);
      return;
    case message_field(13):
      return take_location(message, proto_view(in), location);
    case varint_field(14):
      location->external = in->get_enum() == 1;
      return;
    default:
      in->skip();
  }
}

void OnnxTensorReader::read_typed(std::string_view message, const Location& location,
                                  const OnnxType& type, OnnxTensor* tensor) {
  if (location.data_field && location.data_field != type.field) {
    file_.fail(message, openrnn::message("tensor '", excerpt(tensor->name), "' of ", type.name,
                                         " has its elements in field ", location.data_field,
                                         ", expected field ", type.field, " or raw data"));
  }
  TypedElements elements{file_, message, *tensor, type};
  file_.read_fields(message, "a tensor", [&](pbf_reader* in) {
    if (in->tag() != type.field) return in->skip();
    if (!has_encoding_of(*in, type)) {
      file_.fail(message, openrnn::message("tensor '", excerpt(tensor->name), "' of ", type.name,
                                           " has elements of another wire type"));
    }
    if (type.number != kOnnxString) return elements.take(in);
    tensor->strings.emplace_back(proto_view(in));
  });
  const auto owned = std::make_shared<const std::string>(std::move(elements.bytes));
  tensor->bytes = *owned;
  tensor->owner = owned;
}

void OnnxTensorReader::read_elements(std::string_view message, const Location& location,
                                     OnnxTensor* tensor) {
  const std::uint64_t count = elements_of(file_, message, *tensor);
  const OnnxType* type = find_onnx_type(tensor->element_type);
  if (!type) {
    file_.fail(message, openrnn::message("tensor '", excerpt(tensor->name), "' has element type ",
                                         tensor->element_type, ", expected one that ONNX has"));
  }
  const std::uint64_t expected = (count * type->bits + 7) / 8;
  if (location.external) {
    if (location.data_field || type->number == kOnnxString) {
      file_.fail(message, "a tensor with external data has elements or strings, expected neither");
    }
    read_external(message, location, expected, tensor);
  } else if (location.data_field == kRawData) {
    tensor->owner = source_;
  } else {
    read_typed(message, location, *type, tensor);
  }
  if (type->number == kOnnxString) {
    check_found(file_, message, *tensor, tensor->strings.size(), count, "strings");
  }
  check_found(file_, message, *tensor, tensor->bytes.size(), expected, "bytes");
  check_bools(file_, message, *tensor);
}

OnnxTensor OnnxTensorReader::read(std::string_view message) {
  OnnxTensor tensor;
  Location location;
  file_.read_fields(message, "a tensor",
                    [&](pbf_reader* in) { take_field(message, in, &tensor, &location); });
  if (!is_printable_utf8(tensor.name)) {
    file_.fail(message,
               "a tensor is named '" + excerpt(tensor.name) + "', expected printable UTF-8");
  }
  read_elements(message, location, &tensor);
  return tensor;
}

}  // namespace openrnn::formats
