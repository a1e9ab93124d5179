// Zip archives: what is written is read, with ZIP64 fields and without.

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace openrnn::formats
