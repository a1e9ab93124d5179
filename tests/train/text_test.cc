// Text as symbols, splits and streams.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "openrnn/train_data.h"
#include "support/expect_error.h"

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
    return std::string(what, 0, at).append("F").append(what, at + file.path().size());
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
  for (const std::int32_t id : {-1, 5}) {
    EXPECT_EQ(error_of<ArgumentError>([&] { vocabulary.decode(id); }),
              "[Vocabulary::decode] id " + std::to_string(id) + ", expected 0 to 4");
  }
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

// Of all Unicode scalar values, among which surrogates are not.
TEST(Vocabulary, TheOtherCharactersAreAllTheOthers) {
  const Vocabulary vocabulary = Vocabulary::of_text("ab\u20ac", TextLevel::kChar);
  EXPECT_DOUBLE_EQ(vocabulary.bits_of_unknown(), std::log2(0x110000 - 0x800 - 3.0));
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
  EXPECT_EQ(Vocabulary(TextLevel::kChar, {0xd7ff, 0xe000}).id_of(0xe000), 1);
}

TEST(LoadText, HoldsOutTheLastLines) {
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes += "line " + std::to_string(i + 100) + "\n";
  const TextFile file(bytes);
  const Text text = load_text({file.path(), "", TextLevel::kByte, 0.05});
  EXPECT_EQ(text.valid, "line 195\nline 196\nline 197\nline 198\nline 199\n");
  EXPECT_EQ(std::string(text.train) + std::string(text.valid), bytes);
}

TEST(LoadText, TwoLinesAreEnough) {
  const TextFile file("first line, which is long\nx");
  const Text text = load_text({file.path(), "", TextLevel::kByte, 0.05});
  EXPECT_EQ(text.train, "first line, which is long\n");
  EXPECT_EQ(text.valid, "x");
}

// A last line that is longer than the held-out part is held out as a whole.
TEST(LoadText, ALongLastLineIsHeldOut) {
  for (const std::string end : {"", "\n"}) {
    const std::string last = "the last line is longer than all others" + end;
    const TextFile file("first\nsecond\n" + last);
    for (const double fraction : {0.01, 0.2, 0.6}) {
      const Text text = load_text({file.path(), "", TextLevel::kByte, fraction});
      EXPECT_EQ(text.train, "first\nsecond\n") << fraction;
      EXPECT_EQ(text.valid, last) << fraction;
    }
  }
}

TEST(LoadText, OneLineIsEnoughWithAFileToValidateOn) {
  const TextFile file("one line");
  EXPECT_EQ(load_text({file.path(), file.path(), TextLevel::kByte, 0.05}).train, "one line");
}

TEST(Vocabulary, RefusesCodesThatAreNone) {
  using Codes = std::vector<std::int32_t>;
  const auto said = [](TextLevel level, const Codes& codes) {
    return error_of<ArgumentError>([&] { Vocabulary(level, codes); });
  };
  const auto refused = [](std::int32_t code, int place, const char* top) {
    return "[Vocabulary] code " + std::to_string(code) + " at place " + std::to_string(place) +
           ", expected ascending codes of 0 to " + top + " without surrogates";
  };
  EXPECT_EQ(said(TextLevel::kByte, {0, 255}), "");
  EXPECT_EQ(said(TextLevel::kByte, {3, 3}), refused(3, 1, "255"));
  EXPECT_EQ(said(TextLevel::kByte, {1, 3, 2}), refused(2, 2, "255"));
  EXPECT_EQ(said(TextLevel::kByte, {-1}), refused(-1, 0, "255"));
  EXPECT_EQ(said(TextLevel::kByte, {1, 256}), refused(256, 1, "255"));
  EXPECT_EQ(said(TextLevel::kChar, {0x10ffff}), "");
  for (const std::int32_t code : {0xd800, 0xdfff, 0x110000}) {
    EXPECT_EQ(said(TextLevel::kChar, {5, code}), refused(code, 1, "1114111"));
  }
}

