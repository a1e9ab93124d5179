// Zip archives: what is written is read, with ZIP64 fields and without.

#include <gtest/gtest.h>

#include "formats/coding.h"
#include "formats/temp_folder.h"
#include "formats/zip/crc32.h"
#include "formats/zip/zip_reader.h"
#include "formats/zip/zip_writer.h"

namespace openrnn::formats {
namespace {

TEST(Zip, Checksum) {
  EXPECT_EQ(crc32_extend(0, "123456789", 9), 0xcbf43926u);
  EXPECT_EQ(crc32_extend(crc32_extend(0, "1234", 4), "56789", 5), 0xcbf43926u);
  EXPECT_EQ(crc32_extend(0, "", 0), 0u);
}

// From the second value on, entries of up to 20 bytes and then offsets need ZIP64 fields.
TEST(Zip, WhatIsWrittenIsRead) {
  const TempFolder folder;
  const std::vector<std::string> contents{"", "x", std::string(19, 'a'), std::string(20, 'b'),
                                          std::string(1000, 'c')};
  std::vector<std::size_t> sizes;
  for (const std::uint64_t in_64 :
       {std::uint64_t{kZipIn64}, std::uint64_t{20}, std::uint64_t{300}, std::uint64_t{1}}) {
    write_raw(folder / "z", "");
    replace_file(folder / "z", [&](OutputFile& file) {
      ZipWriter writer(&file, 64, in_64);
      for (std::size_t i = 0; i < contents.size(); ++i) {
        writer.add("n/" + std::to_string(i), contents[i].data(), contents[i].size());
      }
      writer.finish();
    });
    const FileSource source(folder / "z");
    const ZipArchive archive(source);
    ASSERT_EQ(archive.entries().size(), contents.size());
    EXPECT_TRUE(archive.has_checksums());
    for (std::size_t i = 0; i < contents.size(); ++i) {
      const ZipEntry* entry = archive.find("n/" + std::to_string(i));
      ASSERT_TRUE(entry);
      EXPECT_EQ(entry->offset % 64, 0u);
      EXPECT_EQ(archive.read(*entry), contents[i]);
    }
    EXPECT_FALSE(archive.find("n/9"));
    sizes.push_back(source.size());
    const std::string whole = source.read_string(0, source.size());
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const std::string cut = whole.substr(0, size);
      const MemorySource cut_source("z", cut);
      EXPECT_THROW(ZipArchive{cut_source}, FormatError) << size;
    }
  }
  EXPECT_GT(sizes[1], sizes[0]);
  EXPECT_GT(sizes[3], sizes[1]);
}

// Numbers of so many bytes, and what stands before and behind them.
class Records {
 public:
  Records& text(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  Records& two(std::initializer_list<std::uint16_t> values) { return put(values); }
  Records& four(std::initializer_list<std::uint32_t> values) { return put(values); }
  Records& eight(std::initializer_list<std::uint64_t> values) { return put(values); }
  const std::string& bytes() const { return bytes_; }

 private:
  template <class T>
  Records& put(std::initializer_list<T> values) {
    for (const T value : values) put_fixed(&bytes_, value);
    return *this;
  }
  std::string bytes_;
};

std::string written(std::uint64_t in_64,
                    const std::vector<std::pair<std::string, std::string>>& all) {
  const TempFolder folder;
  replace_file(folder / "z", [&](OutputFile& file) {
    ZipWriter writer(&file, 4, in_64);
    for (const auto& [name, data] : all) writer.add(name, {data});
    writer.finish();
  });
  return read_file(folder / "z");
}

// By hand, as APPNOTE.TXT has the records: stored, names in UTF-8, of the first day of 1980.
TEST(Zip, TheBytesOfAnArchive) {
  constexpr std::uint32_t kCrc = 0xeb8eba67u;
  Records out;
  out.text("PK\3\4").two({20, 0x800, 0, 0, 0x21}).four({kCrc, 3, 3}).two({1, 5}).text("a");
  out.two({0x4246, 1}).text("Zxyz");
  out.text("PK\1\2").two({20, 20, 0x800, 0, 0, 0x21}).four({kCrc, 3, 3}).two({1, 0, 0, 0, 0});
  out.four({0, 0}).text("a");
  out.text("PK\5\6").two({0, 0, 1, 1}).four({47, 39}).two({0});
  EXPECT_EQ(written(kZipIn64, {{"a", "xyz"}}), out.bytes());
}

// The first entry is too long for the short fields, the second one too far behind.
TEST(Zip, TheBytesOfAWideArchive) {
  constexpr std::uint32_t kCrc = 0xeb8eba67u, kWide = 0xffffffffu;
  Records out;
  out.text("PK\3\4").two({45, 0x800, 0, 0, 0x21}).four({kCrc, kWide, kWide}).two({1, 25});
  out.text("a").two({1, 16}).eight({3, 3}).two({0x4246, 1}).text("Zxyz");
  out.text("PK\3\4").two({20, 0x800, 0, 0, 0x21}).four({0, 0, 0}).two({1, 6});
  out.text("b").two({0x4246, 2}).text("ZZ");
  out.text("PK\1\2").two({45, 45, 0x800, 0, 0, 0x21}).four({kCrc, kWide, kWide});
  out.two({1, 20, 0, 0, 0}).four({0, 0}).text("a").two({1, 16}).eight({3, 3});
  out.text("PK\1\2").two({45, 45, 0x800, 0, 0, 0x21}).four({0, 0, 0});
  out.two({1, 12, 0, 0, 0}).four({0, kWide}).text("b").two({1, 8}).eight({59});
  out.text("PK\6\6").eight({44}).two({45, 45}).eight({0, 2, 2, 126, 96});
  out.text("PK\6\7").four({0}).eight({222}).four({1});
  out.text("PK\5\6").two({0, 0, 2, 2}).four({kWide, kWide}).two({0});
  EXPECT_EQ(written(1, {{"a", "xyz"}, {"b", ""}}), out.bytes());
}

}  // namespace
}  // namespace openrnn::formats
