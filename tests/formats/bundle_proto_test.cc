#include "formats/bundle/bundle_proto.h"

#include <gtest/gtest.h>

#include "formats/bundle/bundle.h"

namespace openrnn::formats {
namespace {

using namespace std::string_literals;

TEST(BundleProto, TensorFlowsBytes) {
  EXPECT_EQ(encode_header(1), "\x08\x01\x1a\x02\x08\x01"s);
  BundleEntry entry;
  entry.dtype = 1;
  entry.shape = {512};
  entry.offset = 12;
  entry.size = 2048;
  entry.crc = 0x326dd3cc;
  const std::string bytes =
      "\x08\x01\x12\x05\x12\x03\x08\x80\x04\x20\x0c\x28\x80\x10\x35\xcc\xd3\x6d\x32"s;
  EXPECT_EQ(encode_entry(entry), bytes);
  BundleEntry found;
  ASSERT_TRUE(decode_entry(bytes, &found));
  EXPECT_EQ(found.shape, Shape({512}));
  EXPECT_EQ(found.dtype, 1);
  EXPECT_EQ(found.offset, 12);
  EXPECT_EQ(found.size, 2048);
  EXPECT_EQ(found.crc, 0x326dd3ccu);
}

TEST(BundleProto, ScalarAndEmptyDimension) {
  BundleEntry entry;
  entry.dtype = 3;
  EXPECT_EQ(encode_entry(entry), "\x08\x03\x12\x00"s);
  entry.shape = {0};
  EXPECT_EQ(encode_entry(entry), "\x08\x03\x12\x02\x12\x00"s);
  BundleEntry found;
  ASSERT_TRUE(decode_entry("\x08\x03\x12\x02\x12\x00"s, &found));
  EXPECT_EQ(found.shape, Shape({0}));
}

TEST(BundleProto, UnknownFieldsAreSkippedAndDamageIsFound) {
  BundleEntry entry;
  EXPECT_TRUE(decode_entry("\x08\x03\x12\x00\x78\x05\x82\x01\x02zz"s, &entry));
  EXPECT_EQ(entry.dtype, 3);
  EXPECT_FALSE(decode_entry("\x08"s, &entry));
  EXPECT_FALSE(decode_entry("\x12\x7f"s, &entry));
  EXPECT_FALSE(decode_entry("\x00"s, &entry));
  EXPECT_FALSE(decode_entry("\x12\x02\x18\x01"s, &entry)) << "unknown rank";
  BundleHeader header;
  EXPECT_TRUE(decode_header("\x08\x02"s, &header)) << "version may be missing";
  EXPECT_EQ(header.num_shards, 2);
  EXPECT_FALSE(decode_header("\x1a\x05\x08"s, &header));
  BundleHeader more;
  EXPECT_TRUE(decode_header("\x78\x05\x08\x03\x82\x01\x02zz\x10\x01"s, &more));
  EXPECT_EQ(more.num_shards, 3);
  EXPECT_EQ(more.endianness, 1);
}

TEST(BundleProto, SliceKeysAsTensorFlowEncodesThem) {
  EXPECT_EQ(slice_key("w", {{0, 2}, {0, -1}}), "\0w\0\1\1\2\x80\x82\x80\x7f"s);
  EXPECT_EQ(slice_key("a\0\xff"s, {}), "\0a\0\xff\xff\0\0\1\0"s);
  EXPECT_EQ(slice_key("w", {{63, 64}}), "\0w\0\1\1\1\xbf\xc0\x40"s);
  EXPECT_EQ(slice_key("w", {{8191, 8192}}), "\0w\0\1\1\1\xdf\xff\xe0\x20\x00"s);
}

TEST(Slices, CoverMeansAllOnce) {
  const Shape full{4, 3};
  EXPECT_TRUE(slices_cover(full, {{{0, -1}, {0, -1}}}));
  EXPECT_TRUE(slices_cover(full, {{{0, 1}, {0, -1}}, {{1, 3}, {0, 3}}}));
  EXPECT_FALSE(slices_cover(full, {{{0, 1}, {0, -1}}, {{2, 2}, {0, -1}}})) << "gap";
  EXPECT_FALSE(slices_cover(full, {{{0, 3}, {0, -1}}, {{2, 2}, {0, -1}}})) << "overlap";
  EXPECT_FALSE(slices_cover(full, {{{0, 2}, {0, -1}}, {{0, 2}, {0, -1}}})) << "twice";
  EXPECT_FALSE(slices_cover(full, {{{0, 5}, {0, -1}}})) << "outside";
  EXPECT_FALSE(slices_cover(full, {{{-1, 4}, {0, -1}}}));
  EXPECT_TRUE(slices_cover(full, {{{1, 3}, {0, 3}}, {{0, 1}, {0, -1}}})) << "in any order";
  EXPECT_FALSE(slices_cover(full, {{{0, -1}}})) << "other rank";
  EXPECT_FALSE(slices_cover(full, {{{0, -1}, {0, -1}, {0, 1}}})) << "other rank";
  EXPECT_FALSE(slices_cover({4}, {{{0, 4}, {0, 1}}})) << "other rank";
  EXPECT_FALSE(slices_cover(full, {{{1, -1}, {0, -1}}})) << "a whole dimension starts at 0";
  EXPECT_FALSE(slices_cover(full, {{{1, INT64_MAX}, {0, -1}}}));
  EXPECT_TRUE(slices_cover({}, {{}}));
}

TEST(Slices, PlacedInTheMiddleOfThreeDimensions) {
  std::vector<int> full(24, -1);
  const std::vector<int> part = {1, 2, 3, 4, 5, 6, 7, 8};
  place_slice({2, 4, 3}, {{0, -1}, {1, 2}, {1, 2}}, sizeof(int), part.data(), full.data());
  const std::vector<int> expected = {-1, -1, -1, -1, 1, 2, -1, 3, 4, -1, -1, -1,
                                     -1, -1, -1, -1, 5, 6, -1, 7, 8, -1, -1, -1};
  EXPECT_EQ(full, expected);
}

// A slice may be empty, at the end too: what a variable of few rows leaves for the last server.
// A length of -1 is the whole; no other negative one is any.
TEST(Slices, LengthsBelowZero) {
  EXPECT_TRUE(slices_cover({5}, {{{0, -1}}}));
  EXPECT_FALSE(slices_cover({5}, {{{1, -1}}}));
  for (const std::int64_t length : {std::int64_t{-2}, INT64_MIN}) {
    EXPECT_FALSE(slices_cover({5}, {{{0, length}}})) << length;
  }
}

TEST(Slices, OfAScalar) {
  const float from = 2.5F;
  float to = 0.0F;
  ASSERT_TRUE(slices_cover({}, {{}}));
  place_slice({}, {}, sizeof from, &from, &to);
  EXPECT_EQ(to, 2.5F);
}

TEST(Slices, EmptyOnes) {
  EXPECT_TRUE(slices_cover({4}, {{{0, 4}}, {{4, 0}}}));
  EXPECT_TRUE(slices_cover({4}, {{{0, 0}}, {{0, -1}}}));
  EXPECT_TRUE(slices_cover({4}, {{{0, 2}}, {{2, 2}}, {{4, 0}}}));
  EXPECT_TRUE(slices_cover({0}, {{{0, 0}}}));
  EXPECT_TRUE(slices_cover({0}, {{{0, -1}}}));
  EXPECT_TRUE(slices_cover({0, 3}, {}));
  EXPECT_FALSE(slices_cover({4}, {{{0, 4}}, {{5, 0}}})) << "begins behind the end";
  EXPECT_FALSE(slices_cover({4}, {{{0, 4}}, {{4, 1}}})) << "ends behind the end";
  EXPECT_FALSE(slices_cover({4}, {{{0, 4}}, {{0, -2}}})) << "a length that is none";
  EXPECT_FALSE(slices_cover({4}, {}));
  EXPECT_EQ(slice_shape({4, 3}, {{4, 0}, {0, -1}}), (Shape{0, 3}));
  float nothing = 7;
  place_slice({4}, {{4, 0}}, sizeof(float), nullptr, &nothing);
  EXPECT_EQ(nothing, 7);
}

// A rank that is said to be known is no fault.
TEST(BundleProto, Ranks) {
  for (const char unknown : {'\0', '\1'}) {
    bool good = true;
    const Shape shape = decode_shape("\x12\x02\x08\x05\x18"s + unknown, &good);
    EXPECT_EQ(shape, Shape{5});
    EXPECT_EQ(good, unknown == 0);
  }
}

TEST(BundleProto, EveryFieldOfAnEntry) {
  BundleEntry entry;
  ASSERT_TRUE(decode_entry("\x08\x09\x18\x02\x20\x07\x28\x10\x35\x04\x03\x02\x01"s, &entry));
  EXPECT_EQ(entry.dtype, 9);
  EXPECT_EQ(entry.shard, 2);
  EXPECT_EQ(entry.offset, 7);
  EXPECT_EQ(entry.size, 16);
  EXPECT_EQ(entry.crc, 0x01020304u);
  // Of a slice the start may be left out, and without a length it is the whole dimension.
  ASSERT_TRUE(
      decode_entry("\x3a\x0e\x0a\x04\x08\x02\x10\x03\x0a\x02\x10\x04\x0a\x00\x12\x00"s, &entry));
  ASSERT_EQ(entry.slices.size(), 1U);
  EXPECT_EQ(entry.slices[0], (TensorSlice{{2, 3}, {0, 4}, {0, -1}}));
  BundleHeader header;
  ASSERT_TRUE(decode_header("\x08\x03\x10\x01\x1a\x04\x08\x07\x10\x05"s, &header));
  EXPECT_EQ(header.num_shards, 3);
  EXPECT_EQ(header.endianness, 1);
  EXPECT_EQ(header.min_consumer, 5);
}

// One byte more from each power of two that does not fit; negative numbers have all bits flipped.
TEST(BundleProto, NumbersOfSliceKeys) {
  const auto number = [](std::int64_t start) {
    const std::string key = slice_key("w", {{start, 0}});
    return key.substr(6, key.size() - 7);
  };
  EXPECT_EQ(number(0), "\x80"s);
  EXPECT_EQ(number(63), "\xbf"s);
  EXPECT_EQ(number(64), "\xc0\x40"s);
  EXPECT_EQ(number((1 << 20) - 1), "\xef\xff\xff"s);
  EXPECT_EQ(number(1 << 20), "\xf0\x10\x00\x00"s);
  EXPECT_EQ(number((std::int64_t{1} << 55) - 1), "\xff\x7f\xff\xff\xff\xff\xff\xff"s);
  EXPECT_EQ(number(std::int64_t{1} << 55), "\xff\x80\x80\x00\x00\x00\x00\x00\x00"s);
  EXPECT_EQ(number(INT64_MAX), "\xff\xc0\x7f\xff\xff\xff\xff\xff\xff\xff"s);
  EXPECT_EQ(number(-1), "\x7f"s);
  EXPECT_EQ(number(-64), "\x40"s);
  EXPECT_EQ(number(-65), "\x3f\xbf"s);
  EXPECT_EQ(number(INT64_MIN), "\x00\x3f\x80\x00\x00\x00\x00\x00\x00\x00"s);
}

// Each number where the next narrower type would cut it.
TEST(BundleProto, WideNumbersOfAnEntry) {
  BundleEntry entry;
  entry.dtype = 300;
  entry.shape = {(std::int64_t{1} << 33) + 1, 0, std::int64_t{1} << 62};
  entry.shard = 70000;
  entry.offset = (std::int64_t{1} << 40) + 2;
  entry.size = (std::int64_t{1} << 41) + 3;
  entry.crc = 0xfedcba98u;
  BundleEntry found;
  ASSERT_TRUE(decode_entry(encode_entry(entry), &found));
  EXPECT_EQ(found.dtype, entry.dtype);
  EXPECT_EQ(found.shape, entry.shape);
  EXPECT_EQ(found.shard, entry.shard);
  EXPECT_EQ(found.offset, entry.offset);
  EXPECT_EQ(found.size, entry.size);
  EXPECT_EQ(found.crc, entry.crc);
  EXPECT_TRUE(found.slices.empty());
  // Negative numbers are there for a check to find.
  for (std::int64_t BundleEntry::*member : {&BundleEntry::offset, &BundleEntry::size}) {
    BundleEntry negative, again;
    negative.*member = -5;
    ASSERT_TRUE(decode_entry(encode_entry(negative), &again));
    EXPECT_EQ(again.*member, -5);
  }
  entry.shard = -1;
  ASSERT_TRUE(decode_entry(encode_entry(entry), &found));
  EXPECT_EQ(found.shard, -1);
}

TEST(BundleProto, WideNumbersOfSlicesAndHeaders) {
  // start 2^35 + 1, length 2^36 + 2.
  const TensorSlice slice =
      decode_slice("\x0a\x0e\x08\x81\x80\x80\x80\x80\x01\x10\x82\x80\x80\x80\x80\x02"s);
  ASSERT_EQ(slice.size(), 1U);
  EXPECT_EQ(slice[0].start, (std::int64_t{1} << 35) + 1);
  EXPECT_EQ(slice[0].length, (std::int64_t{1} << 36) + 2);
  for (const std::int32_t shards : {1, 127, 128, 99999, INT32_MAX}) {
    BundleHeader header;
    ASSERT_TRUE(decode_header(encode_header(shards), &header));
    EXPECT_EQ(header.num_shards, shards);
    EXPECT_EQ(header.endianness, 0);
    EXPECT_EQ(header.min_consumer, 0);
  }
}

// What a message leaves out is zero, and is left out where it is zero: one member at a time.
TEST(BundleProto, OneMemberAlone) {
  const std::pair<void (*)(BundleEntry*), std::string> members[] = {
      {[](BundleEntry* entry) { entry->dtype = 1; }, "\x08\x01\x12\x00"s},
      {[](BundleEntry* entry) {
         entry->shape = {2, 3};
       },
       "\x12\x08\x12\x02\x08\x02\x12\x02\x08\x03"s},
      {[](BundleEntry* entry) { entry->shard = 1; }, "\x12\x00\x18\x01"s},
      {[](BundleEntry* entry) { entry->offset = 1; }, "\x12\x00\x20\x01"s},
      {[](BundleEntry* entry) { entry->size = 1; }, "\x12\x00\x28\x01"s},
      {[](BundleEntry* entry) { entry->crc = 1; }, "\x12\x00\x35\x01\x00\x00\x00"s},
  };
  for (const auto& [set, bytes] : members) {
    BundleEntry entry, found;
    set(&entry);
    EXPECT_EQ(encode_entry(entry), bytes);
    ASSERT_TRUE(decode_entry(bytes, &found));
    EXPECT_EQ(encode_entry(found), bytes);
  }
}

}  // namespace
}  // namespace openrnn::formats
