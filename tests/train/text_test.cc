// Text as symbols, splits and streams.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "openrnn/train_data.h"

namespace openrnn::train {
namespace {

class TextFile {
 public:
  explicit TextFile(const std::string& bytes)
      : path_(testing::TempDir() + "openrnn_text_" + std::to_string(::getpid()) + ".txt") {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TextFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string load_error(const std::string& bytes, TextLevel level = TextLevel::kByte) {
  const TextFile file(bytes);
  try {
    load_text({file.path(), "", level, 0.05});
  } catch (const ArgumentError& error) {
    const std::string what = error.what();
    const std::size_t at = what.find(file.path());
    return what.substr(0, at) + "F" + what.substr(at + file.path().size());
  }
  return "";
}

TEST(Vocabulary, BytesAndTheirOther) {
  const Vocabulary vocabulary = Vocabulary::of_text("banana\xff", TextLevel::kByte);
  EXPECT_EQ(vocabulary.codes(), (std::vector<std::int32_t>{'a', 'b', 'n', 255}));
  EXPECT_EQ(vocabulary.size(), 5);
  EXPECT_EQ(vocabulary.unknown(), 4);
  EXPECT_EQ(vocabulary.encode("nab!\xff"), (std::vector<std::int32_t>{2, 0, 1, 4, 3}));
  EXPECT_EQ(vocabulary.decode(3), "\xff");
  EXPECT_EQ(vocabulary.decode(4), "");
  EXPECT_NEAR(vocabulary.bits_of_unknown(), std::log2(252.0), 1e-12);
  EXPECT_THROW(vocabulary.decode(5), ArgumentError);
}

TEST(Vocabulary, AllBytesNeedNoOther) {
  std::string all(256, '\0');
  for (int i = 0; i < 256; ++i) all[static_cast<std::size_t>(i)] = static_cast<char>(i);
  const Vocabulary vocabulary = Vocabulary::of_text(all, TextLevel::kByte);
  EXPECT_EQ(vocabulary.size(), 256);
  EXPECT_EQ(vocabulary.unknown(), -1);
  EXPECT_EQ(vocabulary.bits_of_unknown(), 0.0);
}

TEST(Vocabulary, CharactersOfEveryLength) {
  const std::string text = "a\u00e9\u20ac\U0001f600";
  const Vocabulary vocabulary = Vocabulary::of_text(text, TextLevel::kChar);
  EXPECT_EQ(vocabulary.codes(), (std::vector<std::int32_t>{'a', 0xe9, 0x20ac, 0x1f600}));
  std::string back;
  for (const std::int32_t id : vocabulary.encode(text)) back += vocabulary.decode(id);
  EXPECT_EQ(back, text);
  EXPECT_EQ(vocabulary.encode("b"), (std::vector<std::int32_t>{4}));
}

TEST(Vocabulary, RefusesBytesThatAreNotUtf8) {
  for (const std::string bad : {"ab\xff", "ab\xc0\x80", "ab\xed\xa0\x80", "ab\xf4\x90\x80\x80",
                                "ab\xe2\x82", "ab\x80", "ab\xc3("}) {
    try {
      Vocabulary::of_text(bad, TextLevel::kChar);
      ADD_FAILURE() << bad;
    } catch (const ArgumentError& error) {
      EXPECT_EQ(std::string(error.what()),
                "[Vocabulary] a text whose byte 2 is not UTF-8, expected UTF-8 (the level byte "
                "takes any)");
    }
  }
  EXPECT_THROW(Vocabulary(TextLevel::kByte, {3, 3}), ArgumentError);
  EXPECT_THROW(Vocabulary(TextLevel::kByte, {256}), ArgumentError);
}

TEST(LoadText, HoldsOutTheLastLines) {
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes += "line " + std::to_string(i + 100) + "\n";
  const TextFile file(bytes);
  const Text text = load_text({file.path(), "", TextLevel::kByte, 0.05});
  EXPECT_EQ(text.valid, "line 195\nline 196\nline 197\nline 198\nline 199\n");
  EXPECT_EQ(text.train + text.valid, bytes);
}

TEST(LoadText, TwoLinesAreEnough) {
  const TextFile file("first line, which is long\nx");
  const Text text = load_text({file.path(), "", TextLevel::kByte, 0.05});
  EXPECT_EQ(text.train, "first line, which is long\n");
  EXPECT_EQ(text.valid, "x");
}

TEST(LoadText, OneLineIsEnoughWithAFileToValidateOn) {
  const TextFile file("one line");
  EXPECT_EQ(load_text({file.path(), file.path(), TextLevel::kByte, 0.05}).train, "one line");
}

TEST(LoadText, RefusesWhatIsNoText) {
  EXPECT_EQ(load_error(""), "[load_text] 'F' is empty, expected a text");
  const std::string one_line =
      "[load_text] 'F' has 1 line, expected at least 2, one of them to validate on (or a file for "
      "that)";
  EXPECT_EQ(load_error("one line\n"), one_line);
  EXPECT_EQ(load_error("one line"), one_line);
  EXPECT_EQ(load_error("x"), one_line);
  EXPECT_EQ(load_error("a\xff\nb\n", TextLevel::kChar),
            "[Vocabulary] a text whose byte 1 is not UTF-8, expected UTF-8 (the level byte takes "
            "any) in 'F'");
  EXPECT_THROW(load_text({"no such file"}), IoError);
}

TEST(TextStreams, CutsParallelStreamsIntoWindows) {
  std::vector<std::int32_t> ids(24);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i);
  const TextStreams streams(ids, 3, 4);  // 7 inputs a stream: windows of 4 and 3
  ASSERT_EQ(streams.windows(), 2);
  EXPECT_EQ(streams.symbols(0), 12);
  EXPECT_EQ(streams.symbols(1), 9);
  const Window first = streams.window(0), second = streams.window(1);
  EXPECT_TRUE(first.fresh);
  EXPECT_FALSE(second.fresh);
  EXPECT_EQ(first.x.shape(), (Shape{4, 3}));
  EXPECT_EQ(second.x.shape(), (Shape{3, 3}));
  for (std::size_t t = 0; t < 3; ++t) {
    for (std::size_t b = 0; b < 3; ++b) {
      EXPECT_EQ(second.x.as<std::int32_t>()[t * 3 + b], static_cast<int>(b * 7 + 4 + t));
      EXPECT_EQ(second.y.as<std::int32_t>()[t * 3 + b], static_cast<int>(b * 7 + 5 + t));
    }
  }
  EXPECT_THROW(streams.window(2), ArgumentError);
}

TEST(TextStreams, RefusesATextThatIsTooShort) {
  try {
    TextStreams(std::vector<std::int32_t>(5), 5, 10);
    ADD_FAILURE();
  } catch (const ArgumentError& error) {
    EXPECT_EQ(std::string(error.what()),
              "[TextStreams] a text of 5 symbols, expected at least 6 for 5 parallel streams");
  }
  EXPECT_EQ(TextStreams(std::vector<std::int32_t>(2), 1, 10).windows(), 1);
  EXPECT_THROW(TextStreams(std::vector<std::int32_t>(9), 0, 1), ArgumentError);
}

}  // namespace
}  // namespace openrnn::train