TEST(Vocabulary, LevelsHaveNames) {
  for (const TextLevel level : {TextLevel::kByte, TextLevel::kChar}) {
    EXPECT_EQ(parse_text_level(to_string(level)), level);
  }
  EXPECT_EQ(to_string(TextLevel::kChar), "char");
  EXPECT_EQ(error_of<ArgumentError>([] { parse_text_level("word"); }),
            "[parse_text_level] 'word', expected byte or char");
}

TEST(LoadText, AFileToValidateOnIsItsOwn) {
  const TextFile file("the text to train on");
  const std::string path = file.path() + ".valid";
  const auto load = [&](const std::string& bytes, double fraction, std::uint64_t map_above) {
    std::ofstream(path, std::ios::binary) << bytes;
    return load_text({file.path(), path, TextLevel::kByte, fraction, map_above});
  };
  for (const std::uint64_t map_above : {0, 1000}) {
    // There is nothing to cut off, so that no fraction is wrong.
    const Text text = load("another one", -1.0, map_above);
    EXPECT_EQ(text.train, "the text to train on");
    EXPECT_EQ(text.valid, "another one");
    EXPECT_EQ(text.vocabulary.codes(),
              Vocabulary::of_text("the text to train on", TextLevel::kByte).codes());
  }
  EXPECT_EQ(error_of<ArgumentError>([&] { load("", 0.5, 1000); }),
            "[load_text] '" + path + "' is empty, expected a text");
  std::filesystem::remove(path);
}

