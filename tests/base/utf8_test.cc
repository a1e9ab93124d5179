#include "base/utf8.h"

#include <gtest/gtest.h>

#include <array>

#include "base/excerpt.h"

namespace openrnn {
namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

// The Unicode Standard's table of well-formed sequences: from which to which second byte a first
// byte goes, and how many bytes follow that.
struct Row {
  int first, last, low, high, more;
};
constexpr std::array<Row, 8> kTable{{{0xc2, 0xdf, 0x80, 0xbf, 0},
                                     {0xe0, 0xe0, 0xa0, 0xbf, 1},
                                     {0xe1, 0xec, 0x80, 0xbf, 1},
                                     {0xed, 0xed, 0x80, 0x9f, 1},
                                     {0xee, 0xef, 0x80, 0xbf, 1},
                                     {0xf0, 0xf0, 0x90, 0xbf, 2},
                                     {0xf1, 0xf3, 0x80, 0xbf, 2},
                                     {0xf4, 0xf4, 0x80, 0x8f, 2}}};

const Row* row_of(int first) {
  for (const Row& row : kTable) {
    if (first >= row.first && first <= row.last) return &row;
  }
  return nullptr;
}

TEST(Utf8, IsWhatTheStandardsTableSays) {
  for (int first = 0; first < 0x80; ++first) EXPECT_TRUE(is_valid_utf8(bytes({first}))) << first;
  for (int first = 0x80; first < 0x100; ++first) {
    EXPECT_FALSE(is_valid_utf8(bytes({first}))) << first;
    const Row* const row = row_of(first);
    for (int second = 0; second < 0x100; ++second) {
      const bool good = row && second >= row->low && second <= row->high;
      for (const char end : {'\x80', '\xbf'}) {
        const auto more = static_cast<std::size_t>(row ? row->more : 0);
        const std::string text = bytes({first, second}) + std::string(more, end);
        ASSERT_EQ(is_valid_utf8(text), good) << first << " " << second;
        ASSERT_EQ(is_valid_utf8(text + "a"), good) << first << " " << second;
      }
    }
    if (!row) continue;
    // Each byte that follows, and one too few.
    std::string good =
        bytes({first, row->low}) + std::string(static_cast<std::size_t>(row->more), '\xbf');
    EXPECT_TRUE(is_valid_utf8(good));
    EXPECT_FALSE(is_valid_utf8(good.substr(0, good.size() - 1)));
    for (std::size_t i = 2; i < good.size(); ++i) {
      for (const int other : {0x7f, 0xc0}) {
        std::string bad = good;
        bad[i] = static_cast<char>(other);
        EXPECT_FALSE(is_valid_utf8(bad)) << first << " " << i;
      }
    }
  }
}

TEST(Utf8, EveryCodePointIsReadAsItIsWritten) {
  for (std::int32_t code = 0; code < 0x110000; ++code) {
    if (code == 0xd800) code = 0xe000;  // half of a pair is none
    const std::string text = utf8_of(code) + "z";
    std::size_t at = 0;
    ASSERT_EQ(next_code_point(text, at), code);
    ASSERT_EQ(at, text.size() - 1) << code;
  }
}

TEST(Utf8, ControlCharactersAreNotPrinted) {
  for (std::int32_t code = 0; code < 0x200; ++code) {
    const bool control = code < 0x20 || (code >= 0x7f && code <= 0x9f);
    EXPECT_EQ(is_printable_utf8("a" + utf8_of(code) + "b"), !control) << code;
  }
  EXPECT_FALSE(is_printable_utf8("a\xff"));
}

TEST(Utf8, NamesInAListAreExcerpts) {
  EXPECT_EQ(listed_excerpts({"a", "b\x1b[2J\xff"}), "a, b\\033[2J\\377");
  EXPECT_EQ(excerpt(std::string(80, 'n')), std::string(80, 'n'));
  EXPECT_EQ(excerpt(std::string(81, 'n')), std::string(80, 'n') + "... (81 bytes)");
  EXPECT_EQ(listed_excerpts({"a", "b", "c", "d", "e", "f", "g", "h"}), "a, b, c, d, e, f, g, h");
  EXPECT_EQ(listed_excerpts({"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}),
            "a, b, c, d, e, f, g, h and 2 more");
  EXPECT_EQ(listed_excerpts({}), "");
  EXPECT_EQ(listed_excerpts({std::string(100, 'n')}), std::string(80, 'n') + "... (100 bytes)");
}

}  // namespace
}  // namespace openrnn
