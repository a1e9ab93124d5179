#include "formats/crc32c.h"

#include <gtest/gtest.h>

#include <string>

#include "formats/coding.h"

namespace openrnn::formats {
namespace {

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(mask_crc(0xe3069283u), 0xc78ab0e5u);
  EXPECT_EQ(mask_crc(0), 0xa282ead8u);
}

TEST(Crc32c, InstructionAndTablesAgreeAtAllLengthsStartsAndCuts) {
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes += static_cast<char>(i * 37 + 11);
  for (std::size_t start = 0; start < 9; ++start) {
    for (std::size_t size = 0; size + start <= bytes.size(); ++size) {
      const char* at = bytes.data() + start;
      const std::uint32_t whole = crc32c_extend(0, at, size);
      ASSERT_EQ(whole, crc32c_extend_portable(0, at, size)) << start << " " << size;
      const std::size_t cut = size / 3;
      ASSERT_EQ(whole, crc32c_extend(crc32c_extend(0, at, cut), at + cut, size - cut));
    }
  }
}

TEST(Crc32c, UnmaskInverts) {
  for (const std::uint32_t crc : {0u, 1u, 0x8000u, 0x7fffu, 0xffffffffu, 0xdeadbeefu}) {
    EXPECT_EQ(unmask_crc(mask_crc(crc)), crc);
  }
}

TEST(Coding, VarintsRoundTripAtTheirEdges) {
  for (int bit = 0; bit < 64; ++bit) {
    for (const std::uint64_t value : {std::uint64_t{1} << bit, (std::uint64_t{1} << bit) - 1}) {
      std::string bytes;
      put_varint64(&bytes, value);
      std::uint64_t found = ~value;
      ByteCursor whole(bytes), cut(std::string_view(bytes).substr(0, bytes.size() - 1));
      EXPECT_FALSE(cut.varint64(&found));
      ASSERT_TRUE(whole.varint64(&found));
      EXPECT_EQ(found, value);
      EXPECT_TRUE(whole.empty());
      std::uint32_t narrow = 0;
      EXPECT_EQ(ByteCursor(bytes).varint32(&narrow), value <= 0xffffffffu);
    }
  }
}

TEST(Coding, TooLongVarintIsRefused) {
  std::uint64_t value = 0;
  const std::string eleven = std::string(10, '\x80') + '\x01';
  EXPECT_FALSE(ByteCursor(eleven).varint64(&value));
  const std::string beyond_64_bits = std::string(9, '\xff') + '\x02';
  EXPECT_FALSE(ByteCursor(beyond_64_bits).varint64(&value));
}

}  // namespace
}  // namespace openrnn::formats
