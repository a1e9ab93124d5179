// JSON as the core reads it: values one by one, and what is none.
#include "base/text/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace openrnn {
namespace {

const std::string kPath = "file";

std::string string_of(std::string_view text) {
  JsonScanner json(kPath, 0, text);
  std::string out = json.string();
  json.end();
  return out;
}

std::variant<std::int64_t, double> number_of(std::string_view text) {
  JsonScanner json(kPath, 0, text);
  const auto out = json.number();
  json.end();
  return out;
}

std::string error_of(std::string_view text) {
  JsonScanner json(kPath, 100, text);
  try {
    json.object([&](const std::string&) {
      switch (json.kind()) {
        case '"':
          json.string();
          break;
        case '[':
          json.array([&] { json.size(); });
          break;
        case 'n':
          json.null();
          break;
        case '0':
          json.number();
          break;
        default:
          json.boolean();
      }
    });
    json.end();
  } catch (const FormatError& error) {
    return error.what();
  }
  return "";
}

TEST(JsonScanner, TakesEveryKindOfValue) {
  JsonScanner json(kPath, 0, " {\"a\" : [ 1,2 ] , \"b\":true,\"c\":null,\"d\":-1.5e1,\"e\":[]}\n");
  std::string keys;
  std::vector<std::uint64_t> sizes;
  json.object([&](const std::string& key) {
    keys += key;
    if (key == "a" || key == "e") {
      EXPECT_EQ(json.kind(), '[');
      json.array([&] { sizes.push_back(json.size()); });
    } else if (key == "b") {
      EXPECT_TRUE(json.boolean());
    } else if (key == "c") {
      json.null();
    } else {
      EXPECT_EQ(json.kind(), '0');
      EXPECT_EQ(std::get<double>(json.number()), -15.0);
    }
  });
  json.end();
  EXPECT_EQ(keys, "abcde");
  EXPECT_EQ(sizes, (std::vector<std::uint64_t>{1, 2}));
}

TEST(JsonScanner, Strings) {
  EXPECT_EQ(string_of(R"("a\"\\\/\b\f\n\r\t")"), "a\"\\/\b\f\n\r\t");
  EXPECT_EQ(string_of(R"("\u00e4\u20ac\ud83d\ude00")"), "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(string_of(R"("\ud800\udc00\udbff\udfff")"), "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
  EXPECT_EQ(string_of(R"("\ud7ff\ue000")"), "\xed\x9f\xbf\xee\x80\x80");
  for (const std::string text :
       {"plain", "quote \" and \\", "line\nand\ttab", "\x01", "\x1f", "\xc3\xa4"}) {
    EXPECT_EQ(string_of(json_quoted(text)), text);
  }
  EXPECT_EQ(json_quoted("\x1f "), R"("\u001f ")");
  for (const char* bad : {"\"\x1f\"", R"("\ud800")", R"("\ud800\u0041")", R"("\udc00")",
                          R"("\udfff")", R"("\ud800\udbff")", R"("\ud800\ue000")", R"("\u12g4")",
                          R"("\u12")", R"("\x")", "\"a", "\"\n\"", "\"\xff\"", "a", "\"\\"}) {
    EXPECT_THROW(string_of(bad), FormatError) << bad;
  }
}

TEST(JsonScanner, Numbers) {
  EXPECT_EQ(std::get<std::int64_t>(number_of("-9223372036854775808")), INT64_MIN);
  EXPECT_EQ(std::get<double>(number_of("9223372036854775808")), 9223372036854775808.0);
  EXPECT_EQ(std::get<double>(number_of("1.0")), 1.0);
  for (const double value : {0.1, -1e-300, 1.0, 1e22, 5e-324, -0.0}) {
    const auto read = number_of(json_number(value));
    ASSERT_TRUE(std::holds_alternative<double>(read)) << json_number(value);
    EXPECT_EQ(std::get<double>(read), value);
  }
  EXPECT_EQ(json_number(std::numeric_limits<double>::infinity()), "\"inf\"");
  for (const char* bad : {"01", "1.", ".5", "+1", "1e", "-", "", "1e999", "--1", "0x1", "1-5",
                          "1.5+2", "1.2.3", "1e5e5"}) {
    EXPECT_THROW(number_of(bad), FormatError) << bad;
  }
  for (const char* bad : {"-1", "1.0", "18446744073709551616", "1e3"}) {
    JsonScanner json(kPath, 0, bad);
    EXPECT_THROW(json.size(), FormatError) << bad;
  }
}

TEST(JsonScanner, EveryCutIsAnErrorThatSaysWhere) {
  const std::string whole = R"({"a": [1, 2], "b": "\u00e4", "c": null, "d": true, "e": -1.5})";
  EXPECT_EQ(error_of(whole), "");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string error = error_of(whole.substr(0, size));
    EXPECT_NE(error.find("file"), std::string::npos) << size;
  }
  EXPECT_NE(error_of(whole + "x").find(std::to_string(100 + whole.size())), std::string::npos);
  for (const char* bad :
       {R"({"a" 1})", R"({"a": 1,})", R"({"a": [1,]})", R"({,"a": 1})", R"({"a": 1 "b": 2})",
        R"({"a": tru})", R"({"a": [1 2]})", "[]", "{1: 2}"}) {
    EXPECT_NE(error_of(bad), "") << bad;
  }
}

using Take = void (*)(JsonScanner&);

std::string fault_of(const char* text, Take take) {
  JsonScanner json(kPath, 100, text);
  try {
    take(json);
  } catch (const FormatError& error) {
    return error.what();
  }
  return "nothing was wrong";
}

// The text of each fault, and its place: that of the value, with the offset of the text in its
// file.
TEST(JsonScanner, EveryFaultIsSaidWithItsPlace) {
  const Take string = [](JsonScanner& json) { json.string(); };
  const Take number = [](JsonScanner& json) { json.number(); };
  const Take size = [](JsonScanner& json) { json.size(); };
  const Take boolean = [](JsonScanner& json) { json.boolean(); };
  const Take null = [](JsonScanner& json) { json.null(); };
  const Take kind = [](JsonScanner& json) { json.kind(); };
  const Take end = [](JsonScanner& json) { json.end(); };
  const Take list = [](JsonScanner& json) { json.array([&] { json.size(); }); };
  const Take object = [](JsonScanner& json) {
    json.object([&](const std::string&) { json.size(); });
  };
  const std::string escape = "a string has an escape that JSON has not",
                    pair = "a string has half of a surrogate pair",
                    digits = "a string has \\u without four hexadecimal digits",
                    whole = ", expected a whole number from 0 to 2^64 - 1";
  const std::tuple<const char*, Take, int, std::string> cases[] = {
      {"", kind, 100, "the JSON ends, expected a value"},
      {"  ", string, 102, "the JSON ends, expected a string"},
      {" abcdefghijklmnopqrstuvwxyz", string, 101,
       "the JSON has 'abcdefghijklmnop', expected a string"},
      {"x", end, 100, "the JSON goes on with 'x', expected its end"},
      {"0123456789abcdefghij", end, 100,
       "the JSON goes on with '0123456789abcdef', expected its end"},
      {"[", object, 100, "the JSON has '[', expected an object"},
      {R"({"a" 1})", object, 105, "the JSON has '1}', expected a colon"},
      {R"({"a":1 "b":2})", object, 107, "the JSON has '\"b\":2}', expected a comma or }"},
      {R"({"a":1,})", object, 107, "the JSON has '}', expected a string"},
      {"{}", list, 100, "the JSON has '{}', expected an array"},
      {"[1 2]", list, 103, "the JSON has '2]', expected a comma or ]"},
      {"[1,]", list, 103, "the JSON has ']', expected a number"},
      {"[1", list, 102, "the JSON ends, expected a comma or ]"},
      {" tru", boolean, 101, "the JSON has 'tru', expected true"},
      {"0", boolean, 100, "the JSON has '0', expected false"},
      {"nul", null, 100, "the JSON has 'nul', expected null"},
      {" nil", null, 101, "the JSON has 'nil', expected null"},
      {"\n\r\t null x", [](JsonScanner& json) { json.null(), json.end(); }, 109,
       "the JSON goes on with 'x', expected its end"},
      {"012345678901234567", number, 100, "the JSON has '0123456789012345', expected a number"},
      {"01", number, 100, "the JSON has '01', expected a number"},
      {" 1e999", number, 101, "the number 1e999 has no double, expected one that has"},
      {" -1", size, 101, "the JSON has -1" + whole},
      {"1.0", size, 100, "the JSON has 1.0" + whole},
      {R"( "\u12g4")", string, 101, digits},
      {R"("\u12")", string, 100, digits},
      {R"("ab\x")", string, 100, escape},
      {"\"\\", string, 100, escape},
      {R"("\ud800")", string, 100, pair},
      {R"("\udc00")", string, 100, pair},
      {R"("\ud800\ud800")", string, 100, pair},
      {R"("\udc00\udc00")", string, 100, pair},
      {R"("\udc00\u0041")", string, 100, pair},
      {"  \"a\n\"", string, 102, "a string has a control character"},
      {"\"a", string, 100, "a string does not end"},
      {"\"\xff\"", string, 100, "a string is not UTF-8"},
  };
  for (const auto& [text, take, place, expected] : cases) {
    EXPECT_EQ(fault_of(text, take), "[file @ " + std::to_string(place) + "] " + expected) << text;
  }
}

// The text is a part of a longer one, whose next characters would go on with the value.
TEST(JsonScanner, WhatFollowsTheTextIsNotLookedAt) {
  const auto cut = [](const char* text, const char* behind, const auto& take) {
    const std::string all = std::string(text) + behind;
    JsonScanner json(kPath, 0, std::string_view(all).substr(0, std::string_view(text).size()));
    try {
      const std::string taken = take(json);
      json.end();
      return taken;
    } catch (const FormatError& error) {
      return std::string(error.what());
    }
  };
  const auto number = [](JsonScanner& json) {
    const auto value = json.number();
    if (const double* real = std::get_if<double>(&value)) return json_number(*real);
    return std::to_string(std::get<std::int64_t>(value));
  };
  EXPECT_EQ(cut("12", "34", number), "12");
  EXPECT_EQ(cut("1", ".5", number), "1");
  EXPECT_EQ(cut("1", "e5", number), "1");
  EXPECT_EQ(cut("1.5 ", " ", number), "1.5");
  EXPECT_EQ(cut("", "-1", number), "[file @ 0] the JSON has '', expected a number");
  EXPECT_EQ(cut("-", "1", number), "[file @ 0] the JSON has '-', expected a number");
  EXPECT_EQ(cut("1.", "5", number), "[file @ 0] the JSON has '1.', expected a number");
  EXPECT_EQ(cut("1e", "+5", number), "[file @ 0] the JSON has '1e', expected a number");
  EXPECT_EQ(cut("1e+", "5", number), "[file @ 0] the JSON has '1e+', expected a number");
  const auto list = [](JsonScanner& json) {
    json.array([&] { json.size(); });
    return std::string("a list");
  };
  EXPECT_EQ(cut("[1", "]", list), "[file @ 2] the JSON ends, expected a comma or ]");
  const auto string = [](JsonScanner& json) { return json.string(); };
  EXPECT_EQ(cut("\"a", "\"", string), "[file @ 0] a string does not end");
  EXPECT_EQ(cut("\"\\", "n\"", string), "[file @ 0] a string has an escape that JSON has not");
  EXPECT_EQ(cut("\"\\u12", "34\"", string),
            "[file @ 0] a string has \\u without four hexadecimal digits");
}

TEST(JsonScanner, EachDigitBeginsANumber) {
  for (const char c : std::string("-0123456789")) {
    EXPECT_EQ(JsonScanner(kPath, 0, std::string(1, c)).kind(), '0') << c;
  }
  for (const char c : std::string("/:+.tfn\"[{")) {
    EXPECT_EQ(JsonScanner(kPath, 0, std::string(1, c)).kind(), c);
  }
}

TEST(JsonScanner, WhatIsNoNumberIsWrittenInQuotes) {
  EXPECT_EQ(json_number(-std::numeric_limits<double>::infinity()), "\"-inf\"");
  EXPECT_EQ(json_number(std::numeric_limits<double>::quiet_NaN()), "\"nan\"");
  EXPECT_EQ(json_number(3.0), "3.0");
}

}  // namespace
}  // namespace openrnn
