#include "formats/table/table.h"

#include <gtest/gtest.h>
#include <leveldb/env.h>
#include <leveldb/options.h>
#include <leveldb/table_builder.h>

#include <random>

#include "base/crc/crc32c.h"
#include "formats/coding.h"
#include "formats/table/snappy.h"
#include "formats/temp_folder.h"

namespace openrnn::formats {
namespace {

using namespace std::string_literals;
using Entries = std::map<std::string, std::string>;

Entries read_all(std::string_view bytes, bool verify = true) {
  Entries found;
  read_table(MemorySource("t.index", bytes), verify,
             [&](std::string_view key, std::string_view value, std::uint64_t) {
               EXPECT_TRUE(found.emplace(key, value).second);
             });
  return found;
}

Entries sample(int count) {
  Entries entries{{"", "header"}};
  for (int i = 0; i < count; ++i) {
    entries["scope/" + std::to_string(i * 7919 % 1000)] =
        std::string(static_cast<std::size_t>(i), 'v');
  }
  return entries;
}

class StringFile : public leveldb::WritableFile {
 public:
  leveldb::Status Append(const leveldb::Slice& data) override {
    bytes.append(data.data(), data.size());
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }

  std::string bytes;
};

// As LevelDB itself writes it.
std::string leveldb_table(const Entries& entries, std::size_t block_size, bool snappy) {
  leveldb::Options options;
  options.block_size = block_size;
  options.block_restart_interval = 16;
  options.compression = snappy ? leveldb::kSnappyCompression : leveldb::kNoCompression;
  StringFile file;
  leveldb::TableBuilder builder(options, &file);
  for (const auto& [key, value] : entries) builder.Add(key, value);
  EXPECT_TRUE(builder.Finish().ok());
  return file.bytes;
}

std::string with_trailer(std::string block, char type = '\0') {
  block += type;
  put_fixed(&block, mask_crc(crc32c(block)));
  return block;
}

std::string block_of(std::string entries, std::uint32_t restarts = 1) {
  put_fixed(&entries, std::uint32_t{0});
  put_fixed(&entries, restarts);
  return entries;
}

std::string entry(std::uint64_t shared, std::uint64_t non_shared, std::uint64_t value_size,
                  const std::string& rest) {
  std::string bytes;
  for (const std::uint64_t field : {shared, non_shared, value_size}) put_varint64(&bytes, field);
  return bytes + rest;
}

std::string handle(std::uint64_t offset, std::uint64_t size) {
  std::string bytes;
  put_varint64(&bytes, offset);
  put_varint64(&bytes, size);
  return bytes;
}

// Data blocks as a table, by the index and the footer.
std::string with_index(const std::string& file, const std::string& index) {
  std::string footer = handle(0, 0) + handle(file.size(), index.size());
  footer.resize(40);
  put_fixed(&footer, std::uint64_t{0xdb4775248b80fb57u});
  return file + with_trailer(index) + footer;
}

// A table of one data block with right checksums; `block_handle` replaces the right one.
std::string table_of(const std::string& block, std::string block_handle = "") {
  if (block_handle.empty()) block_handle = handle(0, block.size());
  return with_index(with_trailer(block),
                    block_of(entry(0, 1, block_handle.size(), "z" + block_handle)));
}

TEST(Table, RoundTripInOneAndInManyBlocksRawAndSnappy) {
  for (const int count : {0, 1, 15, 16, 17, 200}) {
    for (const std::size_t block_size : {std::size_t{1}, std::size_t{500}, std::size_t{262144}}) {
      const Entries entries = sample(count);
      EXPECT_EQ(read_all(build_table(entries, block_size)), entries);
      for (const bool snappy : {false, true}) {
        EXPECT_EQ(read_all(leveldb_table(entries, block_size, snappy)), entries);
      }
    }
  }
}

TEST(Table, SnappyBlocksAreReallyCompressed) {
  const Entries entries = sample(200);
  EXPECT_LT(leveldb_table(entries, 262144, true).size(), build_table(entries).size() / 2);
}

// Keys of few different bytes, so that they share much and separators have little room.
Entries close_keys(unsigned seed, int count) {
  std::minstd_rand random(seed);
  Entries entries;
  for (int i = 0; i < count; ++i) {
    std::string key(random() % 9, '\0');
    for (char& byte : key) byte = "\0ab\x7f\x80\xfe\xff"[random() % 7];
    entries[key] = std::string(random() % 40, 'v');
  }
  return entries;
}

TEST(Table, TheBytesOfLevelDb) {
  for (const int count : {0, 1, 15, 16, 17, 33, 200}) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      for (const std::size_t block_size : {std::size_t{1}, std::size_t{300}, std::size_t{262144}}) {
        const Entries entries = seed ? close_keys(seed, count) : sample(count);
        EXPECT_EQ(build_table(entries, block_size), leveldb_table(entries, block_size, false))
            << count << " " << seed << " " << block_size;
      }
    }
  }
}

