// Groups of HDF5 made by hand: symbol tables of the old form, heaps and B-trees of the new one.
#include <gtest/gtest.h>

#include "formats/hdf5/hdf5_text.h"
#include "formats/hdf5/structure/fractal_heap.h"
#include "formats/hdf5/structure/objects.h"

namespace openrnn::formats {
namespace {

using namespace hdf5_text;

// ---- The old form ------------------------------------------------------------------------------

/// A root of the old form with the links 'a' and 'b' to the same damaged place, in two tables.
struct OldGroup {
  std::string names = std::string(8, '\0') + "a" + zeros(7) + "b" + zeros(7);
  std::uint64_t first = 8, second = 16;
  std::string tree_magic = "TREE", table_magic = "SNOD", heap_magic = "HEAP";
  std::uint8_t tree_type = 0, table_version = 1, heap_version = 0, level = 0, root_level = 1;
  std::uint32_t kind = 0;
  std::uint16_t header_version = 1;

  std::string tree(std::uint8_t at, const std::vector<std::uint64_t>& children) const {
    std::string out = tree_magic + le(tree_type, 1) + le(at, 1) + le(children.size(), 2) +
                      le(kNone, 8) + le(kNone, 8);
    for (const std::uint64_t child : children) out += le(0, 8) + le(child, 8);
    return out + le(0, 8);
  }
  std::string file() const {
    File out;
    std::vector<std::uint64_t> leaves;
    for (const std::uint64_t name : {first, second}) {
      const std::uint64_t object = out.add(hdf5_text::object({{5, "x"}}));
      const std::string entry = le(name, 8) + le(object, 8) + le(kind, 4) + zeros(20);
      const std::uint64_t table =
          out.add(table_magic + le(table_version, 1) + zeros(1) + le(1, 2) + entry);
      leaves.push_back(out.add(tree(level, {table})));
    }
    const std::uint64_t root = out.add(tree(root_level, leaves));
    const std::uint64_t data = out.add(names);
    const std::uint64_t heap = out.add(heap_magic + le(heap_version, 1) + zeros(3) +
                                       le(names.size(), 8) + le(1, 8) + le(data, 8));
    const std::string group = le(17, 2) + le(16, 2) + le(0, 4) + le(root, 8) + le(heap, 8);
    const std::uint64_t header = out.add(le(header_version, 2) + le(1, 2) + le(1, 4) +
                                         le(group.size(), 4) + zeros(4) + group);
    return out.finish(header, 0);
  }
};

std::string names_of(const std::string& bytes) {
  const MemorySource source("m", bytes);
  Hdf5File file(source);
  std::string names;
  for (const Hdf5Link& one : read_links(file, read_object(file, file.root()))) {
    names += one.name + " ";
  }
  return names;
}

TEST(Hdf5OldGroups, TablesOfATree) {
  EXPECT_EQ(names_of(OldGroup{}.file()), "a b ");
  // A name may end where the heap does.
  EXPECT_EQ(
      names_of(OldGroup{.names = std::string(8, '\0') + "a" + zeros(7) + "end" + zeros(1)}.file()),
      "a end ");
  EXPECT_EQ(names_of(OldGroup{.kind = 1}.file()), "a b ");
  const std::pair<OldGroup, const char*> cases[] = {
      {{.tree_magic = "TREX"}, "has no 'TREE'"},
      {{.table_magic = "SNOX"}, "has no 'SNOD'"},
      {{.heap_magic = "HEAX"}, "has no 'HEAP'"},
      {{.tree_type = 1}, "has type 1, expected 0"},
      {{.table_version = 0}, "a symbol table has version 0, expected 1"},
      {{.table_version = 2}, "a symbol table has version 2, expected 1"},
      {{.heap_version = 1}, "a local heap has version 1, expected 0"},
      {{.level = 1}, "has level 1, expected 0"},
      {{.root_level = 2}, "has level 0, expected 1"},
      {{.root_level = 0}, "has no 'SNOD'"},
      {{.kind = 2}, "'a' is a link to a name"},
      {{.header_version = 2}, "an object header has version 2, expected 1"},
      {{.second = 24}, "a name begins at 24 of a local heap of 24 bytes"},
      {{.names = std::string(8, '\0') + "a" + zeros(7) + "end"}, "expected it to end inside"},
      {{.second = 8}, "a name shares bytes with another"},
      {{.second = 9}, "a name shares bytes with another"},
      {{.second = 0}, "the name '' in a group is empty"},
      {{.names = std::string(8, '\0') + "a" + zeros(7) + "a" + zeros(7)}, "is there twice"},
  };
  for (const auto& [group, what] : cases) EXPECT_MESSAGE(Error, names_of(group.file()), what);
}

// Version 1 of an object header: each message has a head of 8 bytes, and it may go on elsewhere.
TEST(Hdf5OldGroups, MessagesOfAnOldHeader) {
  const auto with_flags = [](std::uint8_t flags, std::size_t rest) {
    File file;
    const std::string info = link_info().bytes;
    const std::string message = le(2, 2) + le(info.size(), 2) + le(flags, 1) + zeros(3) + info;
    // What is left at the end is less than a head.
    const std::uint64_t more = file.add(message + zeros(rest));
    const std::string all =
        le(16, 2) + le(16, 2) + zeros(4) + le(more, 8) + le(message.size() + rest, 8);
    const std::uint64_t header =
        file.add(le(1, 2) + le(2, 2) + le(1, 4) + le(all.size(), 4) + zeros(4) + all);
    return file.finish(header, 1);
  };
  for (const std::size_t rest : {0U, 1U, 7U}) EXPECT_EQ(names_of(with_flags(0, rest)), "") << rest;
  EXPECT_EQ(names_of(with_flags(1, 0)), "");
  EXPECT_MESSAGE(UnsupportedError, names_of(with_flags(2, 0)), "message 2 of an object is shared");
}

// ---- Heaps of the new form ---------------------------------------------------------------------

struct Heap {
  std::uint16_t id_bytes = 7, filters = 0;
  std::uint8_t flags = 0;
  std::uint32_t max_object = 4096;
  std::uint16_t width = 2;
  std::uint64_t start = 64, max_direct = 64;
  std::uint16_t bits = 16, rows = 0;
  // Of a block: the heap that it names, and where it begins, more than right.
  std::uint64_t other_heap = 0, shift = 0;
  bool damaged = false;
  std::string magic = "FHDB";

