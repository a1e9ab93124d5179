// Zip archives made by hand: where the end record is, what each record may say, what is refused.
#include "formats/zip/zip_reader.h"

#include <gtest/gtest.h>

#include "formats/coding.h"
#include "formats/file/atomic_file.h"
#include "formats/temp_folder.h"
#include "formats/zip/crc32.h"
#include "formats/zip/entry_source.h"
#include "formats/zip/zip_records.h"
#include "formats/zip/zip_writer.h"

namespace openrnn::formats {
namespace {

using namespace std::string_literals;

/// An archive of one stored entry, of which everything can be wrong.
struct ZipText {
  std::string name = "a", data = "xyz", local_name = "a", local_extra = "", extra = "";
  std::uint32_t local_signature = kZipLocalSignature, central_signature = kZipCentralSignature,
                end_signature = kZipEndSignature;
  std::uint16_t flags = 0, method = 0, local_method = 0;
  std::uint32_t crc = 0xeb8eba67u;  // of 'xyz'
  std::uint32_t stored = 3, bytes = 3, offset = 0;
  std::string entry_comment = "", comment = "", behind = "";
  std::uint16_t disk = 0, first_disk = 0, here = 1, entries = 1;
  std::int64_t directory_shift = 0, directory_more = 0;
  // What stands between the directory and the end record.
  std::string between = "";
  std::optional<std::uint32_t> end_bytes = {}, end_offset = {};

