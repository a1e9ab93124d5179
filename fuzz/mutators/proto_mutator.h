// Changes protocol buffers by their fields: lengths stay right, so that a change reaches the
// inside.
#pragma once

#include <cstdint>
#include <protozero/varint.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

/// libFuzzer's own changes of bytes; null where it is not linked in.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size)
    __attribute__((weak));

namespace openrnn::formats {

struct MutableField {
  std::uint64_t key = 0;    // number and wire type
  std::uint64_t value = 0;  // of a varint
  std::string bytes;        // of anything else, unless it is a message
  std::vector<MutableField> fields;
};
using MutableMessage = std::vector<MutableField>;

/// Whether the bytes are fields to their end, all of numbers that ONNX uses.
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
  explicit ProtoMutator(unsigned seed) : random_(seed) {}

  /// One or several changes somewhere in the message.
  void change(MutableMessage* message) {
    for (std::size_t left = 1 + below(3); left > 0; --left) {
      std::vector<MutableMessage*> lists;
      collect(message, &lists);
      change_one(lists[below(lists.size())]);
    }
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }

  static void collect(MutableMessage* message, std::vector<MutableMessage*>* lists) {
    lists->push_back(message);
    for (MutableField& field : *message) {
      if (!field.fields.empty()) collect(&field.fields, lists);
    }
  }

  void change_one(MutableMessage* fields) {
    if (fields->empty()) return;
    const std::size_t at = below(fields->size());
    MutableField& field = (*fields)[at];
    switch (below(8)) {
      case 0:
        field.fields.clear();
        field.bytes.clear();
        break;
      case 1:
        field.key = field.key % 8 + 8 * (1 + below(26));
        break;
      case 2:
        std::swap(field, (*fields)[below(fields->size())]);
        break;
      case 3:
        fields->erase(fields->begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 4:
        fields->push_back(MutableField(field));
        break;
      default:
        change_value(&field);
    }
  }

  void change_value(MutableField* field) {
    constexpr std::uint64_t kValues[] = {
        0, 1, 2, 3, 5, 7, 8, 9, 14, 127, 1u << 31, ~0ull, 1ull << 62, 1ull << 63, 16, 1ull << 40};
    if (field->key % 8 == 0) {
      field->value = below(2) ? kValues[below(std::size(kValues))] : field->value + below(3) - 1;
    } else if (field->fields.empty() && LLVMFuzzerMutate) {
      std::string& bytes = field->bytes;
      const std::size_t size = bytes.size(), most = field->key % 8 == 2 ? size + 16 : size;
      bytes.resize(most);
      if (most) {
        const std::size_t now =
            LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(bytes.data()), size, most);
        if (field->key % 8 == 2) bytes.resize(now);
      }
    }
  }

  std::mt19937 random_;
};

}  // namespace openrnn::formats