  std::size_t offset_bytes() const { return (bits + 7U) / 8; }
  // As large as it says, with its number in each byte.
  std::string direct(std::uint64_t heap, std::uint64_t first, std::uint64_t bytes) const {
    std::string out =
        magic + le(0, 1) + le(heap + other_heap, 8) + le(first + shift, offset_bytes());
    const std::size_t at = out.size();
    if (flags & 2u) out += zeros(4);
    out.resize(bytes, static_cast<char>('A' + first / start));
    if (flags & 2u) out.replace(at, 4, le(lookup3(out) + damaged, 4));
    return out;
  }
  std::string indirect(std::uint64_t heap, std::uint64_t first,
                       const std::vector<std::uint64_t>& children) const {
    std::string out =
        "FHIB" + le(0, 1) + le(heap + other_heap, 8) + le(first + shift, offset_bytes());
    for (const std::uint64_t child : children) out += le(child, 8);
    return checked(out);
  }
  std::string header(std::uint64_t root) const {
    return checked("FRHP" + le(0, 1) + le(id_bytes, 2) + le(filters, 2) + le(flags, 1) +
                   le(max_object, 4) + zeros(96) + le(width, 2) + le(start, 8) + le(max_direct, 8) +
                   le(bits, 2) + zeros(2) + le(root, 8) + le(rows, 2));
  }
  // The header comes first: blocks name its place.
  static constexpr std::uint64_t kAt = 104;
};

std::string id_of(std::uint64_t at, std::uint64_t bytes, std::size_t offset_bytes = 2,
                  std::size_t length_bytes = 1, std::uint8_t kind = 0) {
  return le(kind, 1) + le(at, offset_bytes) + le(bytes, length_bytes);
}

std::string found_in(const std::string& bytes, const std::vector<std::string>& ids) {
  const MemorySource source("m", bytes);
  Hdf5File file(source);
  FractalHeap heap(file, Heap::kAt);
  std::string found;
  for (const std::string& id : ids) found += std::string(heap.find(id).bytes) + " ";
  return found;
}

// A heap whose root is one block.
std::string one_block(const Heap& heap) {
  File file;
  const std::uint64_t at = file.next() + 152;
  file.add(heap.header(at));
  EXPECT_EQ(file.add(heap.direct(Heap::kAt, 0, heap.start)), at);
  return file.finish(0);
}

TEST(Hdf5Heaps, OfOneBlock) {
  EXPECT_EQ(found_in(one_block({}), {id_of(62, 2), id_of(40, 3), id_of(43, 0)}), "AA AAA  ");
  EXPECT_EQ(found_in(one_block({.flags = 2}), {id_of(63, 1)}), "A ");
  // How many bytes an offset and a length have.
  for (const auto& [bits, width] :
       {std::pair<std::uint16_t, std::size_t>{7, 1}, {8, 1}, {9, 2}, {16, 2}, {17, 3}, {63, 8}}) {
    EXPECT_EQ(found_in(one_block({.bits = bits}), {id_of(60, 2, width)}), "AA ") << bits;
  }
  for (const auto& [object, direct, width] :
       {std::tuple<std::uint32_t, std::uint64_t, std::size_t>{255, 1 << 16, 1},
        {256, 1 << 16, 2},
        {65535, 1 << 16, 2},
        {65536, 1 << 17, 3},
        {65536, 1 << 16, 2},
        {1 << 20, 256, 1},
        {1 << 20, 512, 2}}) {
    EXPECT_EQ(
        found_in(one_block({.max_object = object, .max_direct = direct}), {id_of(60, 2, 2, width)}),
        "AA ")
        << object << " " << direct;
  }
}

TEST(Hdf5Heaps, WhatIsRefused) {
  const std::pair<Heap, const char*> heaps[] = {
      {{.filters = 1}, "a fractal heap is compressed"},
      {{.width = 3},
       "has blocks of 64 to 64 bytes in rows of 3 and 16 bits, expected powers of two that fit"},
      {{.width = 0}, "expected powers of two that fit"},
      {{.start = 48}, "has blocks of 48 to 64 bytes in rows of 2 and 16 bits"},
      {{.max_direct = 96}, "expected powers of two that fit"},
      {{.max_direct = 32}, "expected powers of two that fit"},
      {{.bits = 0}, "expected powers of two that fit"},
      {{.bits = 64}, "expected powers of two that fit"},
      {{.rows = 17}, "expected powers of two that fit"},
      {{.other_heap = 1}, "is of another heap or place"},
      {{.shift = 1}, "is of another heap or place"},
      {{.flags = 2, .damaged = true}, "a block of a fractal heap has checksum"},
      {{.magic = "FHDX"}, "has no 'FHDB'"},
  };
  for (const auto& [heap, what] : heaps) EXPECT_MESSAGE(Error, found_in(one_block(heap), {}), what);
  const std::string good = one_block({});
  const std::pair<std::vector<std::string>, const char*> ids[] = {
      {{id_of(62, 3)}, "is outside of its blocks"},
      {{id_of(65, 0)}, "is outside of its blocks"},
      {{id_of(40, 2), id_of(41, 2)}, "shares bytes with another"},
      {{id_of(40, 2), id_of(39, 2)}, "shares bytes with another"},
      {{id_of(40, 2, 2, 1, 0x10)}, "an object of a fractal heap has type 16"},
      {{id_of(40, 2).substr(0, 3)}, "ends, expected 1 more bytes"},
  };
  for (const auto& [list, what] : ids) EXPECT_MESSAGE(Error, found_in(good, list), what);
  // An empty heap holds nothing.
  File file;
  file.add(Heap{}.header(kNone));
  EXPECT_MESSAGE(FormatError, found_in(file.finish(0), {id_of(0, 1)}), "is outside of its blocks");
}

// Rows of two blocks: 64 and 64, again 64 and 64, then 128 and 128 bytes.
std::string many_blocks(std::uint64_t max_direct) {
  const Heap heap{.max_direct = max_direct, .rows = 3};
  File file;
  const std::uint64_t root = file.next() + 152;
  file.add(heap.header(root));
  // The root's place is known before what lies below it.
  const std::size_t root_bytes = 4 + 1 + 8 + 2 + 6 * 8 + 4;
  File below = file;
  below.add(zeros(root_bytes));
  std::vector<std::uint64_t> children;
  for (const std::uint64_t first : {0U, 64U, 128U}) {
    children.push_back(below.add(heap.direct(Heap::kAt, first, 64)));
  }
  children.push_back(kNone);
  if (max_direct >= 128) {
    children.push_back(below.add(heap.direct(Heap::kAt, 256, 128)));
  } else {
    std::vector<std::uint64_t> inner;
    for (const std::uint64_t first : {256U, 320U}) {
      inner.push_back(below.add(heap.direct(Heap::kAt, first, 64)));
    }
    children.push_back(below.add(heap.indirect(Heap::kAt, 256, inner)));
  }
  children.push_back(kNone);
  std::string bytes = below.finish(0);
  bytes.replace(root, root_bytes, heap.indirect(Heap::kAt, 0, children));
  return bytes;
}

TEST(Hdf5Heaps, OfRows) {
  const std::vector<std::string> ids = {id_of(60, 1), id_of(64 + 60, 2), id_of(128 + 62, 2)};
  EXPECT_EQ(found_in(many_blocks(128), ids), "A BB CC ");
  EXPECT_EQ(found_in(many_blocks(64), ids), "A BB CC ");
  EXPECT_EQ(found_in(many_blocks(128), {id_of(256 + 100, 28)}), std::string(28, 'E') + " ");
  EXPECT_EQ(found_in(many_blocks(64), {id_of(256 + 62, 2), id_of(320 + 60, 4)}), "EE FFFF ");
  for (const std::uint64_t direct : {64U, 128U}) {
    EXPECT_MESSAGE(FormatError, found_in(many_blocks(direct), {id_of(192 + 60, 1)}),
                   "is outside of its blocks");
    EXPECT_MESSAGE(FormatError, found_in(many_blocks(direct), {id_of(60, 5)}),
                   "is outside of its blocks");
  }
}

// ---- B-trees of the new form -------------------------------------------------------------------

struct Tree {
  std::uint8_t type = 5, header_type = 5;
  std::uint32_t node_bytes = 64;
  std::uint16_t record_bytes = 2, depth = 0;
  std::string leaf_magic = "BTLF", inner_magic = "BTIN";

