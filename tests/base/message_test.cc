// Messages and the names made by them: the same in every locale of the program.
#include "base/message.h"

#include <gtest/gtest.h>

#include "train/message.h"

namespace openrnn {
namespace {

class Grouped : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

/// A program whose locale groups thousands, while it lives.
class GroupingProgram {
 public:
  GroupingProgram() : before_(std::locale::global(std::locale(std::locale(), new Grouped))) {}
  ~GroupingProgram() { std::locale::global(before_); }
  GroupingProgram(const GroupingProgram&) = delete;
  GroupingProgram& operator=(const GroupingProgram&) = delete;

 private:
  std::locale before_;
};

TEST(Message, IsThatOfTheClassicLocale) {
  const GroupingProgram program;
  std::ostringstream plain;
  plain << 1000;
  ASSERT_EQ(plain.str(), "1.000");
  EXPECT_EQ(message("model.ckpt-", 1000, ' ', 0.25, ' ', 2048u), "model.ckpt-1000 0.25 2048");
  EXPECT_EQ(train::message("fit", 1234567, " rows of ", 0.5), "[fit] 1234567 rows of 0.5");
  EXPECT_EQ(listed(std::vector<std::string>(2000, "a")), "a, a, a, a, a, a, a, a and 1992 more");
}

TEST(Listed, NamesAsManyAsEight) {
  EXPECT_EQ(listed({}), "");
  EXPECT_EQ(listed({"a", "b"}), "a, b");
  EXPECT_EQ(listed({"1", "2", "3", "4", "5", "6", "7", "8"}), "1, 2, 3, 4, 5, 6, 7, 8");
  EXPECT_EQ(listed({"1", "2", "3", "4", "5", "6", "7", "8", "9"}),
            "1, 2, 3, 4, 5, 6, 7, 8 and 1 more");
}

}  // namespace
}  // namespace openrnn
