#include "base/crc/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace openrnn {
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
  for (int i = 0; i < 300; ++i) bytes += static_cast<char>(i * 37 + 11);
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

}  // namespace
}  // namespace openrnn
