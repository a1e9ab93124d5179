#include "formats/tensorflow/tensor_proto.h"

#include <protozero/pbf_reader.hpp>

#include "formats/bundle/bundle_proto.h"
#include "formats/proto_fields.h"
#include "formats/tf_dtype.h"

namespace openrnn::formats {

namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

// The list of numbers that holds elements of a type: its field, and the bytes of a fixed number; 0
// for varints.
struct TfValueList {
  std::uint32_t field;
  std::size_t fixed_bytes;
};

TfValueList value_list_of(int dtype) {
  switch (dtype) {
    case 1:  // float32
      return {5, 4};
    case 2:  // float64
      return {6, 8};
    case 8:  // complex64
      return {9, 4};
    case 18:  // complex128
      return {12, 8};
    case 9:  // int64
      return {10, 0};
    case 10:  // bool
      return {11, 0};
    case 14:  // bfloat16
    case 19:  // float16
      return {13, 0};
    case 22:  // uint32
      return {16, 0};
    case 23:  // uint64
      return {17, 0};
    default:  // all smaller integers
      return {7, 0};
  }
}

void append_number(std::uint64_t value, std::size_t width, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), width);
}

void append_packed(std::string_view packed, const TfValueList& list, std::size_t width, bool* good,
                   std::string* out) {
  if (list.fixed_bytes) {
    *good &= packed.size() % list.fixed_bytes == 0;
    out->append(packed);
    return;
  }
  const char* at = packed.data();
  const char* const end = at + packed.size();
  while (at != end) append_number(protozero::decode_varint(&at, end), width, out);
}

void take_values(pbf_reader* in, const TfValueList& list, std::size_t width, bool* good,
                 std::string* out) {
  switch (in->wire_type()) {
    case pbf_wire_type::length_delimited: {
      const protozero::data_view view = in->get_view();
      append_packed({view.data(), view.size()}, list, width, good, out);
      break;
    }
    case pbf_wire_type::fixed32:
      *good &= list.fixed_bytes == 4;
      append_number(in->get_fixed32(), 4, out);
      break;
    case pbf_wire_type::fixed64:
      *good &= list.fixed_bytes == 8;
      append_number(in->get_fixed64(), 8, out);
      break;
    default:
      *good &= list.fixed_bytes == 0;
      append_number(in->get_uint64(), width, out);
  }
}

}  // namespace

bool decode_tensor_proto(std::string_view bytes, int dtype, TfTensorProto* tensor) try {
  bool good = true;
  tensor->dtype = dtype;
  pbf_reader in(bytes.data(), bytes.size());
  while (in.next()) {
    if (in.tag_and_type() == varint_field(1) && dtype == 0) {
      tensor->dtype = in.get_enum();
    } else if (in.tag_and_type() == message_field(2)) {
      const protozero::data_view view = in.get_view();
      tensor->shape = decode_shape({view.data(), view.size()}, &good);
    } else if (in.tag_and_type() == message_field(4)) {
      const protozero::data_view view = in.get_view();
      tensor->content = {view.data(), view.size()};
    } else {
      in.skip();
    }
  }
  const std::size_t width = tf_dtype_size(tensor->dtype);
  if (!good || width == 0 || !tensor->content.empty()) return good;
  const TfValueList list = value_list_of(tensor->dtype);
  pbf_reader again(bytes.data(), bytes.size());
  while (again.next()) {
    if (again.tag() == list.field) {
      take_values(&again, list, std::min<std::size_t>(width, 8), &good, &tensor->values);
    } else {
      again.skip();
    }
  }
  return good;
} catch (const protozero::exception&) {
  return false;
}

}  // namespace openrnn::formats
