#include "formats/coding.h"

#include <gtest/gtest.h>

#include <string>

namespace openrnn::formats {
namespace {

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
