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

// A bit at a time, as the definition has it.
std::uint32_t extend_by_bits(std::uint32_t crc, const char* at, std::size_t size) {
  std::uint32_t state = ~crc;
  for (std::size_t i = 0; i < size; ++i) {
    state ^= static_cast<unsigned char>(at[i]);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ (state & 1 ? 0x82f63b78u : 0);
  }
  return ~state;
}

// Both ways go on from any checksum, whatever it is of.
TEST(Crc32c, EachWayGoesOnFromAnyChecksum) {
  std::string bytes;
  for (int i = 0; i < 260; ++i) bytes += static_cast<char>(i * i * 5 + 3);
  for (const std::uint32_t before : {0u, 1u, 0x80000000u, 0xffffffffu, 0xe3069283u}) {
    for (std::size_t size = 0; size <= bytes.size(); ++size) {
      const std::uint32_t expected = extend_by_bits(before, bytes.data(), size);
      ASSERT_EQ(crc32c_extend(before, bytes.data(), size), expected) << size;
      ASSERT_EQ(crc32c_extend_portable(before, bytes.data(), size), expected) << size;
    }
  }
}

TEST(Crc32c, UnmaskInverts) {
  for (const std::uint32_t crc : {0u, 1u, 0x8000u, 0x7fffu, 0xffffffffu, 0xdeadbeefu}) {
    EXPECT_EQ(unmask_crc(mask_crc(crc)), crc);
  }
  EXPECT_EQ(mask_crc(0x12345678u), 0x4f730f40u);
}

}  // namespace
}  // namespace openrnn
