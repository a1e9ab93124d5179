// The object graph: what is written is read, and every index of an untrusted graph is checked.
#include "formats/objects/object_graph.h"

#include "formats/temp_folder.h"

namespace openrnn::formats {
namespace {

ObjectGraph small_graph() {
  ObjectGraph graph;
  graph.nodes.resize(4);
  graph.nodes[0].children = {{1, "net"}, {2, "opt"}};
  graph.nodes[0].has_values = true;
  graph.nodes[1].children = {{0, "up"}};  // a circle
  graph.nodes[1].attributes = {{"VARIABLE_VALUE", "net/kernel", "net/.ATTRIBUTES/VARIABLE_VALUE"},
                               {"OTHER", "", ""}};
  graph.nodes[2].slots = {{1, "m", 3}};
  graph.nodes[3].attributes = {{"OTHER", "", "k"}};
  return graph;
}

TEST(ObjectGraph, ComesBack) {
  const ObjectGraph graph = decode_object_graph("f", encode_object_graph(small_graph()));
  ASSERT_EQ(graph.nodes.size(), 4U);
  ASSERT_NE(graph.nodes[0].child("opt"), nullptr);
  EXPECT_EQ(graph.nodes[0].child("opt")->node, 2U);
  EXPECT_EQ(graph.nodes[0].child("no"), nullptr);
  EXPECT_TRUE(graph.nodes[0].has_values);
  EXPECT_FALSE(graph.nodes[1].has_values);
  EXPECT_EQ(graph.nodes[1].children[0].node, 0U);
  EXPECT_EQ(*graph.nodes[1].value_key(), "net/.ATTRIBUTES/VARIABLE_VALUE");
  EXPECT_EQ(graph.nodes[1].attributes[0].full_name, "net/kernel");
  EXPECT_EQ(graph.nodes[3].value_key(), nullptr);
  ASSERT_EQ(graph.nodes[2].slots.size(), 1U);
  EXPECT_EQ(graph.nodes[2].slots[0].original, 1U);
  EXPECT_EQ(graph.nodes[2].slots[0].name, "m");
  EXPECT_EQ(graph.nodes[2].slots[0].node, 3U);
}

// By hand: a root with the child x, which has a value.
TEST(ObjectGraph, TheBytesOfTensorFlow) {
  ObjectGraph graph;
  graph.nodes.resize(2);
  graph.nodes[0].children = {{1, "x"}};
  graph.nodes[0].has_values = true;
  graph.nodes[1].attributes = {{"V", "f", "k"}};
  graph.nodes[1].has_values = true;
  EXPECT_EQ(encode_object_graph(graph),
            "\x0a\x0b\x0a\x05\x08\x01\x12\x01x\x2a\x02\x08\x01"
            "\x0a\x0f\x12\x09\x0a\x01V\x12\x01"
            "f\x1a\x01k\x2a\x02\x08\x01");
}

TEST(ObjectGraph, ReadsOverWhatItDoesNotKnow) {
  const std::string saver = "\x22\x03zzz";                             // a node's registered saver
  const std::string child = std::string("\x0a\x07\x1dzzzz\x12\0", 9);  // with a fixed32 of its own
  const std::string inner = saver + child;
  const std::string bytes =
      "\x4a\x01z\x0a" + std::string(1, static_cast<char>(inner.size())) + inner;
  EXPECT_EQ(decode_object_graph("f", bytes).nodes.size(), 1U);
}

TEST(ObjectGraph, EveryIndexIsChecked) {
  ObjectGraph graph = small_graph();
  graph.nodes[0].children[1].node = 4;
  EXPECT_MESSAGE(FormatError, decode_object_graph("f", encode_object_graph(graph)),
                 "the object graph names the object 4, and has 4");
  graph = small_graph();
  graph.nodes[2].slots[0].original = 9;
  EXPECT_MESSAGE(FormatError, decode_object_graph("f", encode_object_graph(graph)), "object 9");
  graph = small_graph();
  graph.nodes[2].slots[0].node = 7;
  EXPECT_MESSAGE(FormatError, decode_object_graph("f", encode_object_graph(graph)), "object 7");
  // node_id: -1, ten bytes.
  const std::string negative = "\x0a\x0d\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
  EXPECT_MESSAGE(FormatError, decode_object_graph("f", negative), "an object has the number -1");
}

TEST(ObjectGraph, BrokenBytes) {
  EXPECT_MESSAGE(FormatError, decode_object_graph("f", ""), "the object graph has no objects");
  const std::string bytes = encode_object_graph(small_graph());
  int refused = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    try {
      decode_object_graph("f", bytes.substr(0, size));
    } catch (const FormatError& error) {
      EXPECT_EQ(error.path(), "f");
      ++refused;
    }
  }
  // Every cut loses a node that is named.
  EXPECT_EQ(refused, static_cast<int>(bytes.size()));
  ObjectGraph twice = small_graph();
  twice.nodes[0].children[1].name = "net";
  EXPECT_MESSAGE(FormatError, decode_object_graph("f", encode_object_graph(twice)),
                 "the object 0 has two children 'net'");
}

// has_checkpoint_values: a flag in a message of its own, which may say no, or nothing.
TEST(ObjectGraph, WhetherThereAreValues) {
  using namespace std::string_literals;
  const std::pair<std::string, bool> nodes[] = {
      {"\x0a\x00"s, false},
      {"\x0a\x02\x2a\x00"s, false},
      {"\x0a\x04\x2a\x02\x08\x00"s, false},
      {"\x0a\x04\x2a\x02\x08\x01"s, true},
      {"\x0a\x04\x2a\x02\x10\x01"s, false},
      {"\x0a\x06\x2a\x04\x08\x01\x10\x00"s, true},
      {"\x0a\x04\x22\x02\x08\x01"s, false},
  };
  for (const auto& [bytes, has_values] : nodes) {
    const ObjectGraph graph = decode_object_graph("f", bytes);
    ASSERT_EQ(graph.nodes.size(), 1U);
    EXPECT_EQ(graph.nodes[0].has_values, has_values) << bytes;
  }
}

// Every member of a node comes back, with numbers of one and of two bytes.
TEST(ObjectGraph, EveryMember) {
  ObjectGraph graph;
  graph.nodes.resize(301);
  ObjectNode& root = graph.nodes[0];
  root.children = {{1, "a"}, {300, "b"}};
  root.attributes = {{"n", "f", "k"}, {"VARIABLE_VALUE", "g", "l"}, {"VARIABLE_VALUE", "h", "m"}};
  root.slots = {{2, "s", 1}, {299, "t", 300}};
  const ObjectGraph again = decode_object_graph("f", encode_object_graph(graph));
  ASSERT_EQ(again.nodes.size(), 301U);
  const ObjectNode& found = again.nodes[0];
  ASSERT_EQ(found.children.size(), 2U);
  ASSERT_EQ(found.attributes.size(), 3U);
  ASSERT_EQ(found.slots.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(found.children[i].node, root.children[i].node);
    EXPECT_EQ(found.children[i].name, root.children[i].name);
    EXPECT_EQ(found.child(root.children[i].name), &found.children[i]);
    EXPECT_EQ(found.slots[i].original, root.slots[i].original);
    EXPECT_EQ(found.slots[i].name, root.slots[i].name);
    EXPECT_EQ(found.slots[i].node, root.slots[i].node);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found.attributes[i].name, root.attributes[i].name);
    EXPECT_EQ(found.attributes[i].full_name, root.attributes[i].full_name);
    EXPECT_EQ(found.attributes[i].key, root.attributes[i].key);
  }
  // The first of two.
  EXPECT_EQ(*found.value_key(), "l");
  EXPECT_FALSE(found.has_values);
}

