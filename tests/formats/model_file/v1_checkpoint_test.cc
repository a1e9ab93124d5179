// What of a checkpoint of version 1 is read, what is passed over, and what is said of damage.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "formats/bundle/bundle_proto.h"
#include "formats/table/table.h"
#include "formats/temp_folder.h"
#include "formats/tensorflow/tensorflow.h"
#include "openrnn/formats_model_file.h"
#include "support/expect_error.h"

namespace openrnn::formats {
namespace {

using namespace std::string_literals;
using Table = std::map<std::string, std::string>;

// A message's field of bytes; all lengths are below 128.
std::string field(int tag, const std::string& bytes) {
  return std::string(1, static_cast<char>(tag << 3 | 2)) + static_cast<char>(bytes.size()) + bytes;
}
std::string number(int tag, int value) {
  return {static_cast<char>(tag << 3), static_cast<char>(value)};
}
std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// A field that no message has.
const std::string kOther = field(15, "other") + number(14, 3);

std::string shape_of(const std::vector<int>& sizes) {
  std::string shape;
  for (const int size : sizes) shape += field(2, number(1, size));
  return shape;
}
std::string slice_of(const TensorSlice& slice) {
  std::string out;
  for (const SliceExtent& extent : slice) {
    std::string one;
    if (extent.start) one += number(1, static_cast<int>(extent.start));
    if (extent.length >= 0) one += number(2, static_cast<int>(extent.length));
    out += field(1, one);
  }
  return out;
}
std::string listed(const std::string& name, const std::vector<int>& shape, int dtype,
                   const std::vector<TensorSlice>& slices) {
  std::string out = field(1, name) + field(2, shape_of(shape)) + number(3, dtype);
  for (const TensorSlice& slice : slices) out += field(4, slice_of(slice));
  return out;
}
// Elements as field `tag` of a tensor has them.
std::string stored(const std::string& name, const TensorSlice& slice, int tag,
                   const std::string& elements) {
  return field(1, name) + field(2, slice_of(slice)) + field(3, field(tag, elements));
}

const TensorSlice kAll{{0, -1}};

FileContents contents_of(const Table& table) {
  return read_tf_v1(std::make_unique<MemorySource>("F", build_table(table)), true);
}
std::string bytes_of(const FileContents& contents, std::size_t i) {
  const Extent& extent = contents.extents.at(i);
  std::string bytes(static_cast<std::size_t>(extent.bytes), '\0');
  extent.source->read_at(extent.offset, bytes.data(), bytes.size());
  return bytes;
}
std::string said(const Table& table) {
  return error_of<FormatError>([&] { contents_of(table); });
}

// A vector 'v' of two numbers.
Table good() {
  return {{"", field(1, field(1, listed("v", {2}, 1, {kAll})))},
          {slice_key("v", kAll), field(2, stored("v", kAll, 5, floats({3, 4})))}};
}

TEST(V1Checkpoints, FieldsOfLaterVersionsArePassedOver) {
  const std::string meta = kOther + listed("v", {2}, 1, {kAll}) + kOther;
  const std::string value = kOther + stored("v", kAll, 5, floats({3, 4})) + kOther;
  const FileContents contents =
      contents_of({{"", kOther + field(1, kOther + field(1, meta) + kOther) + kOther},
                   {slice_key("v", kAll), kOther + field(2, value) + kOther}});
  ASSERT_EQ(contents.tensors.size(), 1U);
  EXPECT_EQ(contents.kind, FileKind::kTfCheckpointV1);
  EXPECT_EQ(contents.tensors[0].name, "v");
  EXPECT_EQ(contents.tensors[0].dtype, "float32");
  EXPECT_EQ(contents.tensors[0].shape, (Shape{2}));
  EXPECT_EQ(contents.tensors[0].bytes, 8U);
  EXPECT_FALSE(contents.tensors[0].sliced);
  EXPECT_EQ(bytes_of(contents, 0), floats({3, 4}));
}

TEST(V1Checkpoints, AListUnderAnotherKeyIsNone) {
  Table table = good();
  table["w"] = field(1, field(1, listed("w", {2}, 1, {kAll})));
  const FileContents contents = contents_of(table);
  ASSERT_EQ(contents.tensors.size(), 1U);
  EXPECT_EQ(contents.tensors[0].name, "v");
}

TEST(V1Checkpoints, TensorsOfSeveralTypesInTheirOrder) {
  const TensorSlice left{{0, -1}, {0, 1}}, right{{0, -1}, {1, 2}}, scalar{};
  const FileContents contents =
      contents_of({{"", field(1, field(1, listed("m", {2, 3}, 1, {right, left})) +
                                     field(1, listed("s", {}, 9, {scalar})) +
                                     field(1, listed("text", {1}, 7, {kAll})))},
                   {slice_key("m", left), field(2, stored("m", left, 5, floats({1, 4})))},
                   {slice_key("m", right), field(2, stored("m", right, 4, floats({2, 3, 5, 6})))},
                   {slice_key("s", scalar), field(2, stored("s", scalar, 10, "\x85\x02"))},
                   {slice_key("text", kAll), field(2, stored("text", kAll, 8, "words"))}});
  ASSERT_EQ(contents.tensors.size(), 3U);
  EXPECT_EQ(bytes_of(contents, 0), floats({1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(contents.tensors[0].sliced);
  EXPECT_EQ(contents.tensors[1].name, "s");
  EXPECT_EQ(contents.tensors[1].dtype, "int64");
  EXPECT_EQ(contents.tensors[1].shape, Shape{});
  EXPECT_EQ(bytes_of(contents, 1), "\x05\x01\0\0\0\0\0\0"s);
  EXPECT_EQ(contents.tensors[2].dtype, "string");
  EXPECT_EQ(contents.tensors[2].bytes, 0U);
}

TEST(V1Checkpoints, TheListComesFirst) {
  const std::string what =
      "[F @ 0] its first entry is no list of tensors, expected a checkpoint of version 1";
  EXPECT_EQ(said({}), what);
  EXPECT_EQ(said({{"", kOther}}), what);
  Table table = good();
  table.erase("");
  EXPECT_EQ(said(table), what);
  // Neither a list under another key, nor elements without a key.
  EXPECT_EQ(said({{"x", field(1, field(1, listed("v", {2}, 1, {kAll})))}}), what);
  EXPECT_EQ(said({{"", field(2, stored("v", kAll, 5, floats({3, 4})))}}), what);
}

TEST(V1Checkpoints, WhatIsSaidOfDamage) {
  EXPECT_EQ(said(good()), "");
  Table table = good();
  table[slice_key("v", kAll)] = "\x12\x7f";
  EXPECT_EQ(said(table).substr(0, 17), "[F @ 0] the entry");
  EXPECT_TRUE(said(table).ends_with("' is damaged"));
  table[""] = field(1, "\x0a\x7f");
  EXPECT_EQ(said(table), "[F @ 0] the entry '' is damaged");
  table = good();
  table[slice_key("v", kAll)] = field(2, stored("v", kAll, 5, "12345"));
  EXPECT_EQ(said(table), "[F @ 0] the elements of 'v' are damaged");
  table[slice_key("v", kAll)] = field(2, stored("v", {{0, 1}}, 5, floats({3, 4})));
  EXPECT_EQ(said(table), "[F @ 0] a slice of 'v' has another key, or is of no listed tensor");
  const std::string whole = field(2, stored("v", kAll, 5, floats({3, 4})));
  table[slice_key("v", kAll)] = whole + whole;
  EXPECT_EQ(said(table), "[F @ 0] a slice of 'v' is there twice, expected once");
  table[slice_key("v", kAll)] = field(2, stored("v", kAll, 4, "123456789"));
  EXPECT_EQ(said(table), "[F @ 0] a slice of tensor 'v' has 9 bytes, expected 2 elements of 4");
}

TEST(V1Checkpoints, WhatIsSaidOfTheList) {
  const auto of = [](const std::string& metas) { return said({{"", field(1, metas)}}); };
  const std::string v = field(1, listed("v", {2}, 1, {kAll}));
  EXPECT_EQ(of(v + v), "[F @ 0] tensor 'v' is there twice, expected once");
  EXPECT_EQ(of(field(1, listed("a\x01", {2}, 1, {kAll}))),
            "[F @ 0] tensor 'a\\001' has a control character or no name, expected a name");
  EXPECT_EQ(of(field(1, listed("", {2}, 1, {kAll}))),
            "[F @ 0] tensor '' has a control character or no name, expected a name");
  EXPECT_EQ(of(field(1, field(1, "v") + field(2, number(3, 1)) + number(3, 1))),
            "[F @ 0] tensor 'v' has impossible shape []");
  EXPECT_EQ(of(field(1, listed("v", {2}, 1, {{{0, 1}}}))),
            "[F @ 0] tensor 'v' has slices that overlap, leave gaps or lie outside");
  EXPECT_EQ(of(field(1, listed("v", {2}, 1, {{{0, -1}, {0, -1}}}))),
            "[F @ 0] tensor 'v' has slices that overlap, leave gaps or lie outside");
}

}  // namespace
}  // namespace openrnn::formats