TEST(LoadText, RefusesAFractionThatIsNone) {
  const TextFile file("one\ntwo\nthree\n");
  for (const auto& [fraction, text] :
       {std::pair{0.0, "0"}, {1.0, "1"}, {-0.25, "-0.25"}, {std::nan(""), "nan"}}) {
    const double given = fraction;
    EXPECT_EQ(error_of<ArgumentError>([&] {
                load_text({file.path(), "", TextLevel::kByte, given});
              }),
              std::string("[load_text] valid_fraction ") + text +
                  ", expected more than 0 and less than 1");
  }
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

std::vector<std::int32_t> counting(std::size_t size) {
  std::vector<std::int32_t> ids(size);
  for (std::size_t i = 0; i < size; ++i) ids[i] = static_cast<std::int32_t>(i);
  return ids;
}

TEST(LoadText, AMappedFileIsTheTextThatIsRead) {
  std::string bytes;
  for (int i = 0; i < 3000; ++i)
    bytes += "Zeile " + std::to_string(i * i) + ", \xc3\xa4\xe2\x82\xac\n";
  const TextFile file(bytes);
  for (const TextLevel level : {TextLevel::kByte, TextLevel::kChar}) {
    const Text read = load_text({.path = file.path(), .level = level});
    const Text mapped = load_text({.path = file.path(), .level = level, .map_above = 0});
    EXPECT_EQ(mapped.train, read.train);
    EXPECT_EQ(mapped.valid, read.valid);
    EXPECT_EQ(mapped.vocabulary.codes(), read.vocabulary.codes());
    const TextStreams::Options sizes{.batch = 3, .seq_len = 11, .seed = 4};
    const TextStreams by_ids(read.vocabulary.encode(read.train), sizes);
    const TextStreams by_text(TextSymbols(mapped.train, mapped.vocabulary), sizes);
    ASSERT_EQ(by_text.windows(), by_ids.windows());
    for (std::int64_t window = 0; window < by_ids.windows(); window += 7) {
      for (const std::int64_t epoch : {1, 0, 1}) {
        const Window a = by_ids.window({epoch, window}), b = by_text.window({epoch, window});
        ASSERT_EQ(std::memcmp(a.x.data(), b.x.data(), a.x.size_bytes()), 0);
        ASSERT_EQ(std::memcmp(a.y.data(), b.y.data(), a.y.size_bytes()), 0);
        ASSERT_EQ(a.fresh, b.fresh);
      }
    }
  }
}

TEST(TextSymbols, AreThoseOfTheWholeTextWhereverTheyBegin) {
  std::string text;
  RandomStream random(8);
  while (text.size() < 40000) {
    const std::array<const char*, 5> kinds{"a", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                                           "?"};
    text += kinds[random.below(5)];
  }
  for (const TextLevel level : {TextLevel::kByte, TextLevel::kChar}) {
    // '?' has no class of its own.
    const Vocabulary vocabulary =
        Vocabulary::of_text("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", level);
    const std::vector<std::int32_t> all = vocabulary.encode(text);
    const TextSymbols symbols(text, vocabulary);
    ASSERT_EQ(symbols.size(), static_cast<std::int64_t>(all.size()));
    for (int trial = 0; trial < 200; ++trial) {
      const auto first = static_cast<std::int64_t>(random.below(all.size()));
      const std::int64_t count = std::min<std::int64_t>(
          1 + static_cast<std::int64_t>(random.below(70)), symbols.size() - first);
      std::vector<std::int32_t> found(static_cast<std::size_t>(count));
      symbols.read(first, count, found.data());
      ASSERT_TRUE(std::equal(found.begin(), found.end(), all.begin() + first)) << first;
    }
  }
  EXPECT_EQ(error_of<ArgumentError>(
                [] { TextSymbols("a\u00e9\xff", Vocabulary::of_text("a", TextLevel::kChar)); }),
            "[Vocabulary] a text whose byte 3 is not UTF-8, expected UTF-8 (the level byte takes "
            "any)");
}

TEST(TextStreams, ReadsSegmentsInWindows) {
  // 58 inputs: 6 segments of 3 windows of 3, two groups of 3 streams, 4 inputs to spare.
  const TextStreams streams(counting(59), {.batch = 3, .seq_len = 3, .segment_windows = 3});
  ASSERT_EQ(streams.windows(), 6);
  EXPECT_EQ(streams.symbols(), 9);
  std::multiset<std::int32_t> seen;
  std::vector<std::int32_t> last(3);
  for (std::int64_t w = 0; w < 6; ++w) {
    const Window window = streams.window({1, w});
    EXPECT_EQ(window.fresh, w % 3 == 0);
    ASSERT_EQ(window.x.shape(), (Shape{3, 3}));
    for (std::size_t t = 0; t < 3; ++t) {
      for (std::size_t b = 0; b < 3; ++b) {
        const std::int32_t x = window.x.as<std::int32_t>()[t * 3 + b];
        EXPECT_EQ(window.y.as<std::int32_t>()[t * 3 + b], x + 1);
        if (t > 0 || !window.fresh) {
          EXPECT_EQ(x, last[b] + 1);  // the stream goes on
        }
        last[b] = x;
        seen.insert(x);
      }
    }
  }
  ASSERT_EQ(seen.size(), 54U);
  EXPECT_EQ(*seen.rbegin() - *seen.begin(), 53);  // every symbol once
  EXPECT_THROW(streams.window({0, 6}), ArgumentError);
}

TEST(TextStreams, TheOrderDependsOnSeedAndEpochAlone) {
  const auto first = [](std::uint64_t seed, std::int64_t epoch) {
    const TextStreams streams(counting(5000), {.batch = 4, .seq_len = 5, .seed = seed});
    const Window window = streams.window({epoch, 16});
    const auto x = window.x.as<std::int32_t>();
    return std::vector<std::int32_t>(x.begin(), x.end());
  };
  EXPECT_EQ(first(1, 2), first(1, 2));
  EXPECT_NE(first(1, 2), first(1, 3));
  EXPECT_NE(first(1, 2), first(2, 2));
}

TEST(TextStreams, EachEpochHasAnOrderOfSegmentsOfItsOwn) {
  // The places of all segments of an epoch, in its order and without its offset.
  const TextStreams streams(counting(5000), {.batch = 4, .seq_len = 5, .seed = 1});
  const auto order = [&](std::int64_t epoch) {
    std::vector<std::int32_t> starts;
    for (std::int64_t w = 0; w < streams.windows(); ++w) {
      const Window window = streams.window({epoch, w});
      if (!window.fresh) continue;
      const auto x = window.x.as<std::int32_t>();
      starts.insert(starts.end(), x.begin(), x.begin() + 4);
    }
    const std::int32_t first = *std::min_element(starts.begin(), starts.end());
    for (std::int32_t& start : starts) start -= first;
    return starts;
  };
  const std::vector<std::int32_t> one = order(1), two = order(2);
  EXPECT_GT(one.size(), 40U);
  EXPECT_FALSE(std::is_sorted(one.begin(), one.end()));
  EXPECT_FALSE(std::is_sorted(two.begin(), two.end()));
  EXPECT_NE(one, two);
}

// So that every symbol is read in some epoch: the first and the last offset come, too.
TEST(TextStreams, AnEpochBeginsAtAnyOfTheSymbolsToSpare) {
  for (const std::int32_t spare : {0, 1, 4}) {
    const TextStreams streams(counting(std::size_t{55} + static_cast<std::size_t>(spare)),
                              {.batch = 3, .seq_len = 3, .segment_windows = 3, .seed = 2});
    ASSERT_EQ(streams.windows(), 6);
    std::set<std::int32_t> offsets;
    for (std::int64_t epoch = 0; epoch < 200; ++epoch) {
      std::int32_t first = 100;
      for (const std::int64_t window : {0, 3}) {
        const Window read = streams.window({epoch, window});
        for (const std::int32_t x : read.x.as<std::int32_t>()) first = std::min(first, x);
      }
      offsets.insert(first);
    }
    EXPECT_EQ(offsets.size(), static_cast<std::size_t>(spare + 1));
    EXPECT_EQ(*offsets.begin(), 0);
    EXPECT_EQ(*offsets.rbegin(), spare);
  }
}

TEST(TextStreams, ShortTextsHaveShortWindows) {
  const TextStreams one(counting(2), {.batch = 1, .seq_len = 10});
  EXPECT_EQ(one.windows(), 1);
  EXPECT_EQ(one.symbols(), 1);
  const TextStreams some(counting(100), {.batch = 7, .seq_len = 10});
  EXPECT_EQ(some.windows(), 1);
  EXPECT_EQ(some.window({0, 0}).x.shape(), (Shape{10, 7}));
}

TEST(TextStreams, RefusesWindowsThatAreNone) {
  const TextStreams streams(counting(50), {.batch = 2, .seq_len = 5});
  const std::int64_t last = streams.windows() - 1;
  EXPECT_NO_THROW(streams.window({0, last}));
  for (const DataPosition& position : {DataPosition{-1, 0}, {0, -1}, {0, last + 1}}) {
    EXPECT_EQ(error_of<ArgumentError>([&] { streams.window(position); }),
              "[TextStreams::window] epoch " + std::to_string(position.epoch) + ", window " +
                  std::to_string(position.window) + ", expected windows 0 to " +
                  std::to_string(last));
  }
}

TEST(TextStreams, RefusesATextThatIsTooShort) {
  try {
    const TextStreams streams(counting(5), {.batch = 5, .seq_len = 10});
    ADD_FAILURE();
  } catch (const ArgumentError& error) {
    EXPECT_EQ(std::string(error.what()),
              "[TextStreams] a text of 5 symbols, expected at least 6 for 5 parallel streams");
  }
  for (const auto& [batch, seq_len, segment_windows] :
       {std::array<std::int64_t, 3>{0, 1, 2}, {1, 0, 2}, {1, 2, 0}}) {
    const TextStreams::Options options{
        .batch = batch, .seq_len = seq_len, .segment_windows = segment_windows};
    EXPECT_EQ(error_of<ArgumentError>([&] { TextStreams(counting(9), options); }),
              "[TextStreams] batch " + std::to_string(batch) + ", seq_len " +
                  std::to_string(seq_len) + " and segment_windows " +
                  std::to_string(segment_windows) + ", expected at least 1 of each");
  }
}

}  // namespace
}  // namespace openrnn::train
