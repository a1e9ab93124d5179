#include "formats/hdf5/data/types.h"

#include <climits>

#include "base/message.h"

namespace openrnn::formats {

namespace {

constexpr std::uint64_t kMaxRank = 32;  // the library's own

enum Class : std::uint64_t {
  kInteger = 0,
  kFloat = 1,
  kTime = 2,
  kString = 3,
  kBits = 4,
  kOpaque = 5,
  kCompound = 6,
  kReference = 7,
  kEnumeration = 8,
  kVariableLength = 9,
  kArray = 10,
};

const char* name_of_class(std::uint64_t type) {
  static constexpr const char* kNames[] = {"an integer of another form",
                                           "a float of another form",
                                           "a time",
                                           "a string",
                                           "a bit field",
                                           "an opaque type",
                                           "a compound type",
                                           "a reference",
                                           "an enumeration",
                                           "a variable-length type",
                                           "an array type"};
  return type < std::size(kNames) ? kNames[type] : "an unknown type";
}

// The head of a type: its class, 24 bits of it, the size of an element.
struct TypeHead {
  std::uint64_t type = 0, flags = 0, bytes = 0;
  bool bit(unsigned number) const { return (flags >> number & 1u) != 0; }
};

TypeHead parse_head(Hdf5Fields* in) {
  const std::uint64_t first = in->number(1), flags = in->number(3);
  if ((first >> 4) < 1 || (first >> 4) > 5) {
    in->fail(message("has version ", first >> 4, ", expected 1 to 5"));
  }
  TypeHead head{.type = first & 15u, .flags = flags, .bytes = in->number(4)};
  if (head.bytes == 0) in->fail("has elements of 0 bytes, expected at least 1");
  return head;
}

// With the byte order in front where it is not ours.
std::string ordered(const TypeHead& head, const std::string& name) {
  return (head.bit(0) && head.bytes > 1 ? "big-endian " : "") + name;
}

void parse_integer(const TypeHead& head, Hdf5Fields* in, Hdf5Type* out) {
  const std::uint64_t first_bit = in->number(2), bits = in->number(2);
  const bool usual = head.bytes == 1 || head.bytes == 2 || head.bytes == 4 || head.bytes == 8;
  if (!usual || first_bit != 0 || bits != head.bytes * CHAR_BIT) return;
  out->kind = Hdf5Kind::kNumber;
  out->name = ordered(head, message(head.bit(3) ? "int" : "uint", bits));
}

void parse_float(const TypeHead& head, Hdf5Fields* in, Hdf5Type* out) {
  const std::uint64_t first_bit = in->number(2), bits = in->number(2);
  in->skip(1);
  const std::uint64_t exponent = in->number(1);
  in->skip(1);
  const std::uint64_t mantissa = in->number(1);
  struct Form {
    std::uint64_t bits, exponent, mantissa;
    const char* name;
  };
  static constexpr Form kForms[] = {{16, 5, 10, "float16"},
                                    {16, 8, 7, "bfloat16"},
                                    {32, 8, 23, "float32"},
                                    {64, 11, 52, "float64"}};
  for (const Form& form : kForms) {
    // Bit 6 is the order of a VAX.
    if (first_bit != 0 || bits != form.bits || bits != head.bytes * CHAR_BIT || head.bit(6) ||
        exponent != form.exponent || mantissa != form.mantissa) {
      continue;
    }
    out->kind = Hdf5Kind::kNumber;
    out->name = ordered(head, form.name);
  }
}

// NumPy's bool is an enumeration of int8 with FALSE 0 and TRUE 1.
void parse_enumeration(const TypeHead& head, Hdf5Fields* in, Hdf5Type* out) {
  const TypeHead base = parse_head(in);
  if (base.type != kInteger) return;
  parse_integer(base, in, out);
  // Names and values; old versions fill names up to 8 bytes.
  using namespace std::string_view_literals;
  const std::string_view rest = in->bytes(in->remaining());
  if (base.bytes == 1 && (head.flags & 0xffffu) == 2 &&
      (rest.starts_with("FALSE\0\0\0TRUE\0\0\0\0\0\1"sv) ||
       rest.starts_with("FALSE\0TRUE\0\0\1"sv))) {
    out->name = "bool";
  }
}

}  // namespace

Hdf5Type parse_type(const Hdf5File& file, std::uint64_t offset, std::string_view bytes) {
  Hdf5Fields in(file, offset, bytes, "an element type");
  const TypeHead head = parse_head(&in);
  Hdf5Type type{.kind = Hdf5Kind::kOther,
                .name = name_of_class(head.type),
                .bytes = head.bytes,
                .padding = Hdf5Padding::kZeroEnded};
  switch (head.type) {
    case kInteger:
      parse_integer(head, &in, &type);
      break;
    case kFloat:
      parse_float(head, &in, &type);
      break;
    case kEnumeration:
      parse_enumeration(head, &in, &type);
      break;
    case kString:
      type.kind = Hdf5Kind::kText;
      type.name = "string";
      if ((head.flags & 15u) == 1) type.padding = Hdf5Padding::kZeros;
      if ((head.flags & 15u) == 2) type.padding = Hdf5Padding::kSpaces;
      break;
    case kVariableLength:
      // Length, address and index.
      if ((head.flags & 15u) != 1 || head.bytes != 16) break;
      type.kind = Hdf5Kind::kVariableText;
      type.name = "string";
      break;
    default:
      break;
  }
  return type;
}

std::optional<Shape> parse_dataspace(const Hdf5File& file, std::uint64_t offset,
                                     std::string_view bytes) {
  Hdf5Fields in(file, offset, bytes, "a dataspace");
  const std::uint64_t version = in.version(1, 2), rank = in.number(1);
  in.skip(1);  // whether there are largest sizes
  const std::uint64_t kind = in.number(1);
  if (version == 1) in.skip(4);
  constexpr std::uint64_t kNull = 2;
  if (version == 2 && kind == kNull) return std::nullopt;
  if (rank > kMaxRank) in.fail(message("has rank ", rank, ", expected at most ", kMaxRank));
  Shape shape;
  for (std::uint64_t d = 0; d < rank; ++d) {
    const std::uint64_t size = in.number(8);
    if (size > static_cast<std::uint64_t>(INT64_MAX)) {
      in.fail(message("has a size of ", size, ", expected at most 2^63 - 1"));
    }
    shape.push_back(static_cast<std::int64_t>(size));
  }
  return shape;
}

}  // namespace openrnn::formats