// Blocks are of TensorFlow's size where nobody says another.
TEST(Table, SizeOfBlocks) {
  Entries entries;
  for (int i = 0; i < 300; ++i) {
    entries["scope/" + std::to_string(1000 + i)] = std::string(1000, static_cast<char>(i));
  }
  EXPECT_EQ(build_table(entries), leveldb_table(entries, 262144, false));
}

TEST(Table, ChecksumsAreComparedWhereTheyShallBe) {
  const Entries entries = sample(40);
  const std::string bytes = build_table(entries, 200);
  bool found = false;
  for (std::size_t at = 0; at < bytes.size() && !found; ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    try {
      found = read_all(damaged, false) == entries;
    } catch (const Error&) {
      continue;
    }
    if (found) EXPECT_MESSAGE(FormatError, read_all(damaged), "a block has checksum ");
  }
  EXPECT_TRUE(found) << "a byte that nothing but the comparison reads";
}

TEST(Table, EveryCutIsFound) {
  const std::string bytes = build_table(sample(20));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(read_all(std::string_view(bytes).substr(0, size)), FormatError) << size;
  }
}

TEST(Table, EveryFlippedBitIsFoundOrChangesNothing) {
  const Entries entries = sample(20);
  std::string bytes = build_table(entries);
  int found = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(bytes[i] ^ 0x10);
    try {
      EXPECT_EQ(read_all(bytes), entries) << i;  // the unused metaindex and the footer's padding
    } catch (const FormatError&) {
      ++found;
    }
    try {
      read_all(bytes, false);  // without checksums anything may come, but nothing may break
    } catch (const FormatError&) {
    }
    bytes[i] = static_cast<char>(bytes[i] ^ 0x10);
  }
  EXPECT_GT(found, static_cast<int>(bytes.size()) - 64);
}

TEST(Table, HostileLengthsWithRightChecksums) {
  EXPECT_EQ(read_all(table_of(block_of(entry(0, 1, 2, "kvv")))), (Entries{{"k", "vv"}}));
  const std::uint64_t wrap = 0xffffffffu;
  for (const std::string& bad :
       {entry(0, wrap, 2, "ab"), entry(0, 1, wrap, "ab"), entry(1, 1, 1, "ab"),
        entry(wrap, 1, 1, "ab"), entry(0, std::uint64_t{1} << 32, 1, "ab"), std::string("\x80")}) {
    EXPECT_MESSAGE(FormatError, read_all(table_of(block_of(bad))),
                   "[t.index @ 0] an entry of this block is cut");
  }
  const std::string good = block_of(entry(0, 1, 1, "kv"));
  EXPECT_MESSAGE(FormatError, read_all(table_of(block_of("", 0x7fffffff))),
                 "[t.index @ 0] a block of 8 bytes claims 2147483647 restarts");
  EXPECT_MESSAGE(FormatError, read_all(table_of("ab")), "shorter than its restart count");
  EXPECT_MESSAGE(FormatError, read_all(table_of(good, handle(7, ~std::uint64_t{4}))),
                 "a block handle says 18446744073709551611 bytes at 7, expected a block inside the "
                 "file of");
  EXPECT_MESSAGE(FormatError, read_all(table_of(good, handle(~std::uint64_t{0}, 4))),
                 "expected a block inside the file");
  EXPECT_MESSAGE(FormatError, read_all(table_of(good, "\x80")), "handle is cut short");
  EXPECT_MESSAGE(FormatError, read_all(table_of(good, handle(1, good.size()))),
                 "[t.index @ 1] a block has checksum");
  std::string wrong = table_of(good);
  std::uint32_t sum = 0;
  std::memcpy(&sum, wrong.data() + good.size() + 1, sizeof sum);
  wrong[good.size() + 1] = static_cast<char>(wrong[good.size() + 1] ^ 1);
  EXPECT_MESSAGE(FormatError, read_all(wrong),
                 "[t.index @ 0] a block has checksum " + std::to_string(sum) + ", expected " +
                     std::to_string(sum ^ 1u));
}

