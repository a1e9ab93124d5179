// What an HDF5 file of many members has: names in heaps, trees of chunks of two levels, many texts.
#include <gtest/gtest.h>

#include "formats/hdf5/hdf5_text.h"
#include "formats/hdf5/image/image.h"
#include "formats/hdf5/structure/fractal_heap.h"
#include "support/expect_error.h"

namespace openrnn::formats {
namespace {

using namespace hdf5_text;

const std::string kByte = integer(1, false);

// ---- Members in a heap -------------------------------------------------------------------------

/// Where the heap of some objects is, and the tree that lists them.
struct Dense {
  std::uint64_t heap = 0, tree = 0;
};
constexpr std::uint8_t kLinks = 5, kAttributes = 8;

Dense add_dense(File* file, std::uint8_t type, const std::vector<std::string>& objects) {
  constexpr std::uint64_t kHeader = 152, kBytes = 512;
  const Dense dense{.heap = file->next(), .tree = 0};
  std::string block = "FHDB" + le(0, 1) + le(dense.heap, 8) + le(0, 2), records;
  for (const std::string& object : objects) {
    std::string id = le(0, 1) + le(block.size(), 2) + le(object.size(), 2);
    id.resize(type == kLinks ? 7 : 8, '\0');
    records += type == kLinks ? zeros(4) + id : id + zeros(9);
    block += object;
  }
  block.resize(kBytes, '\0');
  file->add(checked("FRHP" + le(0, 1) + le(type == kLinks ? 7 : 8, 2) + le(0, 2) + le(0, 1) +
                    le(4096, 4) + zeros(96) + le(2, 2) + le(kBytes, 8) + le(kBytes, 8) + le(16, 2) +
                    zeros(2) + le(dense.heap + kHeader, 8) + le(0, 2)));
  EXPECT_EQ(file->add(block), dense.heap + kHeader);
  const std::size_t record_bytes = type == kLinks ? 11 : 17;
  const std::uint64_t leaf = file->add(checked("BTLF" + le(0, 1) + le(type, 1) + records));
  const std::uint64_t tree =
      file->add(checked("BTHD" + le(0, 1) + le(type, 1) + le(512, 4) + le(record_bytes, 2) +
                        le(0, 2) + zeros(2) + le(leaf, 8) + le(objects.size(), 2) + zeros(8)));
  return {dense.heap, tree};
}

// The flags say whether the largest index of creation is in front of the addresses.
Text info_of(std::uint8_t type, const Dense& dense, std::uint8_t flags, std::size_t index_bytes) {
  return {type, le(0, 1) + le(flags, 1) + (flags & 1u ? le(5, index_bytes) : "") +
                    le(dense.heap, 8) + le(dense.tree, 8)};
}

TEST(Hdf5Dense, LinksAreListedByTheirNames) {
  for (const std::uint8_t flags : {0, 1}) {
    File file;
    std::vector<std::string> links;
    for (const char* name : {"b", "c", "a"}) {
      const std::uint64_t data = file.add(name);
      links.push_back(
          link(name, file.add(object({{3, kByte}, {1, space({1})}, contiguous(data, 1)}))).bytes);
    }
    const Dense dense = add_dense(&file, kLinks, links);
    const Written written(file.finish(file.add(object({info_of(2, dense, flags, 8)}))));
    const ModelFile model(written.path());
    std::string found;
    for (const TensorInfo& info : model.tensors()) {
      found += info.name + model.read_bytes(info.name) + " ";
    }
    EXPECT_EQ(found, "aa bb cc ");
  }
}

TEST(Hdf5Dense, AttributesAreListedByTheirNames) {
  for (const std::uint8_t flags : {0, 1}) {
    File file;
    std::vector<std::string> attributes;
    for (const std::uint8_t value : {2, 3, 1}) {
      const std::string name(1, static_cast<char>('a' + value));
      attributes.push_back(attribute(name, kByte, space({}), le(value, 1)).bytes);
    }
    const Dense dense = add_dense(&file, kAttributes, attributes);
    const Written written(with_root(file, {info_of(0x15, dense, flags, 2)}));
    const ModelFile model(written.path());
    ASSERT_EQ(model.values().size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(model.values()[i].name, std::string(1, static_cast<char>('b' + i)));
      EXPECT_EQ(model.values()[i].value, PlainValue(static_cast<std::int64_t>(i + 1)));
    }
  }
  // An object that could have had many, and has none.
  const Written none(with_root({}, {info_of(0x15, {kNone, kNone}, 0, 2)}));
  EXPECT_TRUE(ModelFile(none.path()).values().empty());
  File file;
  const std::string one = attribute("a", kByte, space({}), le(1, 1)).bytes;
  const Dense twice = add_dense(&file, kAttributes, {one, one});
  expect_unreadable(with_root(file, {info_of(0x15, twice, 0, 2)}), "has the name 'a' of another");
}

// A row of four blocks of 64 bytes is larger than a block of 128, which then has no rows of its
// own.
TEST(Hdf5Dense, AChildWithoutRows) {
  File file;
  const std::uint64_t heap = file.next(), root = heap + 152;
  file.add(checked("FRHP" + le(0, 1) + le(7, 2) + le(0, 2) + le(0, 1) + le(4096, 4) + zeros(96) +
                   le(4, 2) + le(64, 8) + le(64, 8) + le(16, 2) + zeros(2) + le(root, 8) +
                   le(3, 2)));
  std::string rows = "FHIB" + le(0, 1) + le(heap, 8) + le(0, 2);
  for (int child = 0; child < 12; ++child) rows += le(child == 8 ? 104 : kNone, 8);
  EXPECT_EQ(file.add(checked(rows)), root);
  const std::string bytes = file.finish(0);
  const MemorySource source("m", bytes);
  Hdf5File opened(source);
  EXPECT_MESSAGE(FormatError, FractalHeap(opened, heap), "has a child without rows, expected some");
}

// A heap of rows of one block that is all root, and an indirect block with these fields.
struct Rows {
  std::uint64_t start = 64, most = 64, rows = 2;
  std::uint64_t said_heap = 0, said_place = 0;  // added to the right ones
  std::string error() const {
    File file;
    const std::uint64_t heap = file.next(), root = heap + 152;
    file.add(checked("FRHP" + le(0, 1) + le(7, 2) + le(0, 2) + le(0, 1) + le(4096, 4) + zeros(96) +
                     le(1, 2) + le(start, 8) + le(most, 8) + le(63, 2) + zeros(2) + le(root, 8) +
                     le(rows, 2)));
    std::string block = "FHIB" + le(0, 1) + le(heap + said_heap, 8) + le(said_place, 8);
    for (std::uint64_t row = 0; row < rows; ++row) block += le(kNone, 8);
    EXPECT_EQ(file.add(checked(block)), root);
    const std::string bytes = file.finish(0);
    const MemorySource source("m", bytes);
    Hdf5File opened(source);
    return error_of<FormatError>([&] { FractalHeap(opened, heap); });
  }
};

TEST(Hdf5Dense, AnIndirectBlockOfAnotherHeapOrPlace) {
  EXPECT_EQ(Rows{}.error(), "");
  const std::string what =
      "an indirect block of a fractal heap is of another heap or place, expected this one";
  EXPECT_NE(Rows{.said_heap = 8}.error().find(what), std::string::npos);
  EXPECT_NE(Rows{.said_place = 1}.error().find(what), std::string::npos);
}

// Rows of 1, 1, 2, 4, ... times 2^40 bytes.
TEST(Hdf5Dense, RowsOfTooManyBytes) {
  constexpr std::uint64_t kStart = std::uint64_t{1} << 40;
  EXPECT_EQ((Rows{.start = kStart, .most = kStart, .rows = 24}.error()), "");
  EXPECT_NE((Rows{.start = kStart, .most = kStart, .rows = 25}.error())
                .find("an indirect block of a fractal heap is beyond 2^64 bytes, expected fewer"),
            std::string::npos);
}

TEST(Hdf5Dense, ABlockWithoutRoomForAChecksum) {
  const std::string bytes = with_root(File(), {});
  const MemorySource source("m", bytes);
  const Hdf5File file(source);
  EXPECT_EQ(error_of<FormatError>([&] { check_lookup3(file, 3, "abc", "a part"); }),
            "[m @ 3] a part has no checksum, expected one");
}

// Each string of a heap is that of one value.
TEST(Hdf5Dense, AStringOfTwoValues) {
  File file;
  const std::string objects = le(1, 2) + le(1, 2) + zeros(4) + le(3, 8) + "abc" + zeros(5) +
                              le(2, 2) + le(1, 2) + zeros(4) + le(3, 8) + "def" + zeros(5) +
                              zeros(16);
  const std::uint64_t heap =
      file.add("GCOL" + le(1, 1) + zeros(3) + le(16 + objects.size(), 8) + objects);
  const auto texts = [&](std::uint64_t first, std::uint64_t second) {
    std::vector<Text> messages;
    for (const std::uint64_t index : {first, second}) {
      messages.push_back(attribute(messages.empty() ? "a" : "b", variable_text(), space({}),
                                   le(3, 4) + le(heap, 8) + le(index, 4)));
    }
    return with_root(file, messages);
  };
  const Written written(texts(2, 1));
  const ModelFile model(written.path());
  EXPECT_EQ(model.values().at(0).value, PlainValue(std::string("def")));
  EXPECT_EQ(model.values().at(1).value, PlainValue(std::string("abc")));
  expect_unreadable(texts(1, 1), "object 1 of the global heap is not there, or used twice");
}

// ---- Chunks ------------------------------------------------------------------------------------

std::string node_of_chunks(std::uint8_t level, const std::vector<std::uint64_t>& firsts,
                           const std::vector<std::uint64_t>& children) {
  std::string out =
      "TREE" + le(1, 1) + le(level, 1) + le(firsts.size(), 2) + le(kNone, 8) + le(kNone, 8);
  for (std::size_t i = 0; i < firsts.size(); ++i) {
    out += le(2, 4) + le(0, 4) + le(firsts[i], 8) + le(0, 8) + le(children[i], 8);
  }
  return out + zeros(24);
}

// [6] of bytes in chunks of 2, behind a tree at this place.
std::string in_chunks(const File& file, std::uint64_t tree) {
  return with_dataset(file, kByte, space({6}),
                      {layout(le(3, 1) + le(2, 1) + le(2, 1) + le(tree, 8) + le(2, 4) + le(1, 4))});
}

// [6] of bytes behind a root of one level and two nodes of another.
std::string in_levels(std::uint8_t root_level, std::uint8_t level) {
  File file;
  std::vector<std::uint64_t> data;
  for (const char* bytes : {"ab", "cd", "ef"}) data.push_back(file.add(bytes));
  const std::uint64_t left = file.add(node_of_chunks(level, {0, 2}, {data[0], data[1]})),
                      right = file.add(node_of_chunks(level, {4}, {data[2]})),
                      root = file.add(node_of_chunks(root_level, {0, 4}, {left, right}));
  return in_chunks(file, root);
}

TEST(Hdf5Dense, ATreeOfChunksOfTwoLevels) {
  const Written written(in_levels(1, 0));
  EXPECT_EQ(ModelFile(written.path()).read_bytes("d"), "abcdef");
  // Each level is one below that of its parent, neither the same nor two below.
  const std::pair<std::uint8_t, std::uint8_t> wrong[] = {{1, 1}, {1, 2}, {2, 0}, {3, 0}, {255, 0}};
  for (const auto& [root_level, level] : wrong) {
    expect_unreadable(in_levels(root_level, level), "a B-tree of chunks has type 1 and level " +
                                                        std::to_string(level) +
                                                        ", expected type 1 one level down");
  }
}

// Three levels, of which the one in the middle has one node.
TEST(Hdf5Dense, ATreeOfChunksOfThreeLevels) {
  File file;
  std::vector<std::uint64_t> data;
  for (const char* bytes : {"ab", "cd", "ef"}) data.push_back(file.add(bytes));
  const std::uint64_t left = file.add(node_of_chunks(0, {0, 2}, {data[0], data[1]})),
                      right = file.add(node_of_chunks(0, {4}, {data[2]})),
                      middle = file.add(node_of_chunks(1, {0, 4}, {left, right})),
                      root = file.add(node_of_chunks(2, {0}, {middle}));
  const Written written(in_chunks(file, root));
  EXPECT_EQ(ModelFile(written.path()).read_bytes("d"), "abcdef");
}

TEST(Hdf5Dense, NoChunksAtAll) {
  expect_unreadable(in_chunks({}, kNone), "the dataset 'd' has 0 of 3 chunks stored");
  // Version 4, with an array of chunks.
  const std::string fixed = le(4, 1) + le(2, 1) + le(0, 1) + le(2, 1) + le(1, 1) + le(2, 1) +
                            le(1, 1) + le(3, 1) + le(10, 1) + le(kNone, 8);
  expect_unreadable(with_dataset({}, kByte, space({6}), {layout(fixed)}),
                    "the dataset 'd' has 0 of 3 chunks stored");
}

// ---- What is written ---------------------------------------------------------------------------

// A collection numbers its strings with 16 bits.
TEST(Hdf5Dense, AsManyTextsAsACollectionHolds) {
  const auto make = [](std::size_t count) {
    std::vector<NamedValue> values;
    for (std::size_t i = 0; i < count; ++i) {
      values.push_back({"g" + std::to_string(i / 256) + "/" + std::to_string(i), std::string("x")});
    }
    return make_hdf5_image("call", {}, values).bytes();
  };
  EXPECT_GT(make(65535), 65535U * 24);
  EXPECT_EQ(thrown<ArgumentError>([&] { make(65536); }),
            "[call] 'x' is one string too many for one collection");
}

TEST(Hdf5Dense, NamesThatAreNoPaths) {
  const Array one(DType::kFloat32, {1});
  const auto said = [&](const std::string& name) {
    return thrown<ArgumentError>([&] {
      make_hdf5_image("call", std::vector<NamedView>{{name, one.view()}}, {});
    });
  };
  const std::string no_path = "' is no path, expected short names between single '/'";
  for (const std::string name : {"/a", "a/", "a//b", "./a", "a/."}) {
    EXPECT_EQ(said(name), "[call] '" + name + no_path);
  }
  EXPECT_TRUE(said(std::string(1025, 'n')).ends_with(no_path));
  make_hdf5_image("call", std::vector<NamedView>{{std::string(1024, 'n'), one.view()}}, {});
  const auto value = [&](const std::string& name) {
    return thrown<ArgumentError>([&] {
      make_hdf5_image("call", {}, std::vector<NamedValue>{{name, std::int64_t{1}}});
    });
  };
  const std::string no_name = "is no name of an attribute or there twice, expected unequal ones";
  for (const std::string name : {"", "g/", "\n", "g/\xff"}) {
    EXPECT_TRUE(value(name).ends_with(no_name)) << value(name);
  }
  EXPECT_TRUE(value("g/" + std::string(1025, 'n')).ends_with(no_name));
}

}  // namespace
}  // namespace openrnn::formats
