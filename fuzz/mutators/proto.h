// Changes protocol buffers by their fields: lengths stay right, so that a change reaches the
// inside.
#pragma once

#include <protozero/varint.hpp>
#include <vector>

#include "chance.h"

namespace openrnn::fuzz {

struct MutableField {
  std::uint64_t key = 0;    // number and wire type
  std::uint64_t value = 0;  // of a varint
  std::string bytes;        // of anything else, unless it is a message
  std::vector<MutableField> fields;
};
using MutableMessage = std::vector<MutableField>;

/// Whether the bytes are fields to their end, all of numbers that ONNX and TensorFlow use.
inline bool parse_fields(std::string_view bytes, int depth, MutableMessage* out) {
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  try {
    while (at < end) {
      MutableField field{.key = protozero::decode_varint(&at, end), .bytes = {}, .fields = {}};
      if (field.key / 8 == 0 || field.key / 8 > 32) return false;
      std::uint64_t size = 0;
      switch (field.key % 8) {
        case 0:
          field.value = protozero::decode_varint(&at, end);
          break;
        case 1:
          size = 8;
          break;
        case 2:
          size = protozero::decode_varint(&at, end);
          break;
        case 5:
          size = 4;
          break;
        default:
          return false;
      }
      if (size > static_cast<std::uint64_t>(end - at)) return false;
      const std::string_view part(at, size);
      at += size;
      const bool message = field.key % 8 == 2 && size > 0 && depth > 0 &&
                           parse_fields(part, depth - 1, &field.fields);
      if (!message) {
        field.fields.clear();
        field.bytes = part;
      }
      out->push_back(std::move(field));
    }
    return true;
  } catch (const protozero::exception&) {
    return false;
  }
}

inline void write_varint(std::uint64_t value, std::string* out) {
  for (; value >= 128; value /= 128) *out += static_cast<char>(value % 128 + 128);
  *out += static_cast<char>(value);
}

inline std::string write_fields(const MutableMessage& fields) {
  std::string out;
  for (const MutableField& field : fields) {
    write_varint(field.key, &out);
    const std::string bytes = field.fields.empty() ? field.bytes : write_fields(field.fields);
    if (field.key % 8 == 0) write_varint(field.value, &out);
    if (field.key % 8 == 2) write_varint(bytes.size(), &out);
    out += bytes;
  }
  return out;
}

class ProtoMutator {
 public:
  explicit ProtoMutator(Chance& chance) : chance_(chance) {}

  /// One or several changes somewhere in the message.
  void change(MutableMessage* message) {
    for (std::size_t left = 1 + chance_.below(3); left > 0; --left) {
      std::vector<MutableMessage*> lists;
      collect(message, &lists);
      // One after the other: an order of arguments would be the compiler's.
      MutableMessage* const fields = chance_.pick(lists);
      change_one(fields, *chance_.pick(lists));
    }
  }

 private:
  static void collect(MutableMessage* message, std::vector<MutableMessage*>* lists) {
    lists->push_back(message);
    for (MutableField& field : *message) {
      if (!field.fields.empty()) collect(&field.fields, lists);
    }
  }

  void change_one(MutableMessage* fields, const MutableMessage& others) {
    if (fields->empty()) return;
    const std::size_t at = chance_.below(fields->size());
    MutableField& field = (*fields)[at];
    switch (chance_.below(9)) {
      case 0:
        field.fields.clear();
        field.bytes.clear();
        break;
      case 1:
        field.key = field.key % 8 + 8 * (1 + chance_.below(26));
        break;
      case 2:
        std::swap(field, chance_.pick(*fields));
        break;
      case 3:
        fields->erase(fields->begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 4:
        fields->push_back(MutableField(field));
        break;
      case 5:
        if (!others.empty()) fields->push_back(MutableField(chance_.pick(others)));
        break;
      default:
        change_value(&field);
    }
  }

  void change_value(MutableField* field) {
    if (field->key % 8 == 0) {
      field->value = chance_.number(field->value);
    } else if (field->fields.empty()) {
      chance_.change_bytes(&field->bytes, field->key % 8 == 2 ? 16 : 0);
      // A wire type of a fixed size keeps it.
      if (field->key % 8 != 2) field->bytes.resize(field->key % 8 == 1 ? 8 : 4);
    }
  }

  Chance& chance_;
};

/// A message of any type.
inline bool mutate_proto(std::string* bytes, Chance& chance) {
  constexpr int kDepth = 12;
  MutableMessage message;
  if (!parse_fields(*bytes, kDepth, &message) || message.empty()) return false;
  ProtoMutator(chance).change(&message);
  *bytes = write_fields(message);
  return true;
}

}  // namespace openrnn::fuzz