// Of 40 bytes, in which a handle takes two here: that of the metaindex, then that of the index.
TEST(Table, HandlesThatDoNotEndInTheFooter) {
  const std::string good = table_of(block_of(entry(0, 1, 2, "kvv")));
  const std::size_t footer = good.size() - 48;
  for (const std::size_t begin : {0U, 2U}) {
    std::string bad = good;
    bad.replace(footer + begin, 40 - begin, 40 - begin, '\x80');
    EXPECT_MESSAGE(FormatError, read_all(bad),
                   "[t.index @ " + std::to_string(footer) + "] the footer's block handles are cut");
  }
}

TEST(Table, UnsortedKeysAreRefused) {
  EXPECT_MESSAGE(FormatError,
                 read_all(table_of(block_of(entry(0, 1, 1, "bv") + entry(0, 1, 1, "av")))),
                 "keys do not ascend");
  EXPECT_MESSAGE(FormatError,
                 read_all(table_of(block_of(entry(0, 1, 1, "av") + entry(1, 0, 1, "v")))),
                 "keys do not ascend");
}

TEST(Table, ShortEntriesThatMakeLongKeysAreRefused) {
  std::string entries = entry(0, 1000, 0, std::string(1000, 'k'));
  for (std::uint64_t i = 0; i < 3000; ++i) entries += entry(1000 + i, 1, 0, "k");
  EXPECT_MESSAGE(FormatError, read_all(table_of(block_of(entries))), "beyond belief");
}

TEST(Table, SomethingElseAltogether) {
  EXPECT_MESSAGE(FormatError, read_all(""),
                 "[t.index @ 0] the file has 0 bytes, expected a checkpoint index of 48 or more");
  EXPECT_MESSAGE(FormatError, read_all(std::string(4096, 'x')), "not a checkpoint index");
}

TEST(Snappy, EveryKindOfElement) {
  EXPECT_EQ(snappy_decompress("\0"s), "");
  EXPECT_EQ(snappy_decompress("\x03\x08"s + "abc"), "abc");
  // A copy of 4 to 11 bytes from a short offset, overlapping what it makes.
  EXPECT_EQ(snappy_decompress("\x09\x04"s + "ab" + "\x0d\x02"s), "ababababa");
  // Two-byte offset, then four-byte offset.
  EXPECT_EQ(snappy_decompress("\x05\x08"s + "xyz" + "\x06\x03\x00"s), "xyzxy");
  EXPECT_EQ(snappy_decompress("\x05\x08"s + "xyz" + "\x07\x02\x00\x00\x00"s), "xyzyz");
}

TEST(Snappy, LongLiterals) {
  const std::string text(300, 'q');
  EXPECT_EQ(snappy_decompress("\xac\x02\xf4\x2b\x01"s + text), text);
  const std::string longer(70000, 'r');
  EXPECT_EQ(snappy_decompress("\xf0\xa2\x04\xf8\x6f\x11\x01"s + longer), longer);
}

TEST(Snappy, CopyWithElevenBitOffset) {
  std::string plain;
  for (int i = 0; i < 300; ++i) plain += static_cast<char>(i % 251);
  // Four bytes from 290 back: 290 = 1 << 8 | 34.
  const std::string compressed = "\xb0\x02\xf4\x2b\x01"s + plain + "\x21\x22"s;
  EXPECT_EQ(snappy_decompress(compressed), plain + plain.substr(10, 4));
}

