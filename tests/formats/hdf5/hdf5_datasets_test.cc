// Datasets of HDF5 as they can be stored: layouts, chunks and their indexes, filters, types.
#include <gtest/gtest.h>

#include "formats/hdf5/hdf5_text.h"

namespace openrnn::formats {
namespace {

using namespace hdf5_text;

using Bytes = std::vector<std::uint8_t>;

// The elements of the dataset 'd', of bytes.
Bytes bytes_of(const std::string& file) {
  const Written written(file);
  const Array array = ModelFile(written.path()).read("d");
  const auto values = array.as<std::uint8_t>();
  return {values.begin(), values.end()};
}

// The error of opening it or of reading 'd'.
void expect_refused(const std::string& file, const std::string& part) {
  const Written written(file);
  EXPECT_MESSAGE(Error, ModelFile(written.path()).read_bytes("d"), part);
}

const std::string kByte = integer(1, false);

TEST(Hdf5Datasets, Layouts) {
  File file;
  const std::uint64_t data = file.add("\1\2\3");
  const auto with = [&](const Text& layout, const Shape& shape = {3}) {
    return with_dataset(file, kByte, space(shape), {layout});
  };
  const std::string compact = le(3, 1) + le(0, 1) + le(3, 2);
  EXPECT_EQ(bytes_of(with(contiguous(data, 3))), (Bytes{1, 2, 3}));
  EXPECT_EQ(bytes_of(with(layout(compact + "\4\5\6"))), (Bytes{4, 5, 6}));
  EXPECT_EQ(bytes_of(with(contiguous(kNone, 0), {0})), Bytes{});
  // Version 1 of a dataspace has more room.
  const std::string old_space = le(1, 1) + le(1, 1) + zeros(6) + le(3, 8);
  EXPECT_EQ(bytes_of(with_dataset(file, kByte, old_space, {contiguous(data, 3)})),
            (Bytes{1, 2, 3}));
  for (const std::uint64_t size : {2U, 4U}) {
    const std::string said = "bytes, expected 3 of shape [3]";
    expect_refused(with(contiguous(data, size)), said);
    expect_refused(with(layout(le(3, 1) + le(0, 1) + le(size, 2) + "\4\5\6\7")), said);
  }
  expect_refused(with(contiguous(kNone, 3)), "the dataset 'd' has no elements stored");
  expect_refused(with(contiguous(1, 3)), "a dataset has 3 bytes, some of which are used already");
  expect_refused(with(contiguous(100000, 3)),
                 "a dataset has 3 bytes at 100000, expected it inside");
  expect_refused(with(layout(le(3, 1) + le(3, 1))), "has a layout that is not read");
  for (const std::uint8_t version : {2, 5}) {
    expect_refused(with(layout(le(version, 1) + le(1, 1))), "the layout of a dataset has version");
  }
  expect_refused(with_dataset(file, kByte, space({3}), {contiguous(data, 3), {7, zeros(8)}}),
                 "is in other files");
  const Text alone = contiguous(data, 3);
  for (const auto& [messages, what] :
       {std::pair<std::vector<Text>, const char*>{{{1, space({3})}, alone}, "no element type"},
        {{{3, kByte}, alone}, "no dataspace"}}) {
    File broken = file;
    const std::uint64_t dataset = broken.add(object(messages));
    expect_refused(with_root(broken, {link("d", dataset)}), what);
  }
}

TEST(Hdf5Datasets, Shapes) {
  File file;
  const std::uint64_t data = file.add("\1");
  EXPECT_EQ(bytes_of(with_dataset(file, kByte, space(Shape(32, 1)), {contiguous(data, 1)})),
            Bytes{1});
  expect_refused(with_dataset(file, kByte, space(Shape(33, 1)), {contiguous(data, 1)}),
                 "has rank 33, expected at most 32");
  expect_refused(with_dataset(file, kByte, space({-1}), {contiguous(data, 1)}),
                 "has a size of 18446744073709551615, expected at most 2^63 - 1");
  expect_refused(with_dataset(file, kByte, space({INT64_MAX, 2}), {contiguous(data, 1)}),
                 "more than 2^63 elements");
  expect_refused(with_dataset(file, integer(8, true), space({INT64_MAX}), {contiguous(data, 1)}),
                 "more than 2^63 elements");
  for (const char version : {'\0', '\3'}) {
    std::string other = space({1});
    other[0] = version;
    expect_refused(with_dataset(file, kByte, other, {contiguous(data, 1)}),
                   "a dataspace has version");
  }
  // A null dataspace, and a dataspace of version 1 with the same byte, which says nothing there.
  const Written null(
      with_dataset(file, kByte, le(2, 1) + zeros(2) + le(2, 1), {contiguous(kNone, 0)}));
  EXPECT_EQ(ModelFile(null.path()).info("d").shape, Shape{0});
  const std::string old_null = le(1, 1) + le(1, 1) + zeros(1) + le(2, 1) + zeros(4) + le(1, 8);
  EXPECT_EQ(bytes_of(with_dataset(file, kByte, old_null, {contiguous(data, 1)})), Bytes{1});
}

TEST(Hdf5Datasets, Types) {
  const std::tuple<std::string, std::uint32_t, const char*> cases[] = {
      {integer(1, true), 1, "int8"},
      {integer(1, true, true), 1, "int8"},
      {integer(2, true), 2, "int16"},
      {integer(2, false), 2, "uint16"},
      {integer(4, false, true), 4, "big-endian uint32"},
      {integer(8, false), 8, "uint64"},
      {integer(3, true), 3, "an integer of another form"},
      {type_head(0, 8, 4) + le(1, 2) + le(32, 2), 4, "an integer of another form"},
      {type_head(0, 8, 4) + le(0, 2) + le(31, 2), 4, "an integer of another form"},
      {floating(2, 5, 10), 2, "float16"},
      {floating(2, 8, 7), 2, "bfloat16"},
      {floating(8, 11, 52), 8, "float64"},
      {floating(8, 11, 52, 0x21), 8, "big-endian float64"},
      {floating(2, 5, 7), 2, "a float of another form"},
      {floating(4, 8, 22), 4, "a float of another form"},
      {floating(4, 8, 23, 0x60), 4, "a float of another form"},
      {type_head(1, 0x20, 4) + le(1, 2) + le(32, 2) + "\x17\x08" + zeros(1) + "\x17" + zeros(4), 4,
       "a float of another form"},
      {type_head(2, 0, 4), 4, "a time"},
      {text(4, 0), 4, "string"},
      {type_head(4, 0, 4), 4, "a bit field"},
      {type_head(5, 0, 4), 4, "an opaque type"},
      {type_head(6, 0, 4), 4, "a compound type"},
      {type_head(7, 0, 8), 8, "a reference"},
      {type_head(8, 0, 4) + type_head(1, 0, 4), 4, "an enumeration"},
      {variable_text(), 16, "string"},
      {type_head(9, 0, 16), 16, "a variable-length type"},
      {type_head(9, 1, 12), 12, "a variable-length type"},
      {type_head(10, 0, 4), 4, "an array type"},
      {type_head(11, 0, 4), 4, "an unknown type"},
      {type_head(15, 0, 4), 4, "an unknown type"},
  };
  for (const auto& [type, bytes, name] : cases) {
    File file;
    const std::uint64_t data = file.add(zeros(bytes));
    const Written written(with_dataset(file, type, space({}), {contiguous(data, bytes)}));
    const ModelFile model(written.path());
    EXPECT_EQ(model.info("d").dtype, name);
    EXPECT_EQ(model.info("d").bytes, bytes) << name;
  }
}

// Keras's way to say bfloat16: two bytes of any type, and an attribute.
TEST(Hdf5Datasets, BfloatByAnAttribute) {
  for (const std::uint32_t bytes : {2U, 4U}) {
    for (const std::string word : {"bfloat16", "bfloat17"}) {
      File file;
      const std::uint64_t data = file.add(zeros(bytes));
      const Written written(
          with_dataset(file, type_head(5, 0, bytes), space({}),
                       {contiguous(data, bytes), attribute("dtype", text(8, 1), space({}), word)}));
      const ModelFile model(written.path());
      const bool is_brain = bytes == 2 && word == "bfloat16";
      EXPECT_EQ(model.info("d").dtype, is_brain ? "bfloat16" : "an opaque type");
      EXPECT_EQ(model.values().size(), is_brain ? 0U : 1U);
    }
  }
}

// ---- Chunks ------------------------------------------------------------------------------------

struct Chunk {
  std::vector<std::uint64_t> first;
  std::string bytes;
  std::uint32_t skipped = 0;
};

// A dataset [4] of bytes in chunks of 2, with version 3 of the layout and its tree.
std::string in_a_tree(const std::vector<Chunk>& chunks, const std::vector<std::uint16_t>& ids = {},
                      std::uint8_t type = 1) {
  File file;
  std::string keys;
  for (const Chunk& chunk : chunks) {
    keys += le(chunk.bytes.size(), 4) + le(chunk.skipped, 4);
    for (const std::uint64_t first : chunk.first) keys += le(first, 8);
    keys += le(0, 8) + le(file.add(chunk.bytes), 8);
  }
  const std::uint64_t tree = file.add("TREE" + le(type, 1) + le(0, 1) + le(chunks.size(), 2) +
                                      le(kNone, 8) + le(kNone, 8) + keys + zeros(24));
  std::vector<Text> more = {
      layout(le(3, 1) + le(2, 1) + le(2, 1) + le(tree, 8) + le(2, 4) + le(1, 4))};
  if (!ids.empty()) more.push_back(filters(ids));
  return with_dataset(file, kByte, space({4}), more);
}

constexpr std::uint16_t kGzip = 1, kShuffle = 2;

TEST(Hdf5Chunks, OfATree) {
  EXPECT_EQ(bytes_of(in_a_tree({{{2}, "\3\4"}, {{0}, "\1\2"}})), (Bytes{1, 2, 3, 4}));
  expect_refused(in_a_tree({{{0}, "\1\2"}}), "has 1 of 2 chunks stored");
  expect_refused(in_a_tree({{{0}, "\1\2"}, {{0}, "\1\2"}}), "has two chunks at [0]");
  for (const std::uint64_t first : {std::uint64_t{1}, std::uint64_t{4}, ~std::uint64_t{1}}) {
    expect_refused(in_a_tree({{{0}, "\1\2"}, {{first}, "\3\4"}}), "of a dataset of shape [4]");
  }
  expect_refused(in_a_tree({{{0}, "\1\2"}, {{2}, "\3\4"}}, {}, 0), "has type 0 and level 0");
  for (const char* bytes : {"\3", "\3\4\5"}) {
    expect_refused(in_a_tree({{{0}, "\1\2"}, {{2}, bytes}}), "bytes, expected 2");
  }
}

// A chunk says which of the filters it was stored without.
TEST(Hdf5Chunks, SkippedFilters) {
  EXPECT_EQ(bytes_of(in_a_tree({{{0}, "\1\2", 1}, {{2}, stored_zlib("\3\4")}}, {kGzip})),
            (Bytes{1, 2, 3, 4}));
  EXPECT_EQ(
      bytes_of(in_a_tree({{{0}, stored_zlib("\1\2"), 1}, {{2}, "\3\4", 3}}, {kShuffle, kGzip})),
      (Bytes{1, 2, 3, 4}));
  // Bit 1 is the second filter, which is undone first.
  EXPECT_EQ(bytes_of(in_a_tree({{{0}, stored_zlib("\1\2"), 2}, {{2}, stored_zlib("\3\4")}},
                               {kGzip, kShuffle})),
            (Bytes{1, 2, 3, 4}));
  expect_refused(in_a_tree({{{0}, "\1\2"}, {{2}, stored_zlib("\3\4")}}, {kGzip}),
                 "a chunk of 2 bytes is no zlib stream of 2 bytes");
}

TEST(Hdf5Chunks, Filters) {
  const std::vector<std::uint16_t> four(4, kShuffle), five(5, kShuffle);
  EXPECT_EQ(bytes_of(in_a_tree({{{0}, "\1\2"}, {{2}, "\3\4"}}, four)), (Bytes{1, 2, 3, 4}));
  expect_refused(in_a_tree({{{0}, "\1\2"}, {{2}, "\3\4"}}, five), "is stored with 5 filters");
  for (const std::uint16_t id : {3, 255, 256, 32000}) {
    // One behind it shows that all of it was passed over.
    expect_refused(in_a_tree({{{0}, "\1\2"}, {{2}, "\3\4"}}, {id, kShuffle}),
                   "is stored with filter " + std::to_string(id));
  }
}

// Version 1 has names, filled up to 8 bytes, and fills an odd number of values up.
TEST(Hdf5Chunks, OldFilters) {
  for (const std::size_t name : {0U, 1U, 8U}) {
    for (const std::size_t values : {0U, 1U, 2U}) {
      File file;
      const std::uint64_t one = file.add(stored_zlib("\1\2\3\4"));
      const std::uint64_t tree =
          file.add("TREE" + le(1, 1) + le(0, 1) + le(1, 2) + le(kNone, 8) + le(kNone, 8) +
                   le(15, 4) + zeros(4) + zeros(16) + le(one, 8) + zeros(24));
      const std::string shuffle = le(kShuffle, 2) + le(name, 2) + zeros(2) + le(values, 2) +
                                  zeros((name + 7) / 8 * 8) + zeros((values + 1) / 2 * 8);
      const std::string gzip = le(kGzip, 2) + zeros(4) + zeros(2);
      const std::string bytes =
          with_dataset(file, kByte, space({4}),
                       {layout(le(3, 1) + le(2, 1) + le(2, 1) + le(tree, 8) + le(4, 4) + le(1, 4)),
                        {11, le(1, 1) + le(2, 1) + zeros(6) + shuffle + gzip}});
      EXPECT_EQ(bytes_of(bytes), (Bytes{1, 2, 3, 4})) << name << " " << values;
    }
  }
}

// Version 4 of the layout: [4] of bytes in chunks of `chunk`, with sizes of `width` bytes.
std::string new_layout(std::uint64_t chunk, std::uint64_t index, const std::string& place,
                       std::uint64_t flags = 0, std::size_t width = 1) {
  return le(4, 1) + le(2, 1) + le(flags, 1) + le(2, 1) + le(width, 1) + le(chunk, width) +
         le(1, width) + le(index, 1) + place;
}
constexpr std::uint64_t kSingle = 1, kImplicit = 2, kFixed = 3;

TEST(Hdf5Chunks, WithoutAnIndex) {
  File file;
  const std::uint64_t data = file.add("\1\2\3\4");
  const std::string packed = stored_zlib("\5\6\7\x08");
  const std::uint64_t deflated = file.add(packed);
  const auto with = [&](const std::string& bytes, const std::vector<std::uint16_t>& ids = {}) {
    std::vector<Text> more = {layout(bytes)};
    if (!ids.empty()) more.push_back(filters(ids));
    return with_dataset(file, kByte, space({4}), more);
  };
  for (std::size_t width = 1; width <= 8; ++width) {
    EXPECT_EQ(bytes_of(with(new_layout(4, kSingle, le(data, 8), 0, width))), (Bytes{1, 2, 3, 4}))
        << width;
  }
  for (const std::size_t width : {0U, 9U}) {
    expect_refused(with(new_layout(4, kSingle, le(data, 8), 0, width)), "has sizes of");
  }
  const std::string filtered = le(packed.size(), 8) + le(0, 4) + le(deflated, 8);
  EXPECT_EQ(bytes_of(with(new_layout(4, kSingle, filtered, 2), {kGzip})), (Bytes{5, 6, 7, 8}));
  const std::string skipped = le(4, 8) + le(1, 4) + le(data, 8);
  EXPECT_EQ(bytes_of(with(new_layout(4, kSingle, skipped, 2), {kGzip})), (Bytes{1, 2, 3, 4}));
  EXPECT_EQ(bytes_of(with(new_layout(2, kImplicit, le(data, 8)))), (Bytes{1, 2, 3, 4}));
  // The last chunk reaches beyond the dataset.
  EXPECT_EQ(bytes_of(with(new_layout(3, kImplicit, le(data, 8)))), (Bytes{1, 2, 3, 4}));
  expect_refused(with(new_layout(2, kImplicit, le(kNone, 8))), "has 0 of 2 chunks stored");
  expect_refused(with(new_layout(4, kSingle, le(kNone, 8))), "has 0 of 1 chunks stored");
  expect_refused(with(new_layout(4, kSingle, le(data, 8), 1)),
                 "has chunks at its ends without filters");
  expect_refused(with(new_layout(0, kSingle, le(data, 8))), "has chunks of 0");
  expect_refused(with(new_layout(std::uint64_t{1} << 32, kSingle, le(data, 8), 0, 8)),
                 "has chunks of 4294967296");
  // Of elements or of a rank that are not the dataset's.
  std::string other = new_layout(4, kSingle, le(data, 8));
  other[6] = 2;
  expect_refused(with(other), "has elements of 2 bytes, expected 1");
  other = new_layout(4, kSingle, le(data, 8));
  other[3] = 3;
  expect_refused(with(other), "has rank 3, expected 2");
}

struct FixedArray {
  std::uint64_t filtered = 0, entry_bytes = 8, page_bits = 2, entries = 4;
  std::string magic = "FAHD", block_magic = "FADB";
  std::uint8_t version = 0;
  bool has_block = true;