  std::string local() const {
    std::string out;
    put_fixed(&out, local_signature);
    put_fixed(&out, std::uint16_t{20});
    put_fixed(&out, flags);
    put_fixed(&out, local_method);
    out.append(16, '\0');
    put_fixed(&out, static_cast<std::uint16_t>(local_name.size()));
    put_fixed(&out, static_cast<std::uint16_t>(local_extra.size()));
    return out + local_name + local_extra + data;
  }
  std::string central() const {
    std::string out;
    put_fixed(&out, central_signature);
    put_fixed(&out, std::uint32_t{20});
    put_fixed(&out, flags);
    put_fixed(&out, method);
    put_fixed(&out, std::uint32_t{0});
    for (const std::uint32_t one : {crc, stored, bytes}) put_fixed(&out, one);
    for (const std::size_t size : {name.size(), extra.size(), entry_comment.size()}) {
      put_fixed(&out, static_cast<std::uint16_t>(size));
    }
    out.append(8, '\0');
    put_fixed(&out, offset);
    return out + name + extra + entry_comment;
  }
  std::string file() const {
    std::string out = local();
    const std::string directory = central();
    const auto at = static_cast<std::int64_t>(out.size()) + directory_shift;
    const auto size = static_cast<std::int64_t>(directory.size()) + directory_more;
    out += directory + between;
    put_fixed(&out, end_signature);
    for (const std::uint16_t one : {disk, first_disk, here, entries}) put_fixed(&out, one);
    put_fixed(&out, end_bytes.value_or(static_cast<std::uint32_t>(size)));
    put_fixed(&out, end_offset.value_or(static_cast<std::uint32_t>(at)));
    put_fixed(&out, static_cast<std::uint16_t>(comment.size()));
    return out + comment + behind;
  }
};

// What the first entry holds.
std::string first_of(const std::string& bytes) {
  const MemorySource source("z", bytes);
  const ZipArchive archive(source);
  return archive.read_whole(archive.entries().at(0));
}

TEST(ZipReader, TheEndRecord) {
  EXPECT_EQ(first_of(ZipText{}.file()), "xyz");
  EXPECT_EQ(first_of(ZipText{.comment = "a comment"}.file()), "xyz");
  EXPECT_EQ(first_of(ZipText{.comment = std::string(65535, 'c')}.file()), "xyz");
  // What looks like one inside a comment ends too early, or would end beyond the file.
  const std::string small = "PK\5\6" + std::string(16, '\0') + "\1\0"s;
  for (const std::string& rest : {""s, "c"s + "d"s, "cde"s}) {
    EXPECT_EQ(first_of(ZipText{.comment = "before" + small + rest}.file()), "xyz") << rest;
  }
  EXPECT_EQ(first_of(ZipText{.comment = "PK\5\6 and less than a record"}.file()), "xyz");
  const std::pair<ZipText, const char*> cases[] = {
      {{.behind = "x"}, "has no end record"},
      {{.end_signature = 0x06054b51}, "has no end record"},
      {{.disk = 1}, "is a part of a zip archive"},
      {{.first_disk = 1}, "is a part of a zip archive"},
      {{.here = 0}, "is a part of a zip archive"},
      {{.here = 2, .entries = 2}, "has 1 entries, expected 2"},
      {{.here = 0, .entries = 0}, "has 1 entries, expected 0"},
      {{.directory_shift = 1}, "has 47 bytes at 35, expected it before its end record"},
      {{.directory_shift = -1}, "no entry of the zip archive's directory"},
      {{.directory_more = -1}, "reaches beyond it"},
      {{.end_offset = 1000}, "bytes at 1000, expected it before its end record"},
      {{.directory_more = 4, .between = "0123"}, "no entry of the zip archive's directory"},
  };
  for (const auto& [text, what] : cases) EXPECT_MESSAGE(FormatError, first_of(text.file()), what);
  // Bytes between the directory and its end are nobody's.
  EXPECT_EQ(first_of(ZipText{.between = "0123"}.file()), "xyz");
}

TEST(ZipReader, AnEntryAndItsHeader) {
  EXPECT_EQ(first_of(ZipText{.local_extra = "0123", .extra = "45", .entry_comment = "c"}.file()),
            "xyz");
  const std::pair<ZipText, const char*> cases[] = {
      {{.local_name = "b"}, "the header of 'a' has another name or method"},
      {{.local_name = "ab"}, "the header of 'a' has another name or method"},
      {{.local_method = 8}, "the header of 'a' has another name or method"},
      {{.local_signature = 1}, "there is no header of 'a'"},
      {{.central_signature = 1}, "there is no entry of the zip archive's directory"},
      {{.crc = 1}, "'a' has checksum 3951999591, expected 1"},
      {{.bytes = 2}, "'a' has 2 bytes, expected 3 as are stored"},
      {{.stored = 4, .bytes = 4}, "'a' ends at 35, expected at most 34, where the next begins"},
      {{.stored = 1000, .bytes = 1000}, "'a' has 1000 bytes, expected it to end inside the file"},
      {{.offset = 1}, "there is no header of 'a'"},
  };
  for (const auto& [text, what] : cases) EXPECT_MESSAGE(FormatError, first_of(text.file()), what);
  EXPECT_MESSAGE(UnsupportedError, first_of(ZipText{.flags = 1}.file()), "'a' is encrypted");
  EXPECT_MESSAGE(UnsupportedError,
                 first_of(ZipText{.flags = 1, .method = 8, .local_method = 8}.file()),
                 "'a' is encrypted");
  EXPECT_MESSAGE(UnsupportedError, first_of(ZipText{.method = 9, .local_method = 9}.file()),
                 "'a' is compressed, expected it stored");
  // Bit 3: the sizes follow the data, which the directory has anyway.
  EXPECT_EQ(first_of(ZipText{.flags = 1u << 3}.file()), "xyz");
}

TEST(ZipReader, WithoutChecksums) {
  const std::string bytes = ZipText{.crc = 0}.file();
  const MemorySource source("z", bytes);
  const ZipArchive archive(source);
  EXPECT_FALSE(archive.has_checksums());
  EXPECT_EQ(archive.read(archive.entries().at(0)), "xyz");
}

std::string zip64_extra(const std::vector<std::uint64_t>& values, std::uint16_t id = kZip64Extra) {
  std::string out;
  put_fixed(&out, id);
  put_fixed(&out, static_cast<std::uint16_t>(8 * values.size()));
  for (const std::uint64_t value : values) put_fixed(&out, value);
  return out;
}

// The field has those values alone that did not fit: bytes, stored bytes, then the place.
TEST(ZipReader, WideValuesOfAnEntry) {
  constexpr std::uint32_t kWide = kZipIn64;
  const std::string other = zip64_extra({7}, 2);
  EXPECT_EQ(first_of(ZipText{.extra = zip64_extra({3}), .bytes = kWide}.file()), "xyz");
  EXPECT_EQ(first_of(ZipText{.extra = zip64_extra({3}), .stored = kWide}.file()), "xyz");
  EXPECT_EQ(first_of(ZipText{.extra = zip64_extra({0}), .offset = kWide}.file()), "xyz");
  EXPECT_EQ(
      first_of(ZipText{
          .extra = other + zip64_extra({3, 3, 0}), .stored = kWide, .bytes = kWide, .offset = kWide}
                   .file()),
      "xyz");
  // Nothing is taken of it where everything fitted.
  EXPECT_EQ(first_of(ZipText{.extra = zip64_extra({9})}.file()), "xyz");
  EXPECT_EQ(first_of(ZipText{.extra = zip64_extra({3, 9}), .bytes = kWide}.file()), "xyz");
  const std::pair<ZipText, const char*> cases[] = {
      {{.bytes = kWide}, "there is no ZIP64 field of 'a'"},
      {{.extra = other, .bytes = kWide}, "there is no ZIP64 field of 'a'"},
      {{.extra = zip64_extra({3}).substr(0, 8), .bytes = kWide}, "there is no ZIP64 field of 'a'"},
      {{.extra = zip64_extra({}), .bytes = kWide}, "the ZIP64 field of 'a' is cut short"},
      {{.extra = zip64_extra({3}), .stored = kWide, .bytes = kWide},
       "the ZIP64 field of 'a' is cut short"},
  };
  for (const auto& [text, what] : cases) EXPECT_MESSAGE(FormatError, first_of(text.file()), what);
}

// As APPNOTE.TXT has them: a reader and a writer that agree on another number would not notice.
TEST(ZipReader, Signatures) {
  const std::pair<std::uint32_t, std::string> all[] = {{kZipLocalSignature, "PK\3\4"},
                                                       {kZipCentralSignature, "PK\1\2"},
                                                       {kZipEndSignature, "PK\5\6"},
                                                       {kZip64EndSignature, "PK\6\6"},
                                                       {kZip64LocatorSignature, "PK\6\7"}};
  for (const auto& [signature, text] : all) {
    std::string bytes;
    put_fixed(&bytes, signature);
    EXPECT_EQ(bytes, text);
  }
}

struct Zip64Text {
  std::uint32_t signature = kZip64EndSignature, locator_signature = kZip64LocatorSignature;
  std::uint32_t disk = 0, first_disk = 0;
  std::uint64_t here = 1, entries = 1;
  std::int64_t record_shift = 0, more = 0, shift = 0;
  ZipText text = {};

