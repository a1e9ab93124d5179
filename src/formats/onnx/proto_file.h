// A file of protocol buffers, whose errors say where.
#pragma once

#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>

#include "openrnn/base.h"

namespace openrnn::formats {

/// The bytes of a whole file, of which messages are parts.
struct ProtoFile {
  std::string path;
  std::string_view bytes;

  /// Throws: FormatError at the place of `part`, which is one of the bytes.
  [[noreturn]] void fail(std::string_view part, const std::string& what) const {
    throw FormatError(path, static_cast<std::uint64_t>(part.data() - bytes.data()), what);
  }

  /// Calls `field` with the reader at each field of a message, which must take or skip its value.
  template <class Field>
  void read_fields(std::string_view part, const char* what, const Field& field) const {
    try {
      protozero::pbf_reader in(part.data(), part.size());
      while (in.next()) field(&in);
    } catch (const protozero::exception& error) {
      fail(part, std::string(what) + " is malformed: " + error.what());
    }
  }
};

inline std::string_view proto_view(protozero::pbf_reader* in) {
  const protozero::data_view view = in->get_view();
  return {view.data(), view.size()};
}

/// The values of a repeated varint, packed or one.
template <class Take>
void each_varint(protozero::pbf_reader* in, const Take& take) {
  if (in->wire_type() == protozero::pbf_wire_type::varint) return take(in->get_int64());
  for (const std::int64_t value : in->get_packed_int64()) take(value);
}

}  // namespace openrnn::formats