TEST(Snappy, DamageIsRefused) {
  EXPECT_FALSE(snappy_decompress(""));
  EXPECT_FALSE(snappy_decompress("\x04\x08"s + "abc")) << "shorter than it says";
  EXPECT_FALSE(snappy_decompress("\x02\x08"s + "abc")) << "longer than it says";
  EXPECT_FALSE(snappy_decompress("\x03\x08"s + "ab")) << "literal cut";
  EXPECT_FALSE(snappy_decompress("\x06\x04"s + "ab" + "\x01\x00"s)) << "offset 0";
  EXPECT_FALSE(snappy_decompress("\x06\x04"s + "ab" + "\x01\x03"s)) << "before the start";
  EXPECT_FALSE(snappy_decompress("\x05\x04"s + "ab" + "\x01\x02"s)) << "copy past the end";
  EXPECT_FALSE(snappy_decompress("\x06\x04"s + "ab" + "\x01"s)) << "offset cut";
  EXPECT_FALSE(snappy_decompress("\xff\xff\xff\xff\x0f"s)) << "claims 4 GiB";
  EXPECT_FALSE(snappy_decompress("\x01\xfc\xff\xff\xff\xff"s + "a")) << "literal of 4 GiB";
}

// The limits of each kind of element, from both sides.
TEST(Snappy, Limits) {
  EXPECT_EQ(snappy_decompress("\x04\x00"s + "a" + "\x0a\x01\x00"s), "aaaa") << "as far as there is";
  EXPECT_FALSE(snappy_decompress("\x04\x00"s + "a" + "\x0a\x02\x00"s)) << "one too far";
  EXPECT_FALSE(snappy_decompress("\x03\x00"s + "a" + "\x0a\x01\x00"s)) << "one too long";
  EXPECT_FALSE(snappy_decompress("\x04\x00"s + "a" + "\x0a\x01"s)) << "half an offset";
  EXPECT_FALSE(snappy_decompress("\x04\x00"s + "a" + "\x0b\x01\x00\x00"s)) << "three quarters";
  // Up to 60 the length is in the tag, then in one byte to four.
  const std::string sixty(60, 'q'), more(61, 'q');
  EXPECT_EQ(snappy_decompress("\x3c\xec"s + sixty), sixty);
  EXPECT_EQ(snappy_decompress("\x3d\xf0\x3c"s + more), more);
  EXPECT_EQ(snappy_decompress("\x3d\xfc\x3c\0\0\0"s + more), more);
  EXPECT_FALSE(snappy_decompress("\x3d\xfc\x3c\0\0"s));
  // 11 bytes are the most of a short copy, 64 of the others.
  EXPECT_EQ(snappy_decompress("\x0c\x00"s + "a" + "\x1d\x01"s), std::string(12, 'a'));
  EXPECT_EQ(snappy_decompress("\x41\x00"s + "a" + "\xfe\x01\x00"s), std::string(65, 'a'));
  // So three bytes make 64 at most: what is said to be more is refused before it is read.
  std::string dense = "\x81\x32\x00"s + "a";  // 6401 bytes
  for (int i = 0; i < 100; ++i) dense += "\xfe\x01\x00"s;
  EXPECT_EQ(snappy_decompress(dense), std::string(6401, 'a'));
  EXPECT_FALSE(snappy_decompress("\x81\x32\x00"s + "a"));
}

TEST(Table, BlocksAtTheirLimits) {
  const std::string one = entry(0, 1, 1, "kv");
  // A block whose restarts are all that it has.
  EXPECT_TRUE(read_all(table_of(block_of("", 1))).empty());
  EXPECT_MESSAGE(FormatError, read_all(table_of(block_of("", 2))), "a block of 8 bytes claims 2");
  EXPECT_TRUE(read_all(table_of(std::string(4, '\0'))).empty());
  // The type of a block is that of its trailer: 0 is plain, 1 snappy, and there is no other.
  const auto of_type = [](char type, const std::string& block) {
    const std::string whole = with_trailer(block, type);
    return table_of(block).replace(0, whole.size(), whole);
  };
  EXPECT_EQ(read_all(of_type(0, block_of(one))).size(), 1U);
  for (const char type : {'\2', '\x7f'}) {
    EXPECT_MESSAGE(FormatError, read_all(of_type(type, block_of(one))),
                   "block compression " + std::to_string(type) + ", expected 0 or 1");
  }
  EXPECT_MESSAGE(FormatError, read_all(of_type(1, block_of(one))),
                 "a snappy block does not decompress");
}

// Keys that share their beginnings are larger than the block; there is an end to that.
TEST(TableReader, KeysThatExpand) {
  const auto keys = [](std::size_t count) {
    std::string entries = entry(0, 1000, 0, std::string(1000, 'k'));
    for (std::size_t i = 0; i < count; ++i) entries += entry(1000 + i, 1, 0, "k");
    return table_of(block_of(entries));
  };
  const Entries found = read_all(keys(80));
  EXPECT_EQ(found.size(), 81U);
  EXPECT_TRUE(found.contains(std::string(1080, 'k')));
  EXPECT_MESSAGE(FormatError, read_all(keys(120)),
                 "[t.index @ 0] the keys of this block expand beyond belief");
}

