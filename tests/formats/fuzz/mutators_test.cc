// What the mutators of the fuzzers change is still of its format: most of it is opened, with every
// checksum right, or the fuzzers would try little but refusals of the first field.

#include <gtest/gtest.h>

#include "../../../fuzz/mutators/safetensors.h"
#include "../../../fuzz/mutators/table.h"
#include "../../../fuzz/mutators/zip.h"
#include "formats/hdf5/structure/lookup3.h"
#include "formats/temp_folder.h"
#include "formats/torch/pickle.h"
#include "formats/wav/wav.h"
#include "openrnn/formats.h"
#include "openrnn/runtime_file.h"
#include "support/files/source_file.h"

namespace openrnn::fuzz {
namespace {

constexpr unsigned kSeeds = 400;

std::string corpus(const std::string& path) {
  return read_file(source_file("fuzz/corpus/" + path));
}

/// Of kSeeds changes of a file, how many `opens` takes; that most of them are changes.
template <class Opens>
unsigned opened(const std::string& path, Mutator mutator, const Opens& opens) {
  const std::string whole = corpus(path);
  EXPECT_TRUE(opens(whole)) << path;
  unsigned good = 0, changed = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    std::string bytes = whole;
    Chance chance(seed);
    if (!mutator(&bytes, chance)) continue;
    changed += bytes != whole;
    try {
      good += opens(bytes);
    } catch (const Error&) {
    }
  }
  EXPECT_GT(changed, kSeeds / 2) << path;
  return good;
}

TEST(Mutators, ArchivesKeepDirectoryAndChecksums) {
  const auto opens = [](const std::string& bytes) {
    const formats::MemorySource source("m", bytes);
    const formats::ZipArchive archive(source);
    // Streams of deflate may be changed, stored bytes have their checksum.
    for (const formats::ZipEntry& entry : archive.entries()) {
      if (entry.method == 0) archive.read(entry);
    }
    return true;
  };
  // One change in eight is of the records, some make names equal.
  EXPECT_GT(opened("torch_file/good_state_dict", mutate_zip, opens), kSeeds * 6 / 10);
  EXPECT_GT(opened("keras_archive/good_archive_deflated", mutate_zip, opens), kSeeds * 6 / 10);
}

TEST(Mutators, PicklesKeepLengths) {
  const auto parses = [](const std::string& bytes) {
    std::string_view rest = bytes;
    return parse_pickle_ops(&rest).has_value() && rest.empty();
  };
  EXPECT_GT(opened("pickle/good_state_dict", mutate_pickle, parses), kSeeds * 8 / 10);
  std::string_view all = "\x80\x02K\x05.rest";
  const auto ops = parse_pickle_ops(&all);
  ASSERT_TRUE(ops);
  EXPECT_EQ(all, "rest");
  EXPECT_EQ(pickle_of(*ops), std::string("\x80\x02K\x05."));
  std::string_view cut = "\x80\x02X\x05\0\0";
  EXPECT_FALSE(parse_pickle_ops(&cut));
}

TEST(Mutators, SafetensorsKeepPlaces) {
  const auto opens = [](const std::string& bytes) {
    std::uint64_t size = 0;
    std::memcpy(&size, bytes.data(), sizeof size);
    return size <= bytes.size() - sizeof size;
  };
  EXPECT_EQ(opened("safetensors/good_package", mutate_safetensors, opens), kSeeds);
  const auto loads = [](const std::string& bytes) {
    const NetworkFile file(std::as_bytes(std::span(bytes.data(), bytes.size())));
    for (const StoredNetwork& network : file.networks()) file.verify(network);
    return true;
  };
  // Specs, names and types that are none are refused; without checksums all would be.
  EXPECT_GT(opened("network_file/good_two", mutate_safetensors, loads), kSeeds / 40);
}

TEST(Mutators, TablesKeepChecksums) {
  const auto opens = [](const std::string& bytes) {
    formats::read_table(formats::MemorySource("m", bytes), true,
                        [](std::string_view, std::string_view, std::uint64_t) {});
    return true;
  };
  EXPECT_GT(opened("tf_file/good_v1", mutate_table, opens), kSeeds * 6 / 10);
}

TEST(Mutators, EventsKeepChecksums) {
  const auto opens = [](const std::string& bytes) {
    formats::ByteCursor in(bytes);
    std::uint64_t size = 0;
    std::uint32_t of_size = 0, of_record = 0;
    std::string_view record;
    while (!in.empty()) {
      if (!in.fixed(&size) || !in.fixed(&of_size) || !in.bytes(size, &record)) return false;
      if (!in.fixed(&of_record) || of_record != mask_crc(crc32c(record))) return false;
      const std::string_view length(reinterpret_cast<const char*>(&size), sizeof size);
      if (of_size != mask_crc(crc32c(length))) return false;
    }
    return true;
  };
  EXPECT_EQ(opened("event_file/good_ours", mutate_events, opens), kSeeds);
}

TEST(Mutators, Hdf5KeepsChecksums) {
  const auto opens = [](const std::string& bytes) {
    for (std::size_t at = 0; at + 8 < bytes.size(); ++at) {
      const std::string_view here = std::string_view(bytes).substr(at);
      const std::size_t covered = hdf5_covered_bytes(here, 0);
      if (covered == 0 || covered > here.size() || here.size() - covered < 4) continue;
      std::uint32_t sum = 0;
      std::memcpy(&sum, here.data() + covered, sizeof sum);
      if (sum != formats::lookup3(here.substr(0, covered))) return false;
    }
    return true;
  };
  EXPECT_GT(opened("hdf5/good_latest", mutate_hdf5, opens), kSeeds * 9 / 10);
}

TEST(Mutators, SmallFilesKeepSizes) {
  const auto opens_wav = [](const std::string& bytes) {
    formats::read_wav(formats::MemorySource("m", bytes));
    return true;
  };
  EXPECT_GT(opened("wav/good_16", mutate_wav, opens_wav), kSeeds / 4);
  const auto opens_npy = [](const std::string& bytes) {
    std::uint16_t size = 0;
    std::memcpy(&size, bytes.data() + 8, sizeof size);
    return size <= bytes.size() - 10;
  };
  EXPECT_EQ(opened("npy/good_rows", mutate_npy, opens_npy), kSeeds);
}

TEST(Mutators, TokensAreThoseOfTheText) {
  const std::string text = R"({"a\"b": [1, -2.5e3], 'c' : (True,)} )";
  EXPECT_EQ(text_of(tokens_of(text)), text);
  EXPECT_EQ(tokens_of(text)[1], R"("a\"b")");
  EXPECT_EQ(json_unquoted(json_quoted("{\"a\\n\": 1}")), "{\"a\\n\": 1}");
  const auto is_long = [](const std::string& bytes) { return !bytes.empty(); };
  EXPECT_GT(opened("json_model/good_rtneural", mutate_json, is_long), kSeeds * 9 / 10);
}

TEST(Mutators, WhatIsNotOfTheFormatStays) {
  for (const Mutator mutator : {mutate_zip, mutate_pickle, mutate_hdf5, mutate_npy, mutate_wav,
                                mutate_events, mutate_safetensors, mutate_table, mutate_bundle}) {
    for (const std::string bytes : {"", "PK", "\x89HD", "RIF", "\x93NUM", "abc"}) {
      std::string changed = bytes;
      Chance chance(1);
      EXPECT_FALSE(mutator(&changed, chance)) << bytes;
      EXPECT_EQ(changed, bytes);
    }
  }
}

}  // namespace
}  // namespace openrnn::fuzz
