// Fields of protocol buffers by number and kind.
#pragma once

#include <protozero/types.hpp>

namespace openrnn::formats {

constexpr std::uint32_t varint_field(std::uint32_t tag) {
  return protozero::tag_and_type(tag, protozero::pbf_wire_type::varint);
}
constexpr std::uint32_t message_field(std::uint32_t tag) {
  return protozero::tag_and_type(tag, protozero::pbf_wire_type::length_delimited);
}

}  // namespace openrnn::formats
