// A series of several processes, here threads: rank 0 has opened the file, the others have its rows
// from what it found.
#include "train/group/share_table.h"

#include <gtest/gtest.h>

#include <fstream>

#include "formats/temp_folder.h"
#include "train/data/csv_rows.h"
#include "train/data/memory_rows.h"
#include "train/group/ranks.h"

namespace openrnn::train {
namespace {

using formats::TempFolder;
using Errors = std::vector<std::string>;

constexpr std::int64_t kRows = 150;  // of three blocks
static_assert(kRows > 2 * CsvIndex::kBlockRows && kRows < 3 * CsvIndex::kBlockRows);

/// A column of words, then two of numbers; rows of different lengths.
void write_table(const std::string& path, char delimiter) {
  std::ofstream file(path, std::ios::binary);
  file << "day" << delimiter << "a" << delimiter << "b\n";
  for (std::int64_t row = 0; row < kRows; ++row) {
    file << "day" << row << delimiter << row * row % 101 << delimiter << 0.25 * double(row) << '\n';
  }
}

std::vector<double> read_all(const SeriesRows& rows) {
  std::vector<double> all(static_cast<std::size_t>(rows.rows() * rows.columns()));
  rows.read(0, rows.rows(), all.data());
  return all;
}

TEST(ShareTable, GivesEachRankTheRowsOfTheFirst) {
  for (const char delimiter : {',', ';', '\t'}) {
    for (const bool mapped : {true, false}) {
      for (const auto& columns : {Errors{}, Errors{"b", "a"}, Errors{"3"}}) {
        SCOPED_TRACE(testing::Message() << delimiter << mapped << columns.size());
        const TempFolder folder;
        const std::string path = folder / "table.csv";
        write_table(path, delimiter);
        const SeriesFile expected = open_series(path, columns);
        const std::vector<double> values = read_all(*expected.rows);
        const Errors errors = on_ranks(3, [&](Communicator& all) {
          Group group(all, Reduction::kExact);
          SeriesFile file;
          if (group.first()) file = mapped ? open_series(path, columns, 0) : expected;
          share_table(group, path, file);
          EXPECT_EQ(file.names, expected.names);
          EXPECT_EQ(file.fingerprint, expected.fingerprint);
          // The kind of rows is the first rank's too.
          EXPECT_EQ(dynamic_cast<const CsvRows*>(file.rows.get()) != nullptr, mapped);
          EXPECT_EQ(dynamic_cast<const MemoryRows*>(file.rows.get()) != nullptr, !mapped);
          ASSERT_EQ(file.rows->rows(), kRows);
          ASSERT_EQ(file.rows->columns(), static_cast<std::int64_t>(expected.names.size()));
          EXPECT_EQ(read_all(*file.rows), values);
        });
        EXPECT_EQ(errors, Errors(3));
      }
    }
  }
}

TEST(ShareTable, ARankWithAnotherFileOfThatNameIsNamed) {
  const TempFolder folder;
  const std::string path = folder / "table.csv", other = folder / "other.csv";
  write_table(path, ',');
  // One digit in another place: the files have one size.
  write_table(other, ',');
  {
    std::fstream file(other, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-2, std::ios::end);
    file.put('9');
  }
  const Errors errors = on_ranks(3, [&](Communicator& all) {
    Group group(all, Reduction::kExact);
    SeriesFile file;
    if (group.first()) file = open_series(path, {}, 0);
    share_table(group, all.rank() == 1 ? other : path, file);
  });
  const std::string expected = "[Run] rank 1 of 3 has a file to train on of fingerprint ";
  EXPECT_EQ(errors[1].substr(0, expected.size()), expected);
  for (const std::size_t rank : {0, 2}) {
    EXPECT_NE(errors[rank].find(expected), std::string::npos) << errors[rank];
  }
}

/// What a second rank says of its file at `other`; "" of one that is as the first rank's.
std::string said_of(const std::string& path, const std::string& other) {
  return on_ranks(2, [&](Communicator& all) {
    Group group(all, Reduction::kExact);
    SeriesFile file;
    if (group.first()) file = open_series(path, {}, 0);
    share_table(group, group.first() ? path : other, file);
  })[1];
}

// A large file is compared in 256 places of 256 bytes, from its first byte to its last one.
TEST(ShareTable, ALargeFileIsComparedAtManyPlaces) {
  const TempFolder folder;
  const std::string path = folder / "table.csv", other = folder / "other.csv";
  std::string text;
  for (int row = 0; text.size() < 300000; ++row) text += std::to_string(row * 7919 % 10007) + '\n';
  formats::write_raw(path, text);
  const std::size_t last = text.size() - 256;
  for (const std::size_t place : {0U, 1U, 2U, 85U, 128U, 253U, 254U, 255U}) {
    for (const std::size_t within : {0U, 1U, 254U, 255U}) {
      std::string changed = text;
      changed[last / 255 * place + last % 255 * place / 255 + within] ^= 1;
      formats::write_raw(other, changed);
      EXPECT_NE(said_of(path, other), "") << place << " " << within;
    }
  }
  formats::write_raw(other, text);
  EXPECT_EQ(said_of(path, other), "");
}

// Rows that are all the same differ in nothing but their number.
TEST(ShareTable, ALongerFileIsAnother) {
  const TempFolder folder;
  const std::string path = folder / "table.csv", other = folder / "other.csv";
  const auto rows = [](int count) {
    std::string text;
    for (int row = 0; row < count; ++row) text += "7\n";
    return text;
  };
  formats::write_raw(path, rows(383));  // the places are at even bytes: 256 + 2 * 255
  formats::write_raw(other, rows(638));
  EXPECT_NE(said_of(path, other), "");
  EXPECT_NE(said_of(other, path), "");
  // Of less than a place's bytes, too.
  formats::write_raw(path, "7\n8\n");
  formats::write_raw(other, "7\n9\n");
  EXPECT_NE(said_of(path, other), "");
  EXPECT_EQ(said_of(path, path), "");
}

// The last row may have no end of line.
TEST(ShareTable, TheLastRowEndsWithTheFile) {
  const TempFolder folder;
  const std::string path = folder / "table.csv";
  for (const int rows : {1, 63, 64, 65, 128, 129}) {
    std::string text = "a,b";
    for (int row = 0; row < rows; ++row) text += '\n' + std::to_string(row) + ",1.25";
    formats::write_raw(path, text);
    const std::vector<double> expected = read_all(*open_series(path, {}).rows);
    const Errors errors = on_ranks(2, [&](Communicator& all) {
      Group group(all, Reduction::kExact);
      SeriesFile file;
      if (group.first()) file = open_series(path, {}, 0);
      share_table(group, path, file);
      EXPECT_EQ(read_all(*file.rows), expected) << rows;
    });
    EXPECT_EQ(errors, Errors(2));
  }
}

TEST(ShareTable, ARankThatCannotOpenTheFileIsNamed) {
  const TempFolder folder;
  const std::string path = folder / "table.csv";
  write_table(path, ',');
  const Errors errors = on_ranks(2, [&](Communicator& all) {
    Group group(all, Reduction::kExact);
    SeriesFile file;
    if (group.first()) file = open_series(path, {}, 0);
    share_table(group, group.first() ? path : folder / "missing.csv", file);
  });
  EXPECT_NE(errors[1].find("missing.csv"), std::string::npos) << errors[1];
  EXPECT_NE(errors[0].find(errors[1]), std::string::npos) << errors[0];
}

TEST(ShareScaling, IsThatOfTheFirst) {
  const Errors errors = on_ranks(2, [](Communicator& all) {
    Group group(all, Reduction::kExact);
    SeriesScaling scaling;
    if (group.first()) {
      scaling = {.values = {{1.0, 2.0}, {3.0, 4.0}}, .changes = {{5.0, 6.0}, {7.0, 8.0}}};
    }
    share_scaling(group, 2, scaling);
    EXPECT_EQ(scaling.values.mean, (std::vector<double>{1.0, 2.0}));
    EXPECT_EQ(scaling.values.deviation, (std::vector<double>{3.0, 4.0}));
    EXPECT_EQ(scaling.changes.mean, (std::vector<double>{5.0, 6.0}));
    EXPECT_EQ(scaling.changes.deviation, (std::vector<double>{7.0, 8.0}));
  });
  EXPECT_EQ(errors, Errors(2));
}

}  // namespace
}  // namespace openrnn::train