  // [4] in chunks of 1.
  std::string file() const {
    File out;
    std::string list;
    for (int i = 0; i < 4; ++i) {
      const std::string chunk(1, static_cast<char>(i + 1));
      list += le(out.add(filtered ? stored_zlib(chunk) : chunk), 8);
      if (filtered) list += le(12, static_cast<std::size_t>(entry_bytes) - 12) + le(0, 4);
    }
    const std::uint64_t block =
        has_block ? out.add(checked(block_magic + zeros(10) + list)) : kNone;
    const std::uint64_t head =
        out.add(checked(magic + le(version, 1) + le(filtered, 1) + le(entry_bytes, 1) +
                        le(page_bits, 1) + le(entries, 8) + le(block, 8)));
    std::vector<Text> more = {layout(new_layout(1, kFixed, le(10, 1) + le(head, 8)))};
    if (filtered) more.push_back(filters({kGzip}));
    return with_dataset(out, kByte, space({4}), more);
  }
};

TEST(Hdf5Chunks, OfAFixedArray) {
  EXPECT_EQ(bytes_of(FixedArray{}.file()), (Bytes{1, 2, 3, 4})) << "as many as one page holds";
  EXPECT_EQ(bytes_of(FixedArray{.page_bits = 62}.file()), (Bytes{1, 2, 3, 4}));
  for (std::uint64_t bytes = 13; bytes <= 20; ++bytes) {
    EXPECT_EQ(bytes_of(FixedArray{.filtered = 1, .entry_bytes = bytes}.file()), (Bytes{1, 2, 3, 4}))
        << bytes;
  }
  const std::pair<FixedArray, const char*> cases[] = {
      {{.page_bits = 1}, "has an index of 4 chunks in pages"},
      {{.page_bits = 63}, "has an index of 4 chunks in pages"},
      {{.entry_bytes = 7}, "has 4 entries of 7 bytes, expected 4 of 8 or more"},
      {{.entry_bytes = 16}, "has 4 entries of 16 bytes"},
      {{.filtered = 1, .entry_bytes = 21}, "has 4 entries of 21 bytes, expected 4 of 13 or more"},
      {{.entries = 3}, "has 3 entries of 8 bytes"},
      {{.entries = 5}, "has 5 entries of 8 bytes"},
      {{.magic = "FAHX"}, "has no 'FAHD'"},
      {{.block_magic = "FADX"}, "has no 'FADB'"},
      {{.version = 1}, "has version 1, expected 0"},
      {{.has_block = false}, "has 0 of 4 chunks stored"},
  };
  for (const auto& [array, what] : cases) expect_refused(array.file(), what);
  std::string filtered = FixedArray{.filtered = 1, .entry_bytes = 13}.file();
  filtered[filtered.find("FADB") + 5] ^= 1;
  expect_refused(filtered, "an array of chunks has checksum");
  std::string head = FixedArray{}.file();
  head[head.find("FAHD") + 5] ^= 1;
  expect_refused(head, "an array of chunks has checksum");
}

// Places past 32 bits are said as they are.
TEST(Hdf5Datasets, PlacesFarBehindTheFile) {
  File file;
  const std::uint64_t data = file.add("\1\2\3");
  constexpr std::uint64_t kFar = (std::uint64_t{1} << 33) + 7;
  const auto said = [&](const Text& layout, const Shape& shape) {
    return with_dataset(file, kByte, space(shape), {layout});
  };
  expect_refused(said(contiguous(kFar, 3), {3}),
                 "a dataset has 3 bytes at 8589934599, expected it inside the file of ");
  expect_refused(said(contiguous(data, kFar), {3}),
                 "has 8589934599 bytes, expected 3 of shape [3]");
  expect_refused(said(contiguous(data, kFar), {static_cast<std::int64_t>(kFar)}),
                 "a dataset has 8589934599 bytes at " + std::to_string(data));
  const Shape empty = {static_cast<std::int64_t>(kFar), 0};
  const Written written(said(contiguous(kNone, 0), empty));
  EXPECT_EQ(ModelFile(written.path()).read("d").shape(), empty);
}

}  // namespace
}  // namespace openrnn::formats