  std::string header(std::uint64_t root, std::uint64_t records) const {
    return checked("BTHD" + le(0, 1) + le(header_type, 1) + le(node_bytes, 4) +
                   le(record_bytes, 2) + le(depth, 2) + zeros(2) + le(root, 8) + le(records, 2) +
                   zeros(8));
  }
  std::string leaf(const std::string& records) const {
    return checked(leaf_magic + le(0, 1) + le(type, 1) + records);
  }
  /// Of each child its place, how many records it has, and how many with all below.
  std::string inner(const std::string& records,
                    const std::vector<std::pair<std::uint64_t, std::string>>& children) const {
    std::string out = inner_magic + le(0, 1) + le(type, 1) + records;
    for (const auto& [place, counts] : children) out += le(place, 8) + counts;
    return checked(out);
  }
};

std::string records_of(const File& file, std::uint64_t tree, std::uint64_t record_bytes = 2) {
  const std::string bytes = file.finish(0);
  const MemorySource source("m", bytes);
  Hdf5File opened(source);
  std::string found;
  for (const std::string& one : read_btree2(opened, tree, 5, record_bytes)) found += one + " ";
  return found;
}
std::string of_a_leaf(const Tree& tree, const std::string& records = "aabb") {
  File file;
  const std::uint64_t root = file.add(tree.leaf(records));
  return records_of(file, file.add(tree.header(root, records.size() / 2)));
}

TEST(Hdf5Trees, OfALeaf) {
  EXPECT_EQ(of_a_leaf({}), "aa bb ");
  EXPECT_EQ(of_a_leaf({.node_bytes = 12}, "aa"), "aa ") << "room for one";
  File empty;
  const std::uint64_t tree = empty.add(Tree{}.header(kNone, 0));
  EXPECT_EQ(records_of(empty, tree), "");
  const std::pair<Tree, const char*> cases[] = {
      {{.type = 6}, "has another type than its tree"},
      {{.header_type = 6}, "is of type 6 and depth 0"},
      {{.node_bytes = 11}, "in nodes of 11, expected type 5 with 2"},
      {{.record_bytes = 3}, "with records of 3 bytes"},
      {{.depth = 9}, "is of type 5 and depth 9"},
      {{.depth = 8}, "a B-tree has"},
      {{.node_bytes = 18, .depth = 1}, "a B-tree has nodes too small"},
      {{.leaf_magic = "BTLX"}, "has no 'BTLF'"},
  };
  for (const auto& [one, what] : cases) EXPECT_MESSAGE(Error, of_a_leaf(one), what);
}

// Beside a place as many bytes for a count as the most that a node can have needs.
TEST(Hdf5Trees, OfTwoLevels) {
  for (const auto& [node_bytes, count] :
       {std::pair<std::uint32_t, std::size_t>{64, 1}, {10 + 255 * 2, 1}, {10 + 256 * 2, 2}}) {
    const Tree tree{.node_bytes = node_bytes, .depth = 1};
    File file;
    const std::uint64_t left = file.add(tree.leaf("aabb")), right = file.add(tree.leaf("dd"));
    const std::uint64_t root =
        file.add(tree.inner("cc", {{left, le(2, count)}, {right, le(1, count)}}));
    EXPECT_EQ(records_of(file, file.add(tree.header(root, 1))), "aa bb cc dd ") << node_bytes;
  }
}

TEST(Hdf5Trees, OfThreeLevels) {
  // A leaf has room for 27, a node above for 4 or so: with all below it fits into one byte, or not.
  for (const auto& [node_bytes, totals] :
       {std::pair<std::uint32_t, std::size_t>{64, 1}, {128, 2}}) {
    const Tree tree{.node_bytes = node_bytes, .depth = 2};
    File file;
    const std::uint64_t left = file.add(tree.leaf("aa")), right = file.add(tree.leaf("cc"));
    const std::uint64_t middle = file.add(tree.inner("bb", {{left, le(1, 1)}, {right, le(1, 1)}}));
    const std::uint64_t last = file.add(tree.leaf("ee")),
                        end = file.add(tree.inner("", {{last, le(1, 1)}}));
    const std::uint64_t root = file.add(
        tree.inner("dd", {{middle, le(1, 1) + le(3, totals)}, {end, le(0, 1) + le(1, totals)}}));
    EXPECT_EQ(records_of(file, file.add(tree.header(root, 1))), "aa bb cc dd ee ") << node_bytes;
  }
  // A place of one's own for each node.
  const Tree tree{.depth = 1};
  File file;
  const std::uint64_t leaf = file.add(tree.leaf("aa"));
  const std::uint64_t root = file.add(tree.inner("cc", {{leaf, le(1, 1)}, {leaf, le(1, 1)}}));
  const std::uint64_t header = file.add(tree.header(root, 1));
  EXPECT_MESSAGE(FormatError, records_of(file, header), "some of which are used already");
}

}  // namespace
}  // namespace openrnn::formats
