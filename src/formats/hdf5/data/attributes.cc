#include "formats/hdf5/data/attributes.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "base/excerpt.h"
#include "base/message.h"
#include "base/utf8.h"
#include "formats/hdf5/data/types.h"
#include "formats/hdf5/structure/fractal_heap.h"
#include "formats/tensors/contents.h"

namespace openrnn::formats {

namespace {

// Records by the hash of a name: an identifier in the heap of 8 bytes, then flags, an index of
// creation and the hash.
constexpr std::uint64_t kAttributesByName = 8, kAttributeId = 8, kAttributeRecord = 17;
constexpr const char* kAttribute = "an attribute";

std::string trimmed(std::string_view text, Hdf5Padding padding) {
  if (padding == Hdf5Padding::kZeroEnded) {
    text = text.substr(0, text.find('\0'));
  } else {
    const char pad = padding == Hdf5Padding::kZeros ? '\0' : ' ';
    text = text.substr(0, text.find_last_not_of(pad) + 1);
  }
  return std::string(text);
}

class AttributeReader {
 public:
  AttributeReader(Hdf5File& file, GlobalHeap* heap) : file_(file), heap_(heap) {}

  void read(std::uint64_t offset, std::string_view bytes) {
    Hdf5Fields in(file_, offset, bytes, kAttribute);
    const std::uint64_t version = in.version(1, 3), flags = in.number(1);
    if (version > 1 && (flags & 3u) != 0) {
      file_.refuse(offset, "the type or the shape of an attribute is shared, expected it there");
    }
    const std::uint64_t name_bytes = in.number(2), type_bytes = in.number(2);
    const std::uint64_t space_bytes = in.number(2);
    if (version == 3) in.skip(1);  // the character set
    const bool padded = version == 1;
    NamedValue value{trimmed(take(&in, name_bytes, padded), Hdf5Padding::kZeroEnded), {}};
    check_name(in, value.name);
    const std::uint64_t type_at = in.offset();
    const Hdf5Type type = parse_type(file_, type_at, take(&in, type_bytes, padded));
    const std::uint64_t space_at = in.offset();
    const auto shape = parse_dataspace(file_, space_at, take(&in, space_bytes, padded));
    if (type.kind == Hdf5Kind::kOther) return;
    if (type.name.starts_with("big-endian")) {
      file_.refuse(offset, "the attribute '" + excerpt(value.name) + "' is " + type.name +
                               ", expected it little-endian");
    }
    if (shape) read_value(&in, type, *shape, &value.value);
    values_.push_back(std::move(value));
  }

  std::vector<NamedValue> values() && { return std::move(values_); }
  void sort_by_name() {
    std::sort(values_.begin(), values_.end(),
              [](const NamedValue& a, const NamedValue& b) { return a.name < b.name; });
  }

 private:
  // Version 1 fills up each part to a multiple of 8 bytes.
  static std::string_view take(Hdf5Fields* in, std::uint64_t bytes, bool padded) {
    const std::string_view field = in->bytes(bytes);
    if (padded) in->skip((8 - bytes % 8) % 8);
    return field;
  }

  void check_name(const Hdf5Fields& in, const std::string& name) {
    if (name.empty() || name.size() > kMaxHdf5Name || !is_printable_utf8(name)) {
      in.fail("has the name '" + excerpt(name) + "', expected a short one of printable UTF-8");
    }
    if (!names_.insert(name).second) {
      in.fail("has the name '" + excerpt(name) + "' of another, expected its own");
    }
  }

