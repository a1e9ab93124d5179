#include "formats/table/snappy.h"

#include <gtest/gtest.h>

namespace openrnn::formats {
namespace {

using std::string_literals::operator""s;

TEST(Snappy, EveryKindOfElement) {
  EXPECT_EQ(snappy_decompress("\0"s), "");
  EXPECT_EQ(snappy_decompress("\x03\x08"s + "abc"), "abc");
  // A copy of 4 to 11 bytes from a short offset, overlapping what it makes.
  EXPECT_EQ(snappy_decompress("\x09\x04"s + "ab" + "\x0d\x02"s), "ababababa");
  // Two-byte offset, then four-byte offset.
  EXPECT_EQ(snappy_decompress("\x05\x08"s + "xyz" + "\x06\x03\x00"s), "xyzxy");
  EXPECT_EQ(snappy_decompress("\x05\x08"s + "xyz" + "\x07\x02\x00\x00\x00"s), "xyzyz");
}

TEST(Snappy, LongLiterals) {
  const std::string text(300, 'q');
  EXPECT_EQ(snappy_decompress("\xac\x02\xf4\x2b\x01"s + text), text);
  const std::string longer(70000, 'r');
  EXPECT_EQ(snappy_decompress("\xf0\xa2\x04\xf8\x6f\x11\x01"s + longer), longer);
}

TEST(Snappy, CopyWithElevenBitOffset) {
  std::string plain;
  for (int i = 0; i < 300; ++i) plain += static_cast<char>(i % 251);
  // Four bytes from 290 back: 290 = 1 << 8 | 34.
  const std::string compressed = "\xb0\x02\xf4\x2b\x01"s + plain + "\x21\x22"s;
  EXPECT_EQ(snappy_decompress(compressed), plain + plain.substr(10, 4));
}

TEST(Snappy, DamageIsRefused) {
  EXPECT_FALSE(snappy_decompress(""));
  EXPECT_FALSE(snappy_decompress("\x04\x08"s + "abc")) << "shorter than it says";
  EXPECT_FALSE(snappy_decompress("\x02\x08"s + "abc")) << "longer than it says";
  EXPECT_FALSE(snappy_decompress("\x03\x08"s + "ab")) << "literal cut";
  EXPECT_FALSE(snappy_decompress("\x06\x04"s + "ab" + "\x01\x00"s)) << "offset 0";
  EXPECT_FALSE(snappy_decompress("\x06\x04"s + "ab" + "\x01\x03"s)) << "before the start";
  EXPECT_FALSE(snappy_decompress("\x05\x04"s + "ab" + "\x01\x02"s)) << "copy past the end";
  EXPECT_FALSE(snappy_decompress("\x06\x04"s + "ab" + "\x01"s)) << "offset cut";
  EXPECT_FALSE(snappy_decompress("\xff\xff\xff\xff\x0f"s)) << "claims 4 GiB";
  EXPECT_FALSE(snappy_decompress("\x01\xfc\xff\xff\xff\xff"s + "a")) << "literal of 4 GiB";
}

}  // namespace
}  // namespace openrnn::formats