  std::string file() const {
    ZipText whole = text;
    const std::uint64_t offset = whole.local().size(), bytes = whole.central().size();
    std::string& out = whole.between;
    put_fixed(&out, signature);
    out.append(12, '\x5a');
    put_fixed(&out, disk);
    put_fixed(&out, first_disk);
    for (const std::uint64_t one :
         {here, entries, static_cast<std::uint64_t>(static_cast<std::int64_t>(bytes) + more),
          static_cast<std::uint64_t>(static_cast<std::int64_t>(offset) + shift)}) {
      put_fixed(&out, one);
    }
    put_fixed(&out, locator_signature);
    put_fixed(&out, std::uint32_t{0});
    put_fixed(&out,
              static_cast<std::uint64_t>(static_cast<std::int64_t>(offset + bytes) + record_shift));
    put_fixed(&out, std::uint32_t{1});
    return whole.file();
  }
};

TEST(ZipReader, WideValuesOfTheDirectory) {
  // Any one of three says that they are wide.
  const ZipText wide[] = {{.here = kZipCountIn64, .entries = kZipCountIn64},
                          {.end_bytes = kZipIn64},
                          {.end_offset = kZipIn64}};
  for (const ZipText& text : wide) {
    EXPECT_EQ(first_of(Zip64Text{.text = text}.file()), "xyz");
    EXPECT_MESSAGE(FormatError, first_of(text.file()), "there is no ZIP64 locator");
  }
  const ZipText one = wide[2];
  const std::pair<Zip64Text, const char*> cases[] = {
      {{.signature = 1, .text = one}, "there is no ZIP64 end record"},
      {{.locator_signature = 1, .text = one}, "there is no ZIP64 locator"},
      {{.disk = 1, .text = one}, "is a part of a zip archive"},
      {{.first_disk = 1, .text = one}, "is a part of a zip archive"},
      {{.here = 2, .text = one}, "is a part of a zip archive"},
      {{.here = 2, .entries = 2, .text = one}, "has 1 entries, expected 2"},
      {{.record_shift = 1, .text = one}, "expected it before its locator"},
      {{.record_shift = 1000, .text = one}, "expected it before its locator"},
      {{.record_shift = -1, .text = one}, "there is no ZIP64 end record"},
      {{.more = 1, .text = one}, "has 48 bytes at 34, expected it before its end record"},
      {{.shift = 1000, .text = one}, "bytes at 1034, expected it before its end record"},
  };
  for (const auto& [text, what] : cases) EXPECT_MESSAGE(FormatError, first_of(text.file()), what);
  std::string no_room;
  put_fixed(&no_room, kZipEndSignature);
  no_room.append(8, '\0').append(8, '\xff').append(2, '\0');
  EXPECT_MESSAGE(FormatError, first_of(no_room), "there is no ZIP64 locator");
}

// As an entry of its own: whole and in part, with a checksum and where the archive has none.
TEST(ZipReader, DeflatedEntries) {
  const std::string stored = "\1\3\0\xfc\xffxyz"s;
  for (const std::uint32_t crc : {0xeb8eba67u, 0u, 1u}) {
    const std::string bytes = ZipText{.data = stored,
                                      .method = kZipDeflated,
                                      .local_method = kZipDeflated,
                                      .crc = crc,
                                      .stored = static_cast<std::uint32_t>(stored.size())}
                                  .file();
    const MemorySource source("z", bytes);
    const ZipArchive archive(source);
    const auto entry = entry_source(archive, archive.entries().at(0));
    const std::pair<std::uint64_t, std::uint64_t> parts[] = {
        {0, 3}, {1, 2}, {3, 0}, {0, 2}, {1, 1}};
    for (const auto& [offset, count] : parts) {
      // What ends before the entry does is taken from its start, without a checksum.
      if (crc == 1 && count > 0 && offset + count == 3) {
        EXPECT_MESSAGE(FormatError, entry->read_string(offset, count), "'a' has checksum");
      } else {
        EXPECT_EQ(entry->read_string(offset, count), std::string("xyz").substr(offset, count));
      }
    }
    EXPECT_MESSAGE(FormatError, entry->read_string(1, 3), "expected 3 more bytes");
    if (crc != 1) {
      EXPECT_EQ(entry->mapped(), "xyz");
    }
  }
}

// As many entries as the short count can say, and more: then it says no more than that.
TEST(ZipReader, ManyEntries) {
  for (const std::size_t count : {65534U, 65535U, 65536U, 65537U}) {
    const TempFolder folder;
    replace_file(folder / "z", [&](OutputFile& file) {
      ZipWriter writer(&file, 1);
      for (std::size_t i = 0; i < count; ++i) writer.add(std::to_string(i), {""});
      writer.finish();
    });
    const FileSource source(folder / "z");
    EXPECT_EQ(ZipArchive(source).entries().size(), count);
    EXPECT_EQ(source.read_string(source.size() - 42, 4) == "PK\6\7", count >= 65535);
    std::string counts;
    for (int i = 0; i < 2; ++i) {
      put_fixed(&counts, static_cast<std::uint16_t>(std::min<std::size_t>(count, 65535)));
    }
    EXPECT_EQ(source.read_string(source.size() - 14, 4), counts) << count;
    if (count < 65535) continue;
    std::string wide;
    for (int i = 0; i < 2; ++i) put_fixed(&wide, std::uint64_t{count});
    EXPECT_EQ(source.read_string(source.size() - 42 - 56 + 24, 16), wide) << count;
  }
}

// Sizes and places past 32 bits are said as they are; the end of the archive is at byte 34.
TEST(ZipReader, WideValuesThatAreWrong) {
  constexpr std::uint32_t kWide = kZipIn64;
  constexpr std::uint64_t kMore = std::uint64_t{1} << 32;
  constexpr std::int64_t kShift = std::int64_t{1} << 33;
  const ZipText entries[] = {
      {.extra = zip64_extra({kMore + 3}), .bytes = kWide},
      {.extra = zip64_extra({kMore + 4}), .stored = kWide},
      {.extra = zip64_extra({3, kMore + 5}), .stored = kWide, .bytes = kWide},
      {.extra = zip64_extra({kMore + 6}), .offset = kWide}};
  const char* const of_entries[] = {
      "[z @ 0] 'a' has 4294967299 bytes, expected 3 as are stored",
      "[z @ 0] 'a' has 4294967300 bytes, expected it to end inside the file",
      "[z @ 0] 'a' has 4294967301 bytes, expected it to end inside the file",
      "[z @ 4294967302] the file ends at byte 115, expected 30 more bytes from here"};
  for (std::size_t i = 0; i < std::size(entries); ++i) {
    EXPECT_EQ(thrown<FormatError>([&] { first_of(entries[i].file()); }), of_entries[i]);
  }
  const ZipText one = {.end_offset = kWide};
  const std::pair<Zip64Text, const char*> records[] = {
      {{.here = kMore + 1, .entries = kMore + 1, .text = one},
       "[z @ 34] the zip archive's directory has 1 entries, expected 4294967297"},
      {{.here = kMore + 1, .text = one},
       "[z @ 81] this is a part of a zip archive, expected one in a single file"},
      {{.record_shift = kShift, .text = one},
       "[z @ 137] the ZIP64 end record is at 8589934673, expected it before its locator"},
      {{.more = kShift, .text = one},
       "[z @ 81] the directory of the zip archive has 8589934639 bytes at 34, expected it before "
       "its end record"},
      {{.shift = kShift, .text = one},
       "[z @ 81] the directory of the zip archive has 47 bytes at 8589934626, expected it before "
       "its end record"},
  };
  for (const auto& [text, what] : records) {
    EXPECT_EQ(thrown<FormatError>([&, &text = text] { first_of(text.file()); }), what);
  }
}

}  // namespace
}  // namespace openrnn::formats