  // A scalar is one value, everything else a list.
  void read_value(Hdf5Fields* in, const Hdf5Type& type, const Shape& shape, PlainValue* out) {
    const std::optional<std::uint64_t> count = element_count(shape);
    if (!count || *count > in->remaining() / type.bytes) {
      in->fail(message("has elements of ", type.bytes, " bytes, more than its ", in->remaining(),
                       " bytes hold"));
    }
    if (type.kind != Hdf5Kind::kNumber) {
      std::vector<std::string> texts;
      for (std::uint64_t i = 0; i < *count; ++i) texts.push_back(read_text(in, type));
      set(shape, std::move(texts), out);
    } else if (type.name.starts_with("float") || type.name == "bfloat16") {
      std::vector<double> numbers;
      for (std::uint64_t i = 0; i < *count; ++i) numbers.push_back(read_float(in, type));
      set(shape, std::move(numbers), out);
    } else if (type.name == "bool" && shape.empty()) {
      *out = in->number(1) != 0;
    } else {
      std::vector<std::int64_t> numbers;
      for (std::uint64_t i = 0; i < *count; ++i) numbers.push_back(read_integer(in, type));
      set(shape, std::move(numbers), out);
    }
  }

  template <class T>
  static void set(const Shape& shape, std::vector<T> values, PlainValue* out) {
    if (shape.empty()) {
      *out = std::move(values.front());
    } else {
      *out = std::move(values);
    }
  }

  std::string read_text(Hdf5Fields* in, const Hdf5Type& type) {
    if (type.kind == Hdf5Kind::kText) return trimmed(in->bytes(type.bytes), type.padding);
    const std::uint64_t bytes = in->number(4), address = in->address(), index = in->number(4);
    if (bytes == 0) return {};
    std::string text = heap_->take(address, index);
    if (text.size() < bytes) {
      in->fail(message("has a string of ", bytes, " bytes in an object of ", text.size(),
                       ", expected no more"));
    }
    text.resize(bytes);
    return trimmed(text, Hdf5Padding::kZeroEnded);
  }

  static double read_float(Hdf5Fields* in, const Hdf5Type& type) {
    const std::uint64_t bits = in->number(type.bytes);
    if (type.bytes == sizeof(double)) return from_bits<double>(bits);
    if (type.bytes == sizeof(float)) return from_bits<float>(bits);
    if (type.name == "bfloat16") return from_bits<float>(bits << 16);
    return static_cast<double>(to_float(Half{static_cast<std::uint16_t>(bits)}));
  }

  template <class T>
  static T from_bits(std::uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

  static std::int64_t read_integer(Hdf5Fields* in, const Hdf5Type& type) {
    const std::uint64_t bits = in->number(type.bytes);
    const auto unused = static_cast<unsigned>(64 - 8 * type.bytes);
    if (type.name.starts_with('u')) return static_cast<std::int64_t>(bits);
    return static_cast<std::int64_t>(bits << unused) >> unused;
  }

  Hdf5File& file_;
  GlobalHeap* heap_;
  std::unordered_set<std::string> names_;
  std::vector<NamedValue> values_;
};

// Those that an object keeps in a heap.
void read_indexed(Hdf5File& file, const Hdf5Message& info, AttributeReader* reader) {
  Hdf5Fields in(file, info.offset, info.bytes, "an attribute info message");
  in.version(0, 0);
  if (in.number(1) & 1u) in.skip(2);  // the largest index of creation
  const std::uint64_t heap_address = in.address(), tree = in.address();
  if (heap_address == kNoAddress) return;
  FractalHeap heap(file, heap_address);
  for (const std::string& record : read_btree2(file, tree, kAttributesByName, kAttributeRecord)) {
    const FractalHeap::Object found = heap.find(std::string_view(record).substr(0, kAttributeId));
    reader->read(found.offset, found.bytes);
  }
  reader->sort_by_name();
}

}  // namespace

std::vector<NamedValue> read_attributes(Hdf5File& file, GlobalHeap* heap,
                                        const Hdf5Object& object) {
  AttributeReader reader(file, heap);
  for (const Hdf5Message& one : object.messages) {
    if (one.type == Hdf5MessageType::kAttribute) reader.read(one.offset, one.bytes);
  }
  if (const Hdf5Message* const info = object.find(Hdf5MessageType::kAttributeInfo)) {
    read_indexed(file, *info, &reader);
  }
  return std::move(reader).values();
}

}  // namespace openrnn::formats
