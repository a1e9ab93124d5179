// HDF5 files as the library can write them and h5py seldom does: each version, flag and limit.
#include <gtest/gtest.h>

#include <functional>

#include "formats/hdf5/hdf5_text.h"

namespace openrnn::formats {
namespace {

using namespace hdf5_text;

// The values of the dataset 'd', or the error.
std::vector<float> floats_of(const std::string& bytes) {
  const Written file(bytes);
  const Array array = ModelFile(file.path()).read("d");
  const auto values = array.as<float>();
  return {values.begin(), values.end()};
}

const std::string kOneTwo = le(0x3f800000, 4) + le(0x40000000, 4);

// A root with 'd' of 1, 2.
std::string simple(std::uint8_t version = 2, std::uint64_t base = 0, std::int64_t more = 0) {
  File file;
  const std::uint64_t data = file.add(kOneTwo);
  const std::uint64_t dataset =
      file.add(object({{3, float32()}, {1, space({2})}, contiguous(data, 8)}));
  const std::uint64_t root = file.add(object({link_info(), link("d", dataset)}));
  return file.finish(root, version, base, more);
}

TEST(Hdf5Structure, Superblocks) {
  for (const std::uint8_t version : {0, 1, 2, 3}) {
    EXPECT_EQ(floats_of(simple(version)), (std::vector<float>{1, 2})) << int{version};
    expect_unreadable(simple(version, 1), "the addresses begin at 1, expected 0");
    expect_unreadable(simple(version, 0, 1), "the file ends at byte");
    // A file may be longer than it says.
    EXPECT_EQ(floats_of(simple(version, 0, -1)), (std::vector<float>{1, 2})) << int{version};
  }
  expect_unreadable(simple(4), "the superblock has version 4, expected at most 3");
  std::string lengths = simple(0);
  lengths[14] = 4;
  expect_unreadable(lengths, "offsets and lengths have 8 and 4 bytes");
}

TEST(Hdf5Structure, FlagsOfAnObjectHeader) {
  const std::string one = le(1, 1);
  for (unsigned flags = 0; flags < 0x40; ++flags) {
    const Written file(with_root({}, {attribute("a", integer(1, false), space({}), one)},
                                 static_cast<std::uint8_t>(flags)));
    const ModelFile model(file.path());
    ASSERT_EQ(model.values().size(), 1U) << flags;
    EXPECT_EQ(model.values()[0].value, PlainValue(std::int64_t{1})) << flags;
  }
}

TEST(Hdf5Structure, MessagesOfAnObjectHeader) {
  const Text one = attribute("a", integer(1, false), space({}), le(1, 1));
  Text shared = one;
  shared.flags = 2;
  expect_unreadable(with_root({}, {shared}), "message 12 of an object is shared with others");
  // A type that nobody reads may be shared; a flag that says something else is passed over.
  Text constant = one;
  constant.flags = 1;
  EXPECT_NO_THROW(ModelFile(Written(with_root({}, {constant, {5, "x", 2}})).path()));
  // A block that goes on elsewhere.
  for (const bool good : {true, false}) {
    File file;
    const std::string block = checked((good ? "OCHK" : "OCHX") + le(12, 1) +
                                      le(one.bytes.size(), 2) + le(0, 1) + one.bytes);
    const std::uint64_t at = file.add(block);
    const std::string bytes = with_root(file, {{16, le(at, 8) + le(block.size(), 8)}});
    if (good) {
      EXPECT_EQ(ModelFile(Written(bytes).path()).values().size(), 1U);
    } else {
      expect_unreadable(bytes, "does not go on here, expected 'OCHK'");
    }
  }
}

TEST(Hdf5Structure, Links) {
  File file;
  const std::uint64_t data = file.add(kOneTwo);
  const std::uint64_t dataset =
      file.add(object({{3, float32()}, {1, space({2})}, contiguous(data, 8)}));
  for (const unsigned fields : {0U, 4U, 8U, 16U, 28U}) {
    for (unsigned width = 0; width < 4; ++width) {
      const auto flags = static_cast<std::uint8_t>(fields | width);
      EXPECT_EQ(floats_of(with_root(file, {link("d", dataset, flags)})), (std::vector<float>{1, 2}))
          << int{flags};
    }
  }
  for (const std::uint8_t type : {1, 64}) {
    expect_unreadable(with_root(file, {link("d", dataset, 8, type)}), "'d' is a link to a name");
  }
  const std::pair<std::string, const char*> names[] = {
      {"", "is empty"},
      {"a/b", "holds a '/'"},
      {"a\n", "is not printable UTF-8"},
      {std::string(1025, 'n'), "is too long"},
  };
  for (const auto& [name, what] : names) {
    expect_unreadable(with_root(file, {link(name, dataset, 1)}), what);
  }
  expect_unreadable(with_root(file, {link("d", dataset), link("d", dataset)}), "is there twice");
  const Written longest(with_root(file, {link(std::string(1024, 'n'), dataset, 1)}));
  EXPECT_EQ(ModelFile(longest.path()).tensors()[0].name.size(), 1024U);
  // The largest index of creation, in front of the addresses.
  const std::uint64_t root = file.add(object(
      {{2, le(0, 1) + le(1, 1) + le(5, 8) + le(kNone, 8) + le(kNone, 8)}, link("d", dataset)}));
  EXPECT_EQ(floats_of(file.finish(root)), (std::vector<float>{1, 2}));
}

TEST(Hdf5Structure, Depth) {
  for (const std::size_t groups : {63U, 64U}) {
    File file;
    std::uint64_t inner = file.add(object({link_info()}));
    for (std::size_t i = 1; i < groups; ++i)
      inner = file.add(object({link_info(), link("g", inner)}));
    const std::string bytes = with_root(file, {link("g", inner)});
    if (groups == 63) {
      EXPECT_NO_THROW(ModelFile(Written(bytes).path()));
    } else {
      expect_unreadable(bytes, "deeper than 64 groups");
    }
  }
}

// With a '/' behind it, a group's path is as long as a name may be.
TEST(Hdf5Structure, LongestPaths) {
  for (const std::size_t size : {511U, 512U}) {
    File file;
    const std::uint64_t inner = file.add(object({link_info()}));
    const std::uint64_t outer =
        file.add(object({link_info(), link(std::string(511, 'b'), inner, 1)}));
    const std::string bytes = with_root(file, {link(std::string(size, 'a'), outer, 1)});
    if (size == 511) {
      EXPECT_NO_THROW(ModelFile(Written(bytes).path()));
    } else {
      expect_unreadable(bytes, "groups or longer than 1024 bytes, expected less");
    }
  }
}

TEST(Hdf5Structure, ARootThatIsNoGroup) {
  File file;
  const std::uint64_t data = file.add(kOneTwo);
  const std::uint64_t dataset =
      file.add(object({{3, float32()}, {1, space({2})}, contiguous(data, 8)}));
  expect_unreadable(file.finish(dataset), "an object is no group, expected one");
}

TEST(Hdf5Structure, KindsOfRoots) {
  const std::string one = le(1, 1);
  const auto kind_of = [](const std::string& bytes) {
    return ModelFile(Written(bytes).path()).kind();
  };
  for (const char* name : {"layer_names", "layer_names0", "model_config"}) {
    EXPECT_EQ(kind_of(with_root({}, {attribute(name, integer(1, false), space({}), one)})),
              FileKind::kKerasH5)
        << name;
  }
  const std::pair<const char*, FileKind> links[] = {
      {"model_weights", FileKind::kKerasH5},
      {"layers", FileKind::kKerasWeights},
      {"_layer_checkpoint_dependencies", FileKind::kKerasWeights},
      {"vars", FileKind::kKerasWeights},
      {"layer_names", FileKind::kHdf5},
  };
  for (const auto& [name, kind] : links) {
    File file;
    const std::uint64_t group = file.add(object({link_info()}));
    EXPECT_EQ(kind_of(with_root(file, {link(name, group)})), kind) << name;
  }
}

// ---- Attributes --------------------------------------------------------------------------------

using Doubles = std::vector<double>;
using Integers = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;

PlainValue value_of(const Text& one) {
  const Written file(with_root({}, {one}));
  const ModelFile model(file.path());
  EXPECT_EQ(model.values().size(), 1U);
  return model.values().empty() ? PlainValue() : model.values()[0].value;
}

TEST(Hdf5Attributes, EveryTypeOfANumber) {
  const std::uint64_t high = 0x7f, low = 0x80;
  for (const std::uint32_t bytes : {1U, 2U, 4U, 8U}) {
    const std::string ones(bytes, '\xff');
    const std::uint32_t unused = 64 - 8 * bytes;
    EXPECT_EQ(value_of(attribute("a", integer(bytes, true), space({}), ones)),
              PlainValue(std::int64_t{-1}));
    EXPECT_EQ(value_of(attribute("a", integer(bytes, false), space({}), ones)),
              PlainValue(static_cast<std::int64_t>(~std::uint64_t{0} >> unused)))
        << bytes;
    // The highest bit alone, and all bits but that.
    const std::string least = zeros(bytes - 1) + le(low, 1);
    EXPECT_EQ(value_of(attribute("a", integer(bytes, true), space({}), least)),
              PlainValue(INT64_MIN >> unused));
    const std::string most = std::string(bytes - 1, '\xff') + le(high, 1);
    EXPECT_EQ(value_of(attribute("a", integer(bytes, true), space({}), most)),
              PlainValue(INT64_MAX >> unused));
  }
  const std::tuple<std::string, std::string, double> cases[] = {
      {floating(2, 5, 10), le(0xc100, 2), -2.5},
      {floating(2, 8, 7), le(0xc020, 2), -2.5},
      {float32(), le(0xc0200000, 4), -2.5},
      {floating(8, 11, 52), le(0xc004000000000000, 8), -2.5},
  };
  for (const auto& [type, bytes, number] : cases) {
    EXPECT_EQ(value_of(attribute("a", type, space({}), bytes)), PlainValue(number));
    EXPECT_EQ(value_of(attribute("a", type, space({2}), bytes + bytes)),
              PlainValue(Doubles{number, number}));
    EXPECT_EQ(value_of(old_attribute("name", type, space({2}), bytes + bytes)),
              PlainValue(Doubles{number, number}));
  }
}

TEST(Hdf5Attributes, Enumerations) {
  const auto enumeration = [](const std::string& rest, std::uint32_t members = 2,
                              std::uint32_t bytes = 1) {
    return type_head(8, members, bytes) + integer(bytes, true) + rest;
  };
  using namespace std::string_literals;
  const std::string truth = "FALSE\0TRUE\0\0\1"s;
  EXPECT_EQ(value_of(attribute("a", enumeration(truth), space({}), le(1, 1))), PlainValue(true));
  EXPECT_EQ(value_of(attribute("a", enumeration(truth), space({}), le(0, 1))), PlainValue(false));
  EXPECT_EQ(value_of(attribute("a", enumeration(truth), space({2}), le(1, 2))),
            PlainValue(Integers{1, 0}));
  const std::string filled = "FALSE\0\0\0TRUE\0\0\0\0\0\1"s;
  EXPECT_EQ(value_of(attribute("a", enumeration(filled), space({}), le(1, 1))), PlainValue(true));
  // Others are numbers.
  const std::string others[] = {enumeration("FALSE\0TRUE\0\1\0"s), enumeration("NO\0YES\0\0\1"s),
                                enumeration("FALSE\0TRUE\0MAYBE\0\0\1\2"s, 3),
                                enumeration("FALSE\0TRUE\0\0\1\2\3"s, 3)};
  for (const std::string& other : others) {
    EXPECT_EQ(value_of(attribute("a", other, space({}), le(1, 1))), PlainValue(std::int64_t{1}));
  }
}

TEST(Hdf5Attributes, Texts) {
  using namespace std::string_literals;
  // Padding 0 ends at the first zero, 1 and 2 lose zeros and spaces at their ends.
  const std::tuple<std::uint32_t, std::string, std::string> cases[] = {
      {0, "ab\0d"s, "ab"},    {1, "a\0c\0"s, "a\0c"s}, {2, "ab  "s, "ab"},
      {2, "ab\0 "s, "ab\0"s}, {0, "abcd"s, "abcd"},    {1, "    "s, "    "},
  };
  for (const auto& [padding, stored, found] : cases) {
    EXPECT_EQ(value_of(attribute("a", text(4, padding), space({}), stored)), PlainValue(found));
  }
  EXPECT_EQ(value_of(attribute("a", text(2, 1), space({2}), "abcd")),
            PlainValue(Texts{"ab", "cd"}));
  EXPECT_EQ(value_of(attribute("a", text(2, 1), space({0}), "")), PlainValue(Texts{}));
  // Of version 1 with parts that fill 8 bytes, and with others.
  for (const std::string name : {"sixsix", "seven77", "eight888"}) {
    EXPECT_EQ(value_of(old_attribute(name, text(2, 1), space({}), "ab")),
              PlainValue(std::string("ab")));
  }
}

// One collection with the object 1, 'abc'; `index` and `bytes` are what the attribute asks for.
std::string with_heap(std::uint64_t bytes, std::uint64_t index = 1, std::uint8_t version = 1,
                      bool twice = false) {
  File file;
  const std::string one = le(1, 2) + le(1, 2) + zeros(4) + le(3, 8) + "abc" + zeros(5);
  const std::string objects = one + (twice ? one : "") + zeros(16);
  const std::uint64_t heap =
      file.add("GCOL" + le(version, 1) + zeros(3) + le(16 + objects.size(), 8) + objects);
  return with_root(file, {attribute("a", variable_text(), space({}),
                                    le(bytes, 4) + le(heap, 8) + le(index, 4))});
}

TEST(Hdf5Attributes, TextsOfTheHeap) {
  for (const std::uint64_t bytes : {0U, 1U, 2U, 3U}) {
    const Written file(with_heap(bytes));
    EXPECT_EQ(ModelFile(file.path()).values()[0].value,
              PlainValue(std::string("abc").substr(0, bytes)));
  }
  expect_unreadable(with_heap(4), "has a string of 4 bytes in an object of 3, expected no more");
  expect_unreadable(with_heap(3, 2), "object 2 of the global heap is not there");
  expect_unreadable(with_heap(3, 0), "object 0 of the global heap is not there");
  expect_unreadable(with_heap(3, 1, 2), "a collection of the global heap has version 2");
  expect_unreadable(with_heap(3, 1, 1, true), "has object 1 twice");
  // No bytes of a collection but its head, and of none.
  for (const std::uint64_t bytes : {15U, 16U}) {
    File file;
    const std::uint64_t heap = file.add("GCOL" + le(1, 1) + zeros(3) + le(bytes, 8));
    expect_unreadable(with_root(file, {attribute("a", variable_text(), space({}),
                                                 le(3, 4) + le(heap, 8) + le(1, 4))}),
                      bytes < 16 ? "has 15 bytes, expected more" : "is not there");
  }
}

TEST(Hdf5Attributes, WhatIsRefusedAndWhatIsLeftOut) {
  const Text one = attribute("a", integer(1, false), space({}), le(1, 1));
  const auto changed = [&](std::size_t at, char to) {
    Text other = one;
    other.bytes[at] = to;
    return with_root({}, {other});
  };
  expect_unreadable(changed(0, 0), "an attribute has version 0, expected 1 to 3");
  expect_unreadable(changed(0, 4), "an attribute has version 4, expected 1 to 3");
  for (const char flags : {'\1', '\2'}) {
    expect_unreadable(changed(1, flags), "the type or the shape of an attribute is shared");
  }
  expect_unreadable(with_root({}, {one, one}), "has the name 'a' of another");
  expect_unreadable(with_root({}, {attribute("", integer(1, false), space({}), "x")}),
                    "has the name '', expected a short one");
  expect_unreadable(with_root({}, {attribute("\n", integer(1, false), space({}), "x")}),
                    "expected a short one of printable UTF-8");
  for (const std::size_t size : {1024U, 1025U}) {
    const std::string bytes =
        with_root({}, {attribute(std::string(size, 'n'), integer(1, false), space({}), "x")});
    if (size == 1024) {
      EXPECT_NO_THROW(ModelFile(Written(bytes).path()));
    } else {
      expect_unreadable(bytes, "expected a short one");
    }
  }
  expect_unreadable(with_root({}, {attribute("a", integer(2, true, true), space({}), "xy")}),
                    "the attribute 'a' is big-endian int16, expected it little-endian");
  // A single byte has no order.
  EXPECT_EQ(value_of(attribute("a", integer(1, true, true), space({}), le(5, 1))),
            PlainValue(std::int64_t{5}));
  EXPECT_EQ(value_of(attribute("a", integer(2, true), space({2}), le(5, 4))),
            PlainValue(Integers{5, 0}));
  expect_unreadable(with_root({}, {attribute("a", integer(2, true), space({2}), "xyz")}),
                    "has elements of 2 bytes, more than its 3 bytes hold");
  // No elements at all is nothing; a type without values of ours is left out.
  EXPECT_EQ(value_of(attribute("a", float32(), le(2, 1) + zeros(2) + le(2, 1), "")), PlainValue());
  const std::string left_out[] = {integer(3, true),   type_head(6, 1, 4),       type_head(9, 0, 16),
                                  type_head(9, 1, 8), floating(4, 8, 23, 0x40), floating(4, 7, 24)};
  for (const std::string& type : left_out) {
    const Written file(with_root({}, {attribute("a", type, space({}), zeros(16))}));
    EXPECT_TRUE(ModelFile(file.path()).values().empty());
  }
}

}  // namespace
}  // namespace openrnn::formats