// The whole of what is said, and where.
TEST(Table, WhatIsSaidOfAFooter) {
  const auto said = [](const std::string& bytes) {
    return thrown<FormatError>([&] { read_all(bytes); });
  };
  const std::string good = table_of(block_of(entry(0, 1, 2, "kvv")));
  const std::string size = std::to_string(good.size()), footer = std::to_string(good.size() - 48);
  for (std::size_t i = 1; i <= 8; ++i) {
    std::string bad = good;
    bad[bad.size() - i] = static_cast<char>(bad[bad.size() - i] ^ 1);
    EXPECT_EQ(said(bad), "[t.index @ " + footer +
                             "] the last 8 bytes are not a table's magic number: the file is cut "
                             "short or is not a checkpoint index");
  }
  EXPECT_EQ(said(std::string(47, 'x')),
            "[t.index @ 0] the file has 47 bytes, expected a checkpoint index of 48 or more");
  // The file is as long for each of these.
  const std::size_t whole = table_of(block_of(""), handle(3, 1)).size();
  const std::string end = "[t.index @ " + std::to_string(whole) + "] ",
                    inside = ", expected a block inside the file of " + std::to_string(whole);
  for (const auto& [at, bytes] : {std::pair<std::size_t, std::size_t>{3, whole + 1},
                                  {whole + 1, 3},
                                  {whole + 2, whole + 4}}) {
    EXPECT_EQ(said(table_of(block_of(""), handle(at, bytes))),
              end + "a block handle says " + std::to_string(bytes) + " bytes at " +
                  std::to_string(at) + inside + " bytes");
  }
  // A block of five bytes more, its type and its checksum.
  EXPECT_EQ(said(table_of(block_of(""), handle(3, whole))),
            "[t.index @ 3] the file ends at byte " + std::to_string(whole) + ", expected " +
                std::to_string(whole + 5) + " more bytes from here");
  EXPECT_EQ(said(table_of("abc")), "[t.index @ 0] a block is shorter than its restart count");
}

// Behind a first block that is whole.
TEST(Table, WhatIsSaidOfASecondBlock) {
  const auto with = [](const std::string& second, char type = '\0') {
    const std::string first = with_trailer(block_of(entry(0, 1, 1, "av")));
    const std::string one = handle(0, first.size() - 5), two = handle(first.size(), second.size());
    return with_index(
        first + with_trailer(second, type),
        block_of(entry(0, 1, one.size(), "b" + one) + entry(0, 1, two.size(), "z" + two)));
  };
  EXPECT_EQ(read_all(with(block_of(entry(0, 1, 1, "kw")))), (Entries{{"a", "v"}, {"k", "w"}}));
  const std::string at = std::to_string(block_of(entry(0, 1, 1, "av")).size() + 5);
  std::string many = entry(0, 1000, 0, std::string(1000, 'k'));
  for (std::uint64_t i = 0; i < 3000; ++i) many += entry(1000 + i, 1, 0, "k");
  const std::tuple<std::string, char, const char*> cases[] = {
      {block_of(entry(0, 1, 1, "av")), '\0', "keys do not ascend, expected a sorted table"},
      {block_of(entry(0, 1, 1, "Av")), '\0', "keys do not ascend, expected a sorted table"},
      {"abc", '\0', "a block is shorter than its restart count"},
      {block_of("", 9), '\0', "a block of 8 bytes claims 9 restarts"},
      {block_of(entry(0, 9, 1, "kv")), '\0', "an entry of this block is cut short"},
      {block_of(many), '\0', "the keys of this block expand beyond belief"},
      {block_of(""), '\5', "block compression 5, expected 0 or 1"},
      {block_of(""), '\1', "a snappy block does not decompress"},
  };
  for (const auto& [block, type, what] : cases) {
    EXPECT_EQ(
        thrown<FormatError>([&, &block = block, type = type] { read_all(with(block, type)); }),
        "[t.index @ " + at + "] " + what);
  }
}

}  // namespace
}  // namespace openrnn::formats
