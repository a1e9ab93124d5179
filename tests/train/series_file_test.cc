// Tables that are not in memory: the numbers, windows and errors of those that are.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "formats/temp_folder.h"
#include "openrnn/train_data.h"
#include "openrnn/train_run.h"
#include "support/expect_error.h"
#include "train/data/csv_rows.h"

namespace openrnn::train {
namespace {

using formats::TempFolder;

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Rows of several blocks, of different lengths, some with blank lines between them.
std::string table_of(std::int64_t rows, char delimiter = ',', const std::string& end = "\n") {
  std::string text = std::string("day") + delimiter + "a" + delimiter + "\"b\"\"c\"" + end;
  RandomStream random(7);
  for (std::int64_t row = 0; row < rows; ++row) {
    const double value = random.uniform(-1.0, 1.0) * std::pow(10.0, double(row % 9));
    text += "monday" + std::string(static_cast<std::size_t>(row % 5), '!') + delimiter + ' ' +
            std::to_string(value) + (row % 3 == 0 ? " " : "") + delimiter;
    text += row % 4 == 0 ? '"' + std::to_string(row % 7) + '"' : std::to_string(row * row % 11);
    if (row + 1 < rows) text += row % 13 == 0 ? end + " " + end : end;
  }
  return text;
}

std::vector<double> read_all(const SeriesRows& rows) {
  std::vector<double> all(static_cast<std::size_t>(rows.rows() * rows.columns()));
  rows.read(0, rows.rows(), all.data());
  return all;
}

TEST(SeriesFile, HasTheNumbersOfOneInMemory) {
  const TempFolder folder;
  const std::string path = folder / "table.csv";
  const std::string mark = "\xef\xbb\xbf";
  for (const std::string& text :
       {table_of(500), mark + table_of(64, '\t'), table_of(65, ';', "\r\n"), table_of(1) + "\n\n",
        std::string("1\n2"), "\n \n" + table_of(128) + "\n"}) {
    write(path, text);
    for (const std::vector<std::string>& columns :
         {std::vector<std::string>{}, std::vector<std::string>{"1"}}) {
      if (columns.size() == 1 && text.size() > 10) continue;  // there it holds days
      const SeriesTable table = load_series(path, columns);
      const SeriesFile mapped = open_series(path, columns, 0), read = open_series(path, columns);
      EXPECT_NE(dynamic_cast<const CsvRows*>(mapped.rows.get()), nullptr);
      EXPECT_EQ(dynamic_cast<const CsvRows*>(read.rows.get()), nullptr);
      EXPECT_EQ(mapped.names, table.names);
      EXPECT_EQ(mapped.ignored, table.ignored);
      const auto values = table.values.as<double>();
      const std::vector<double> expected(values.begin(), values.end());
      for (const SeriesFile* each : {&mapped, &read}) {
        EXPECT_EQ(read_all(*each->rows), expected);
        EXPECT_EQ(each->fingerprint, fingerprint({reinterpret_cast<const char*>(expected.data()),
                                                  expected.size() * sizeof(double)}));
      }
      RandomStream random(3);
      const std::int64_t rows = mapped.rows->rows(), width = mapped.rows->columns();
      for (int draw = 0; draw < 200; ++draw) {
        const auto first = static_cast<std::int64_t>(random.below(std::uint64_t(rows)));
        const auto count = static_cast<std::int64_t>(random.below(std::uint64_t(rows - first + 1)));
        std::vector<double> some(static_cast<std::size_t>(count * width));
        mapped.rows->read(first, count, some.data());
        EXPECT_TRUE(std::equal(some.begin(), some.end(), expected.begin() + first * width));
      }
    }
  }
}

TEST(SeriesFile, HasTheErrorsOfOneInMemory) {
  const TempFolder folder;
  const std::string path = folder / "table.csv";
  const std::string good = table_of(200);
  for (const std::string& text :
       {std::string(), std::string("a,b\n"), std::string("x,y\np,q\n"), good + "\nm,1\n",
        good + "\nm,1,2,3\n", good + "\nm,1,\n", good + "\nm,1e999,2", good + "\n\nm,nan,2\n",
        std::string(1 << 21, 'x')}) {
    write(path, text);
    const std::string said = error_of<ArgumentError>([&] { load_series(path); });
    EXPECT_TRUE(said.starts_with("[load_series] '" + path + "' ")) << said;
    EXPECT_EQ(error_of<ArgumentError>([&] { open_series(path, {}, 0); }), said);
  }
  write(path, good);
  EXPECT_EQ(error_of<ArgumentError>([&] { open_series(path, {"c"}, 0); }),
            error_of<ArgumentError>([&] { load_series(path, {"c"}); }));
  EXPECT_THROW(open_series(folder / "none.csv", {}, 0), IoError);
}

bool same(const Array& a, const Array& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

TEST(SeriesFile, HasTheWindowsOfOneInMemory) {
  const TempFolder folder;
  const std::string path = folder / "table.csv";
  write(path, table_of(3000));
  const SeriesTable table = load_series(path);
  for (const bool to_sequence : {false, true}) {
    for (const std::int64_t horizon : {1, 5, 1500}) {
      const SeriesOptions options{
          .window = 24, .horizon = horizon, .to_sequence = to_sequence, .batch = 32, .seed = 5};
      const SeriesFile file = open_series(path, {}, 0);
      const SeriesWindows one(table, options), two(file, options);
      const SeriesWindows three(file, options, one.scaling(),
                                SeriesWindows::ScalingOf::kTrainingRows);
      for (const auto part : {&SeriesScaling::values, &SeriesScaling::changes}) {
        EXPECT_EQ((two.scaling().*part).mean, (one.scaling().*part).mean);
        EXPECT_EQ((two.scaling().*part).deviation, (one.scaling().*part).deviation);
      }
      ASSERT_EQ(two.windows(), one.windows());
      EXPECT_EQ(two.best_season(), one.best_season());
      EXPECT_EQ(two.valid_truth(7, 1), one.valid_truth(7, 1));
      EXPECT_EQ(two.valid_last(7, 1), one.valid_last(7, 1));
      for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
        for (std::int64_t w = 0; w < one.windows(); w += 3) {
          const Window a = one.window({epoch, w}), b = two.window({epoch, w});
          const Window c = three.window({epoch, w});
          EXPECT_TRUE(same(a.x, b.x) && same(a.y, b.y) && same(a.x, c.x) && same(a.y, c.y));
        }
      }
      EXPECT_TRUE(same(one.valid_inputs(3, 200), two.valid_inputs(3, 200)));
      const SeriesWindows held(table, options, one.scaling()), out(file, options, one.scaling());
      EXPECT_EQ(held.valid_count(), out.valid_count());
      EXPECT_TRUE(same(held.valid_inputs(0, 100), out.valid_inputs(0, 100)));
    }
  }
}

// More rows than are read at once, and changes over more of them than that.
TEST(SeriesFile, NormalisesManyRows) {
  const TempFolder folder;
  const std::string path = folder / "table.csv";
  write(path, table_of(3000));  // 2400 train
  const SeriesFile file = open_series(path, {}, 0);
  const std::vector<double> all = read_all(*file.rows);
  for (const std::size_t horizon : {1, 1500}) {
    const SeriesScaling found =
        SeriesWindows(file, {.window = 24, .horizon = std::int64_t(horizon)}).scaling();
    for (std::size_t c = 0; c < 2; ++c) {
      const auto expect = [&](const Normalisation& part, std::size_t before) {
        const auto value = [&](std::size_t row) {
          return all[2 * row + c] - (before > 0 ? all[2 * (row - before) + c] : 0.0);
        };
        const auto count = static_cast<double>(2400 - before);
        double sum = 0.0, squares = 0.0;
        for (std::size_t row = before; row < 2400; ++row) sum += value(row);
        const double mean = sum / count;
        for (std::size_t row = before; row < 2400; ++row) squares += std::pow(value(row) - mean, 2);
        const double deviation = std::sqrt(squares / count);
        EXPECT_NEAR(part.mean[c], mean, 1e-12 * deviation) << horizon;
        EXPECT_NEAR(part.deviation[c], deviation, 1e-12 * deviation) << horizon;
      };
      expect(found.values, 0);
      expect(found.changes, horizon);
    }
  }
}

TEST(SeriesWindows, AreCountedFromNought) {
  SeriesTable table{{"a"}, {}, Array(DType::kFloat64, {40, 1})};
  for (std::size_t i = 0; i < 40; ++i) table.values.as<double>()[i] = std::sin(double(i));
  const SeriesWindows windows(table, {.window = 3, .batch = 4});
  const std::string last = std::to_string(windows.windows() - 1);
  for (const std::int64_t window : {std::int64_t{-1}, windows.windows()}) {
    EXPECT_EQ(
        error_of<ArgumentError>([&] {
          windows.window({0, window});
        }),
        "[SeriesWindows::window] window " + std::to_string(window) + ", expected 0 to " + last);
  }
}

TEST(SeriesFile, ATabCutsBeforeASemicolon) {
  const TempFolder folder;
  write(folder / "table.csv", "x;y\tz\n1\t2\n");
  const SeriesFile file = open_series(folder / "table.csv", {});
  EXPECT_EQ(file.names, (std::vector<std::string>{"x;y", "z"}));
}

TEST(SeriesFile, WhatStandsInQuotesCutsNothing) {
  const TempFolder folder;
  write(folder / "table.csv", "\"temp; C\",\"a\tb\"\n1,2\n");
  EXPECT_EQ(open_series(folder / "table.csv", {}).names,
            (std::vector<std::string>{"temp; C", "a\tb"}));
  write(folder / "table.csv", "\"a \"\"b\tc\"\"\";\"d,e\"\n1;2\n");
  EXPECT_EQ(open_series(folder / "table.csv", {}).names,
            (std::vector<std::string>{"a \"b\tc\"", "d,e"}));
}

TEST(SeriesFile, RefusesARowThatIsBlankNow) {
  const TempFolder folder;
  const std::string path = folder / "table.csv";
  write(path, "a\n1\n2\n3\n");
  const SeriesFile file = open_series(path, {}, 0);
  write(path, "a\n1\n \n3\n");
  std::vector<double> values(3);
  EXPECT_EQ(error_of<FormatError>([&] { file.rows->read(0, 3, values.data()); }),
            "[" + path +
                " @ 2] the rows from here on are not those that were checked, expected a "
                "file that does not change while it is used");
}

TEST(SeriesFile, RefusesAFileThatHasChanged) {
  const TempFolder folder;
  const std::string path = folder / "table.csv", good = table_of(400);
  std::vector<double> values(800);
  const auto read = [&](const SeriesFile& file) {
    return error_of<FormatError>([&] { file.rows->read(0, 400, values.data()); });
  };
  const auto opened = [&] {
    write(path, good);
    return open_series(path, {}, 0);
  };
  const std::string changed =
      "the rows from here on are not those that were checked, expected a file that does not change "
      "while it is used";
  SeriesFile file = opened();
  std::filesystem::resize_file(path, 4000);
  EXPECT_NE(read(file).find("the file was cut while it was read"), std::string::npos);
  // Rows that were read before are still known.
  file = opened();
  file.rows->read(0, 3, values.data());
  std::filesystem::resize_file(path, 0);
  const double first = values[0];
  file.rows->read(0, 1, values.data());
  EXPECT_EQ(values[0], first);
  // A cell, a delimiter and a line less.
  const std::size_t middle = good.find('\n', good.size() / 2);
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{".", "x"}, {",", " "}, {"\n", " "}}) {
    file = opened();
    const std::size_t place = good.find(from, from == "\n" ? middle : middle + 1);
    std::fstream(path, std::ios::in | std::ios::out).seekp(std::streamoff(place)) << to;
    // Where the block begins in which the place is.
    const auto rows = std::count(good.begin(), good.begin() + std::ptrdiff_t(place), '\n');
    EXPECT_GT(rows, 64) << "not in the first one";
    const std::string said = read(file);
    EXPECT_NE(said.find(changed), std::string::npos) << from;
    const std::size_t begin = std::stoul(said.substr(path.size() + 4));
    EXPECT_GT(begin, 0U);
    EXPECT_LE(begin, place);
    EXPECT_EQ(good[begin - 1], '\n') << said;
  }
}

