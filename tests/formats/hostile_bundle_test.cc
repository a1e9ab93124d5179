// Bundles that are damaged or made to harm: every one gives one clear error.

#include <gtest/gtest.h>
#include <openrnn/formats.h>
#include <openrnn/formats_model_file.h>

#include "support/raw_bundle.h"

namespace openrnn::formats {
namespace {

using namespace std::string_literals;

void open_and_read(const std::string& prefix, TensorBundleOptions options = {}) {
  const TensorBundleReader reader(prefix, options);
  for (const TensorInfo& info : reader.tensors()) reader.read_value(info.name);
  reader.verify();
}

class HostileBundle : public testing::Test {
 protected:
  HostileBundle() { raw.add("w", {1, 2, 3}); }
  BundleEntry& w() { return raw.entries.at("w"); }
  void expect(const std::string& part) {
    raw.write(folder / "m");
    EXPECT_MESSAGE(FormatError, open_and_read(folder / "m"), part);
    try {
      open_and_read(folder / "m", {.verify_checksums = false});
    } catch (const Error&) {  // without checksums it may pass or not
    }
  }
  const TempFolder folder;
  RawBundle raw;
};

TEST_F(HostileBundle, GoodToBeginWith) {
  raw.write(folder / "m");
  EXPECT_NO_THROW(open_and_read(folder / "m"));
}

TEST_F(HostileBundle, SizeAgainstShape) {
  w().size = 8;
  expect("tensor 'w' has 8 bytes, expected 3 elements of 4 bytes");
}
TEST_F(HostileBundle, NegativeDimension) {
  w().shape = {-3, -1};
  expect("impossible shape [-3, -1]");
}
TEST_F(HostileBundle, ElementsOverflow) {
  w().shape = {INT64_MAX, 2};
  expect("impossible shape");
}
TEST_F(HostileBundle, BytesOverflow) {
  w().shape = {INT64_MAX / 2};
  expect("tensor 'w' has 12 bytes");
}
TEST_F(HostileBundle, HugeTensorInSmallFile) {
  w().shape = {std::int64_t{1} << 40};
  w().size = std::int64_t{1} << 42;
  expect(
      "m.data-00000-of-00001 @ 12] the file ends here, expected 4398046511104 bytes of tensor 'w'");
}
TEST_F(HostileBundle, OffsetPastTheEnd) {
  w().offset = 1;
  expect("the file ends here, expected 12 bytes of tensor 'w' at byte 1");
}
TEST_F(HostileBundle, OffsetThatWraps) {
  w().offset = INT64_MAX;
  expect("the file ends here");
}
TEST_F(HostileBundle, NegativeOffset) {
  w().offset = -4;
  expect("the file ends here");
}
TEST_F(HostileBundle, DataFileOutOfRange) {
  w().shard = 1;
  expect("tensor 'w' is in data file 1, expected one of 1");
}
TEST_F(HostileBundle, WrongChecksum) {
  w().crc ^= 1;
  expect("tensor 'w' has checksum");
}
TEST_F(HostileBundle, WrongChecksumThatIsNotAskedFor) {
  w().crc ^= 1;
  raw.write(folder / "m");
  const TensorBundleReader reader(folder / "m", {.verify_checksums = false});
  EXPECT_EQ(reader.read("w").as<float>()[2], 3.0f);
}
TEST_F(HostileBundle, TooManyDimensions) {
  w().shape.assign(255, 1);
  expect("tensor 'w' has rank 255");
}
TEST_F(HostileBundle, TensorsThatShareTheirBytes) {
  for (int i = 0; i < 3; ++i) raw.entries["alias" + std::to_string(i)] = w();
  expect("tensor 'alias1' begins at byte 0 of data file 0, inside tensor 'alias0'");
}
TEST_F(HostileBundle, TensorsThatShareSomeBytesInALargeFile) {
  raw.add("v", {4, 5, 6}).offset -= 4;
  raw.add("far", {7});
  expect("tensor 'v' begins at byte 8 of data file 0, inside tensor 'w'");
}
TEST_F(HostileBundle, EmptyTensorsShareNothing) {
  raw.add("before", {}).offset = 4;
  raw.add("x", {1});
  raw.write(folder / "m");
  EXPECT_NO_THROW(open_and_read(folder / "m"));
}
TEST_F(HostileBundle, NamesThatAreNoText) {
  for (const std::string name :
       {"a\xff", "esc\x1b[2J", "del\x7f", "csi\xc2\x9b", "line\n", "\xc0\xaf"}) {
    raw.entries = {{name, raw.entries.begin()->second}};
    expect("is not UTF-8 or holds a control character");
    EXPECT_MESSAGE(ArgumentError,
                   TensorBundleWriter(folder / "n").add(name, array_of<float>({1}, {1})),
                   "is not UTF-8 or holds a control character");
  }
}
TEST_F(HostileBundle, LongNamesAreCutInMessages) {
  const std::string name(100000, 'n');
  raw.entries = {{name, w()}};
  raw.entries[name].crc ^= 1;
  expect("tensor '" + std::string(80, 'n') + "... (100000 bytes)' has checksum");
}
TEST_F(HostileBundle, BoolThatIsNeither) {
  w().dtype = 10;
  w().shape = {12};
  expect("tensor 'w' holds 128, expected 0 or 1");
}
TEST_F(HostileBundle, EveryByteThatIsNoBool) {
  w().dtype = 10;
  w().shape = {12};
  raw.data = std::string(12, '\1');
  for (int byte = 0; byte < 256; ++byte) {
    raw.data[7] = static_cast<char>(byte);
    w().crc = mask_crc(crc32c(raw.data));
    if (byte > 1) {
      expect("@ 7] tensor 'w' holds " + std::to_string(byte) + ", expected 0 or 1");
      continue;
    }
    raw.write(folder / "m");
    EXPECT_EQ(TensorBundleReader(folder / "m").read("w").as<bool>()[7], byte == 1);
  }
}
TEST_F(HostileBundle, NegativeSizeOfStrings) {
  w().dtype = 7;
  w().size = -1;
  expect("the file ends here, expected -1 bytes of tensor 'w' at byte 0");
}
// The same places of two files are two places.
TEST_F(HostileBundle, TensorsOfTwoDataFiles) {
  BundleEntry& v = raw.add("v", {4, 5, 6});
  v.shard = 1;
  v.offset = 0;
  raw.header = encode_header(2);
  write_raw(folder / "m.index", raw.index());
  write_raw(folder / "m.data-00000-of-00002", raw.data.substr(0, 12));
  write_raw(folder / "m.data-00001-of-00002", raw.data.substr(12));
  const TensorBundleReader reader(folder / "m");
  EXPECT_EQ(reader.read("w").as<float>()[2], 3.0F);
  EXPECT_EQ(reader.read("v").as<float>()[2], 6.0F);
  EXPECT_EQ(reader.names_in_file_order(), (std::vector<std::string>{"w", "v"}));
}
TEST_F(HostileBundle, NoHeader) {
  raw.header = "";
  expect("header of the checkpoint is damaged");
}

TEST_F(HostileBundle, BigEndian) {
  raw.header = "\x08\x01\x10\x01"s;
  raw.write(folder / "m");
  EXPECT_MESSAGE(UnsupportedError, open_and_read(folder / "m"), "is big-endian (1)");
}

TEST_F(HostileBundle, FromTheFuture) {
  raw.header = "\x08\x01\x1a\x02\x10\x02"s;
  raw.write(folder / "m");
  EXPECT_MESSAGE(UnsupportedError, open_and_read(folder / "m"), "version 2, expected at most 1");
}

// Our own version, and any older one, is read.
TEST_F(HostileBundle, VersionsThatAreRead) {
  for (const char* header : {"\x08\x01", "\x08\x01\x1a\x02\x10\x01"}) {
    raw.header = header;
    raw.write(folder / "m");
    EXPECT_NO_THROW(open_and_read(folder / "m"));
  }
  for (const std::string& header : {""s, "\x08\x00"s, "\x08"s}) {
    raw.header = header;
    expect("header of the checkpoint is damaged");
  }
}

TEST_F(HostileBundle, RanksAndDataFiles) {
  w().shape.assign(253, 1);
  w().shape.push_back(3);
  raw.write(folder / "m");
  EXPECT_NO_THROW(open_and_read(folder / "m"));
  w().shape = {3};
  w().shard = -1;
  expect("tensor 'w' is in data file -1, expected one of 1");
}

// Bytes of which the checksum and the width are not known are listed, and strings read.
TEST_F(HostileBundle, TypesWithoutAWidth) {
  w().dtype = 20;
  w().size = 5;
  w().crc ^= 1;
  raw.write(folder / "m");
  const TensorBundleReader reader(folder / "m");
  EXPECT_NO_THROW(reader.verify());
  EXPECT_NO_THROW(ModelFile(folder / "m").verify());
  EXPECT_EQ(reader.info("w").dtype, "resource");
  EXPECT_EQ(reader.info("w").bytes, 5u);
  EXPECT_MESSAGE(UnsupportedError, reader.read("w"), "'w' has element type resource");
  EXPECT_MESSAGE(TypeError, reader.read_strings("w"), "has element type resource, expected string");
}

TEST_F(HostileBundle, MissingDataFile) {
  raw.write(folder / "m");
  std::filesystem::remove(folder / "m.data-00000-of-00001");
  EXPECT_MESSAGE(IoError, open_and_read(folder / "m"), "m.data-00000-of-00001: No such file");
}

TEST_F(HostileBundle, TableWithoutHeader) {
  write_raw(folder / "m.index", build_table({{"w", encode_entry(w())}}));
  EXPECT_MESSAGE(FormatError, open_and_read(folder / "m"), "the table has no header");
}

TEST_F(HostileBundle, EntryThatIsNoMessage) {
  write_raw(folder / "m.index", build_table({{"", encode_header(1)}, {"w", "\xff\xff"}}));
  EXPECT_MESSAGE(FormatError, open_and_read(folder / "m"), "the entry of tensor 'w' is damaged");
}

// A string tensor with this data; the entry's checksum is left wrong.
void expect_strings(const std::string& data, std::int64_t count, const std::string& part) {
  const TempFolder folder;
  RawBundle raw;
  BundleEntry& entry = raw.entries["s"];
  entry.dtype = 7;
  entry.shape = {count};
  entry.size = static_cast<std::int64_t>(data.size());
  raw.data = data;
  raw.write(folder / "m");
  EXPECT_MESSAGE(FormatError, open_and_read(folder / "m"), part);
}

TEST(HostileStrings, Damage) {
  std::uint32_t crc = 0;
  const std::string good = encode_strings({"ab", "c"}, &crc);
  expect_strings(good, 2, "tensor 's' has checksum");
  expect_strings(good, std::int64_t{1} << 60,
                 "expected the lengths of 1152921504606846976 strings");
  expect_strings(good.substr(0, 4), 2, "checksum of the lengths is cut short");
  expect_strings(good.substr(0, good.size() - 1), 2, "a string of 1 bytes is cut short");
  expect_strings(good + "d", 2, "1 bytes after the last string");
  expect_strings("\x80\x80"s, 1, "a length is cut short");
  std::string wrong = good;
  wrong[0] = 1;
  expect_strings(wrong, 2, "the lengths have checksum");
}

// They are read to be verified.
TEST(HostileStrings, AreVerified) {
  std::uint32_t crc = 0;
  RawBundle raw;
  raw.data = encode_strings({"ab", "c"}, &crc);
  BundleEntry& entry = raw.entries["s"];
  entry.dtype = 7;
  entry.shape = {2};
  entry.size = static_cast<std::int64_t>(raw.data.size());
  entry.crc = mask_crc(crc);
  const TempFolder folder;
  raw.write(folder / "m");
  EXPECT_NO_THROW(TensorBundleReader(folder / "m").verify());
  raw.data.back() = 'd';
  raw.write(folder / "m");
  EXPECT_MESSAGE(FormatError, TensorBundleReader(folder / "m").verify(), "tensor 's' has checksum");
}

// Two halves of a partitioned variable 'big' of shape [5].
RawBundle parts() {
  RawBundle raw;
  const TensorSlice first{{0, 2}}, second{{2, 3}};
  raw.add(slice_key("big", first), {1, 2});
  raw.add(slice_key("big", second), {3, 4, 5});
  BundleEntry& whole = raw.entries["big"];
  whole.dtype = 1;
  whole.shape = {5};
  whole.slices = {first, second};
  return raw;
}

void expect_parts(const RawBundle& raw, const std::string& part) {
  const TempFolder folder;
  raw.write(folder / "m");
  EXPECT_MESSAGE(FormatError, open_and_read(folder / "m"), part);
}

TEST(HostileSlices, Damage) {
  const TempFolder folder;
  parts().write(folder / "m");
  const TensorBundleReader reader(folder / "m");
  const Array big = reader.read("big");
  EXPECT_EQ(std::vector<float>(big.as<float>().begin(), big.as<float>().end()),
            (std::vector<float>{1, 2, 3, 4, 5}));
  EXPECT_TRUE(reader.info("big").sliced);
  EXPECT_EQ(reader.info("big").bytes, 20u);

  RawBundle raw = parts();
  raw.entries["big"].slices.pop_back();
  expect_parts(raw, "slices that overlap, leave gaps or lie outside");
  raw = parts();
  raw.entries.erase(slice_key("big", {{2, 3}}));
  expect_parts(raw, "'big' lacks one of its slices");
  raw = parts();
  raw.entries["big"].dtype = 3;
  expect_parts(raw, "has a slice of shape [2] and type float32, expected [2] and int32");
  raw = parts();
  raw.entries[slice_key("big", {{2, 3}})].offset = 4;
  expect_parts(raw, "begins at byte 4 of data file 0, inside tensor '");
  raw = parts();
  raw.entries["big"].dtype = 7;
  expect_parts(raw, "has element type string, expected one of fixed width");
  raw = parts();
  raw.entries["big"].shape = {INT64_MAX, 5};
  expect_parts(raw, "partitioned tensor 'big'");
  raw = parts();
  raw.entries[slice_key("big", {{2, 3}})].crc ^= 1;
  expect_parts(raw, "has checksum");
  raw.write(folder / "flipped");
  const TensorBundleReader flipped(folder / "flipped");
  EXPECT_MESSAGE(FormatError, flipped.verify(), "has checksum");
  EXPECT_NO_THROW(reader.verify());
  raw = parts();
  raw.entries[slice_key("big", {{2, 3}})].slices = {{{0, -1}}};
  expect_parts(raw, "is a slice of a slice");
}

// Its slices have their places; what is said of one of the whole counts for nothing.
TEST(HostileSlices, TheWholeHasNoPlace) {
  RawBundle raw = parts();
  BundleEntry& whole = raw.entries["big"];
  whole.shard = 7;
  whole.offset = 3;
  whole.size = 1000;
  whole.crc = 5;
  const TempFolder folder;
  raw.write(folder / "m");
  const TensorBundleReader reader(folder / "m");
  EXPECT_EQ(reader.read("big").as<float>()[4], 5.0F);
  EXPECT_EQ(reader.info("big").bytes, 20u);
  EXPECT_NO_THROW(reader.verify());
}

// A slice at the end may be empty.
TEST(HostileSlices, EmptySlice) {
  RawBundle raw = parts();
  const TensorSlice none{{5, 0}};
  raw.add(slice_key("big", none), {});
  raw.entries["big"].slices.push_back(none);
  const TempFolder folder;
  raw.write(folder / "m");
  EXPECT_EQ(TensorBundleReader(folder / "m").read("big").as<float>()[4], 5.0f);
  raw.entries["big"].shape.assign(255, 1);
  expect_parts(raw, "partitioned tensor 'big' has rank 255");
}

TEST(DamagedBundle, EveryCutAndEveryFlippedBitIsFoundOrHarmless) {
  const TempFolder folder;
  RawBundle raw;
  raw.add("a", {1, 2});
  raw.add("b/c", {3});
  const std::string index = raw.index();
  raw.write(folder / "m");
  const auto survives = [&] {
    try {
      const TensorBundleReader reader(folder / "m");
      EXPECT_EQ(reader.read("a").as<float>()[1], 2.0f);
      EXPECT_EQ(reader.read("b/c").as<float>()[0], 3.0f);
      return true;
    } catch (const FormatError&) {
      return false;
    }
  };
  ASSERT_TRUE(survives());
  for (std::size_t size = 0; size < index.size(); ++size) {
    write_raw(folder / "m.index", index.substr(0, size));
    EXPECT_FALSE(survives()) << "index cut to " << size;
  }
  for (std::size_t bit = 0; bit < index.size() * 8; ++bit) {
    std::string flipped = index;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    write_raw(folder / "m.index", flipped);
    survives();  // the unused metaindex may change; what is read is right in any case
  }
  write_raw(folder / "m.index", index);
  for (std::size_t bit = 0; bit < raw.data.size() * 8; ++bit) {
    std::string flipped = raw.data;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    write_raw(folder / "m.data-00000-of-00001", flipped);
    EXPECT_FALSE(survives()) << "data bit " << bit;
  }
  for (std::size_t size = 0; size < raw.data.size(); ++size) {
    write_raw(folder / "m.data-00000-of-00001", raw.data.substr(0, size));
    EXPECT_FALSE(survives()) << "data cut to " << size;
  }
}

// Overlaps are searched in pairs.
TEST(HostileSlices, AsManyAsAreCompared) {
  RawBundle raw;
  const TensorSlice none{{0, 0}};
  raw.add(slice_key("big", none), {});
  BundleEntry& whole = raw.entries["big"];
  whole.dtype = 1;
  whole.shape = {0};
  whole.slices.assign(4096, none);
  const TempFolder folder;
  raw.write(folder / "m");
  EXPECT_EQ(TensorBundleReader(folder / "m").read("big").size(), 0);
  whole.slices.push_back(none);
  expect_parts(raw, "partitioned tensor 'big' has 4097 slices");
}

}  // namespace
}  // namespace openrnn::formats
