// The stack machine of pickles: every opcode that it knows, every limit and every refusal.
#include "formats/torch/pickle.h"

#include <gtest/gtest.h>

#include "formats/model_file/pickle_text.h"
#include "formats/temp_folder.h"

namespace openrnn::formats {
namespace {

using namespace pickle_text;
using namespace std::string_view_literals;

constexpr std::uint64_t kOffset = 1000;

// A node as text: 'int -1', 'list [..]', 'dict {..}'.
std::string shown(const Pickle& pickle, PickleId id) {
  const PickleNode& node = pickle.node(id);
  std::string items;
  const auto add_items = [&] {
    pickle.each_item(node, [&](PickleId item) {
      items += (items.empty() ? "" : ", ") + shown(pickle, item);
      return true;
    });
    return items;
  };
  switch (node.kind) {
    case PickleKind::kNone:
      return "none";
    case PickleKind::kBool:
      return node.integer() ? "true" : "false";
    case PickleKind::kInt:
      return "int " + std::to_string(node.integer());
    case PickleKind::kBigInt:
      return "big " + std::to_string(pickle.text(node).size());
    case PickleKind::kFloat:
      return "float " + std::to_string(node.real());
    case PickleKind::kString:
      return "'" + std::string(pickle.text(node)) + "'";
    case PickleKind::kBytes:
      return "b'" + std::string(pickle.text(node)) + "'";
    case PickleKind::kList:
      return "[" + add_items() + "]";
    case PickleKind::kDict:
      return "{" + add_items() + "}";
    case PickleKind::kName:
      return "name";
    case PickleKind::kCall:
      return "call " + shown(pickle, node.second());
    case PickleKind::kObject:
      return "object " + shown(pickle, node.first());
    case PickleKind::kPersistent:
      return "persistent " + shown(pickle, node.first());
  }
  return "";
}

std::string parsed(std::string_view bytes) {
  const std::optional<Pickle> pickle = parse_pickle("m", kOffset, bytes);
  if (!pickle) return "cut";
  EXPECT_EQ(pickle->bytes.size(), bytes.size());
  return shown(*pickle, pickle->root);
}

using Cases = std::vector<std::pair<std::string, std::string>>;

void expect_values(const Cases& cases) {
  for (const auto& [bytes, expected] : cases) {
    EXPECT_EQ(parsed(whole(bytes)), expected) << bytes;
    EXPECT_EQ(parsed(bytes + "."), expected) << bytes;
    // What ends too early is no error yet: more of the file may follow.
    for (std::size_t size = 0; size <= bytes.size(); ++size) {
      EXPECT_FALSE(parse_pickle("m", 0, std::string_view(bytes).substr(0, size))) << bytes;
    }
  }
}

TEST(PickleOpcodes, PlainValues) {
  expect_values({
      {"N", "none"},
      {"\x88", "true"},
      {"\x89", "false"},
      {"K\xff", "int 255"},
      {"M\xfe\xff", "int 65534"},
      {"J\xfe\xff\xff\xff", "int -2"},
      {std::string("J\0\0\0\x80"sv), "int -2147483648"},
      {std::string("\x8a\0"sv), "int 0"},
      {"\x8a\x01\x80", "int -128"},
      {"\x8a\x02\xff\x7f", "int 32767"},
      {integer(-5), "int -5"},
      {std::string("\x8a\x09\1\2\3\4\5\6\7\x08\x09"sv), "big 9"},
      {std::string("\x8b\1\0\0\0\x07"sv), "int 7"},
      {std::string("G\x3f\xf8\0\0\0\0\0\0"sv), "float 1.500000"},
      {text("ab"), "'ab'"},
      {std::string("T\2\0\0\0cd"sv), "'cd'"},
      {std::string("U\2ef"sv), "'ef'"},
      {std::string("\x8c\2gh"sv), "'gh'"},
      {std::string("\x8d\2\0\0\0\0\0\0\0ij"sv), "'ij'"},
      {std::string("B\2\0\0\0kl"sv), "b'kl'"},
      {std::string("C\2mn"sv), "b'mn'"},
      {std::string("\x8e\2\0\0\0\0\0\0\0op"sv), "b'op'"},
      {std::string("\x95\1\0\0\0\0\0\0\0K\1"sv), "int 1"},
  });
}

TEST(PickleOpcodes, ContainersAndCalls) {
  const std::string tensor = name("torch._utils", "_rebuild_tensor_v2");
  const std::string klass = name("__torch__.m", "M");
  expect_values({
      {"]", "[]"},
      {")", "[]"},
      {"\x8f", "[]"},
      {"}", "{}"},
      {"K\1\x85", "[int 1]"},
      {"K\1K\2\x86", "[int 1, int 2]"},
      {"K\1K\2K\3\x87", "[int 1, int 2, int 3]"},
      {"(K\1K\2K\3K\4t", "[int 1, int 2, int 3, int 4]"},
      {"(K\1l", "[int 1]"},
      {"(K\1\x91", "[int 1]"},
      {"(K\1Nd", "{int 1, none}"},
      {"]K\1aK\2a", "[int 1, int 2]"},
      {"](K\1K\2e", "[int 1, int 2]"},
      {"\x8f(K\1\x90", "[int 1]"},
      {"}K\1Ns", "{int 1, none}"},
      {"}(K\1NK\2Nu", "{int 1, none, int 2, none}"},
      {"K\1N0", "int 1"},
      {"K\1(NN1", "int 1"},
      {"K\1"
       "2\x86",
       "[int 1, int 1]"},
      {std::string("K\1K\2q\0"
                   "0K\3q\1"
                   "0h\0h\1\x87"sv),
       "[int 1, int 2, int 3]"},
      {std::string("K\1r\3\0\0\0j\3\0\0\0\x86"sv), "[int 1, int 1]"},
      {std::string("K\1\x94K\2\x94h\0h\1\x86\x87"sv), "[int 1, int 2, [int 1, int 2]]"},
      {tensor, "name"},
      {text("collections") + text("OrderedDict") + "\x93", "name"},
      {call(tensor, {"K\1"}), "call [int 1]"},
      {persistent(text("p")), "persistent 'p'"},
      {call(name("torch", "Size"), {tuple({"K\2"})}), "[int 2]"},
      {call(name("collections", "OrderedDict"), {}), "{}"},
      {call(name("collections", "OrderedDict"), {list({list({"K\1", "K\2"})})}), "{int 1, int 2}"},
      {name("collections", "OrderedDict") + ")\x81", "{}"},
      {klass + ")\x81", "object none"},
      {klass + ")\x81}b", "object {}"},
      {"}K\1b", "{}"},
  });
}

TEST(PickleOpcodes, TheBytesEndWithThePickle) {
  const std::optional<Pickle> pickle = parse_pickle("m", 5, "\x80\x02K\1.rest");
  ASSERT_TRUE(pickle);
  EXPECT_EQ(pickle->bytes, "\x80\x02K\1.");
  EXPECT_EQ(pickle->offset, 5u);
  EXPECT_EQ(pickle->path, "m");
  const std::optional<Pickle> three = parse_pickle("m", 0, "(K\1K\2K\3t.");
  ASSERT_TRUE(three);
  EXPECT_EQ(three->items(three->node(three->root), 2).size(), 2u);
  EXPECT_EQ(three->items(three->node(three->root), 4).size(), 3u);
  EXPECT_EQ(three->node(three->root).at, 7u);
}

TEST(PickleOpcodes, Protocols) {
  for (const char version : {'\2', '\3', '\4', '\5'}) {
    EXPECT_EQ(parsed(std::string("\x80") + version + "N."), "none");
  }
  for (const char version : {'\1', '\6'}) {
    EXPECT_MESSAGE(FormatError, parsed(std::string("N\x80") + version + "."),
                   "m @ 1001] the pickle is of protocol " + std::to_string(int{version}) +
                       ", expected 2 to 5");
  }
}

TEST(PickleOpcodes, Errors) {
  const std::string od = name("collections", "OrderedDict"), size = name("torch", "Size");
  const std::pair<std::string, std::string> cases[] = {
      {"NI.", "@ 1001] the pickle has opcode 0x49, expected one"},
      {"N\xfa.", "the pickle has opcode 0xfa, expected"},
      {".", "@ 1000] the pickle ends with 0 values, expected one"},
      {"NN.", "@ 1002] the pickle ends with 2 values, expected one"},
      {"N(.", "the pickle ends with 1 values, expected one"},
      {"0.", "takes a value from an empty stack"},
      {"N(0.", "@ 1002] the pickle takes a value from an empty stack"},
      {"N\x86.", "takes a value from an empty stack"},
      {"t.", "the pickle has no mark, expected one"},
      {"1.", "the pickle has no mark, expected one"},
      {"}Na.", "the pickle adds to what is no list, expected one"},
      {"]NNs.", "the pickle adds to what is no dictionary, expected one"},
      {"}(Ne.", "the pickle adds to what is no list"},
      {"](NNu.", "the pickle adds to what is no dictionary"},
      {"](Na.", "the pickle adds to what is no list"},
      {"(NNu.", "the pickle adds to what is no dictionary"},
      {"(Nd.", "a dictionary has a key without a value, expected pairs"},
      {"}(NNNu.", "a dictionary has a key without a value"},
      {std::string("q\0."sv), "the pickle remembers a value of an empty stack"},
      {std::string("h\0."sv), "the memo has no entry 0, expected one"},
      {std::string("Nq\1h\0."sv), "@ 1003] the memo has no entry 0, expected one"},
      {std::string("Nq\1h\2."sv), "the memo has no entry 2, expected one"},
      {std::string("Nr\7\0\0\0."sv), "the memo has 7 entries, expected fewer than bytes"},
      {"NN\x93.", "names something by what is no string, expected strings"},
      {text("torch") + "N\x93.", "names something by what is no string"},
      {"N" + text("torch") + "\x93.", "names something by what is no string"},
      {"cos\nsystem\n.", "the pickle names os.system, expected only names of tensors"},
      {"N)R.", "the pickle calls something without a name, expected a name and a tuple"},
      {od + "NR.", "the pickle calls something without a name"},
      {size + ")R.", "a call has no arguments, expected one"},
      {call(od, {"N"}) + ".", "the pickle makes something by a call"},
      {call(od, {list({"N"})}) + ".", "an item is no pair, expected pairs"},
      {call(od, {list({list({"N"})})}) + ".", "an item is no pair, expected pairs"},
      {call(od, {list({list({"N", "N", "N"})})}) + ".", "an item is no pair, expected pairs"},
      {call(name("torch", "FloatStorage"), {}) + ".", "the pickle makes something by a call"},
      {call(name("torch", "UntypedStorage"), {}) + ".", "the pickle makes something by a call"},
      {call(name("torch", "float32"), {}) + ".", "the pickle makes something by a call"},
      {call(name("__torch__", "M"), {}) + ".", "the pickle makes something by a call"},
      {"N)\x81.", "the pickle makes an object of no known class"},
      {size + ")\x81.", "the pickle makes an object of no known class"},
      {"Nb.", "the pickle sets the state of nothing, expected an object"},
      {"N(Nb.", "the pickle sets the state of nothing"},
      {"NNb.", "the pickle sets the state of what is no object, expected a dictionary"},
  };
  for (const auto& [bytes, expected] : cases) {
    EXPECT_MESSAGE(FormatError, parsed(bytes), expected);
    EXPECT_MESSAGE(FormatError, parsed(bytes), "[m @ 1");
  }
}

// The memo's index lies below the number of bytes; values have half of the bytes and 64 more.
TEST(PickleOpcodes, LimitsOfMemory) {
  EXPECT_EQ(parsed(std::string("Nr\6\0\0\0."sv)), "none");
  const auto lists = [](std::size_t count) { return "(" + std::string(count, ')') + "t."; };
  EXPECT_NE(parsed(lists(125)), "cut");
  EXPECT_MESSAGE(FormatError, parsed(lists(126)),
                 "the pickle has more values than bytes for them, expected fewer");
}

}  // namespace
}  // namespace openrnn::formats