// A name that a table lacks is the column's place.
TEST(SeriesWindows, RefusesWithAllFigures) {
  SeriesTable table{{"a", "b"}, {}, Array(DType::kFloat64, {40, 3})};
  for (std::size_t i = 0; i < 120; ++i) table.values.as<double>()[i] = std::sin(double(i * i));
  const auto said = [&](const SeriesOptions& options) {
    return error_of<ArgumentError>([&] { const SeriesWindows windows(table, options); });
  };
  EXPECT_EQ(said({.window = 3, .batch = 4}), "");
  const std::string least = ", expected at least 1 of each";
  EXPECT_EQ(said({.window = 0, .horizon = 5, .batch = 7}),
            "[SeriesWindows] window 0, horizon 5 and batch 7" + least);
  EXPECT_EQ(said({.window = 3, .horizon = -1, .batch = 7}),
            "[SeriesWindows] window 3, horizon -1 and batch 7" + least);
  EXPECT_EQ(said({.window = 3, .horizon = 5, .batch = 0}),
            "[SeriesWindows] window 3, horizon 5 and batch 0" + least);
  EXPECT_EQ(said({.valid_fraction = 1.5}),
            "[SeriesWindows] valid_fraction 1.5, expected more than 0 and less than 1");
  table.values.as<double>()[2] = table.values.as<double>()[5] = 1e308;
  const std::string third = said({.window = 3, .batch = 4});
  EXPECT_TRUE(third.starts_with("[SeriesWindows] column '3' with a mean of ")) << third;
  SeriesScaling scaling{{{0, 0, 0}, {1, 1, 1}}, {{0, 0, 0}, {1, 1, 1}}};
  const auto given = [&] {
    return error_of<ArgumentError>([&] { const SeriesWindows windows(table, {}, scaling); });
  };
  EXPECT_EQ(given(), "");
  scaling.values.deviation[1] = -2.0;
  scaling.values.mean[1] = 0.5;
  EXPECT_EQ(given(),
            "[SeriesWindows] column 'b' with a mean of 0.5 and a deviation of -2, "
            "expected values whose squares do not overflow");
}

}  // namespace
}  // namespace openrnn::train