// Each of its messages may have fields of later versions, in front and behind.
TEST(ObjectGraph, LaterFields) {
  using namespace std::string_literals;
  const std::string more = "\x7a\x01z\x70\x05"s;
  const auto field = [](int tag, const std::string& bytes) {
    return std::string(1, static_cast<char>(tag << 3 | 2)) + static_cast<char>(bytes.size()) +
           bytes;
  };
  const std::string node = more + field(1, more + "\x08\x01\x12\x01x" + more) +
                           field(2, more +
                                        "\x0a\x01V\x12\x01"
                                        "f\x1a\x01k" +
                                        more) +
                           field(3, more + "\x08\x01\x12\x01s\x18\x01" + more) +
                           field(5, more + "\x08\x01" + more) + more;
  const ObjectGraph graph = decode_object_graph("f", more + field(1, node) + field(1, "") + more);
  ASSERT_EQ(graph.nodes.size(), 2U);
  const ObjectNode& found = graph.nodes[0];
  ASSERT_NE(found.child("x"), nullptr);
  EXPECT_EQ(found.child("x")->node, 1U);
  EXPECT_EQ(found.attributes.at(0).name + found.attributes[0].full_name + found.attributes[0].key,
            "Vfk");
  EXPECT_EQ(found.slots.at(0).original, 1U);
  EXPECT_EQ(found.slots[0].name, "s");
  EXPECT_EQ(found.slots[0].node, 1U);
  EXPECT_TRUE(found.has_values);
}

}  // namespace
}  // namespace openrnn::formats
