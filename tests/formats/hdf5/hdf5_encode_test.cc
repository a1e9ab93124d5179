// The bytes of the types, shapes and attributes that are written, as the format's specification
// has them.
#include <gtest/gtest.h>

#include "formats/hdf5/hdf5_text.h"
#include "formats/hdf5/image/encode.h"

namespace openrnn::formats {
namespace {

using namespace hdf5_text;
using namespace std::string_literals;

constexpr std::uint64_t kHeap = 0x123456789abc;
constexpr std::uint16_t kIndex = 0x4321;

// Numbers of 8 bytes, with a sign, and as floats.
const std::string kInt64 = "\x10\x08\0\0\x08\0\0\0\0\0\x40\0"s;
const std::string kFloat64 = "\x11\x20\x3f\0\x08\0\0\0\0\0\x40\0\x34\x0b\0\x34\xff\x03\0\0"s;
// An enumeration of int8.
const std::string kBool =
    "\x18\x02\0\0\x01\0\0\0\x10\x08\0\0\x01\0\0\0\0\0\x08\0"s + "FALSE\0\0\0TRUE\0\0\0\0\0\1"s;
const std::string kVariable = "\x19\x01\x01\0\x10\0\0\0\x10\0\0\0\x01\0\0\0\0\0\x08\0"s;

std::string fixed(std::uint8_t bytes) { return "\x13\x01\0\0"s + le(bytes, 4); }
// Version 1, without largest sizes.
std::string list_of(std::uint64_t count) { return "\1\1\0\0\0\0\0\0"s + le(count, 8); }
const std::string kScalar = "\1\0\0\0\0\0\0\0"s;

TEST(Hdf5Encoded, Types) {
  const std::pair<DType, std::string> types[] = {
      {DType::kFloat16, "\x11\x20\x0f\0\x02\0\0\0\0\0\x10\0\x0a\x05\0\x0a\x0f\0\0\0"s},
      {DType::kBfloat16, "\x15\0\0\0\x02\0\0\0"s},
      {DType::kFloat32, "\x11\x20\x1f\0\x04\0\0\0\0\0\x20\0\x17\x08\0\x17\x7f\0\0\0"s},
      {DType::kFloat64, kFloat64},
      {DType::kInt32, "\x10\x08\0\0\x04\0\0\0\0\0\x20\0"s},
      {DType::kInt64, kInt64},
      {DType::kUInt8, "\x10\0\0\0\x01\0\0\0\0\0\x08\0"s},
      {DType::kBool, kBool},
  };
  for (const auto& [dtype, bytes] : types)
    EXPECT_EQ(encode_type(dtype), bytes) << dtype_name(dtype);
}

TEST(Hdf5Encoded, Shapes) {
  EXPECT_EQ(encode_shape({}), kScalar);
  EXPECT_EQ(encode_shape({7}), list_of(7));
  EXPECT_EQ(encode_shape({0, std::int64_t{1} << 40, 3}),
            "\1\3\0\0\0\0\0\0"s + le(0, 8) + le(std::uint64_t{1} << 40, 8) + le(3, 8));
}

// Each kind of value, alone and in a list: its type, its shape and its bytes.
TEST(Hdf5Encoded, Attributes) {
  const std::string no_elements = "\2\0\0\2"s, int8 = "\x10\x08\0\0\x01\0\0\0\0\0\x08\0"s;
  const std::string two_and_half = le(0x4004000000000000, 8), minus_two = le(0xc000000000000000, 8);
  const std::tuple<PlainValue, std::string, std::string, std::string> values[] = {
      {std::monostate(), int8, no_elements, ""},
      {false, kBool, kScalar, "\0"s},
      {true, kBool, kScalar, "\1"},
      {std::int64_t{-2}, kInt64, kScalar, le(~std::uint64_t{1}, 8)},
      {2.5, kFloat64, kScalar, two_and_half},
      {"abc"s, kVariable, kScalar, le(3, 4) + le(kHeap, 8) + le(kIndex, 4)},
      {std::vector<std::int64_t>{-1, 3}, kInt64, list_of(2), le(kNone, 8) + le(3, 8)},
      {std::vector<std::int64_t>{}, kInt64, list_of(0), ""},
      {std::vector<double>{2.5, -2}, kFloat64, list_of(2), two_and_half + minus_two},
      {std::vector<std::string>{"a", "", "bcd"}, fixed(3), list_of(3), "a\0\0\0\0\0bcd"s},
      {std::vector<std::string>{"", ""}, fixed(1), list_of(2), "\0\0"s},
      {std::vector<std::string>{}, fixed(1), list_of(0), ""},
  };
  for (const auto& [value, type, shape, data] : values) {
    for (const std::string name : {"a", "seven77", "eight888", "a longer one"}) {
      EXPECT_EQ(encode_attribute(name, value, kHeap, kIndex),
                old_attribute(name, type, shape, data).bytes)
          << value.index() << name;
    }
  }
}

// All that is written is read as it was, with numbers at their limits.
TEST(Hdf5Encoded, ValuesComeBack) {
  const PlainValue values[] = {
      std::monostate(),
      true,
      false,
      std::int64_t{INT64_MIN},
      std::int64_t{INT64_MAX},
      -0.0,
      1e-310,
      "text"s,
      ""s,
      std::vector<std::int64_t>{INT64_MIN, -1, INT64_MAX},
      std::vector<double>{1e308, -1e-308},
      std::vector<std::string>{"", "long enough", "\xc3\xa9"},
  };
  std::vector<NamedValue> named;
  for (const PlainValue& value : values) {
    named.push_back({"group/v" + std::to_string(10 + named.size()), value});
  }
  const TempFolder folder;
  write_hdf5(folder / "m", {}, named);
  const ModelFile file(folder / "m");
  ASSERT_EQ(file.values().size(), named.size());
  for (std::size_t i = 0; i < named.size(); ++i) {
    EXPECT_EQ(file.values()[i].name, named[i].name);
    EXPECT_EQ(file.values()[i].value, named[i].value) << named[i].name;
  }
}

TEST(Hdf5Encoded, ObjectHeaders) {
  ObjectHeader header;
  EXPECT_EQ(header.finish(), "\1\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0"s);
  header.add(0x0102, "abc");
  header.add(3, "12345678");
  EXPECT_EQ(header.finish(), "\1\0\2\0\1\0\0\0\x20\0\0\0\0\0\0\0"s +
                                 "\2\1\x08\0\0\0\0\0abc\0\0\0\0\0"s +
                                 "\3\0\x08\0\0\0\0\0"
                                 "12345678"s);
}

}  // namespace
}  // namespace openrnn::formats
