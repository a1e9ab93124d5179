// CSV files and windows over them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "openrnn/train_data.h"
#include "openrnn/train_model.h"
#include "support/expect_error.h"

namespace openrnn::train {
namespace {

class CsvFile {
 public:
  explicit CsvFile(const std::string& bytes)
      : path_(testing::TempDir() + "openrnn_series_" + std::to_string(::getpid()) + ".csv") {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~CsvFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

SeriesTable table_of(const std::string& bytes, const std::vector<std::string>& columns = {}) {
  return load_series(CsvFile(bytes).path(), columns);
}

std::string load_error(const std::string& bytes, const std::vector<std::string>& columns = {}) {
  const CsvFile file(bytes);
  try {
    load_series(file.path(), columns);
  } catch (const ArgumentError& error) {
    const std::string what = error.what();
    const std::size_t at = what.find(file.path());
    return std::string(what, 0, at).append("F").append(what, at + file.path().size());
  }
  return "";
}

std::vector<double> values_of(const SeriesTable& table) {
  const auto values = table.values.as<double>();
  return {values.begin(), values.end()};
}

TEST(LoadSeries, HeaderDatesQuotesAndLineEnds) {
  const SeriesTable table = table_of(
      "\xef\xbb\xbf"
      "date,\"a, b\",c\r\n2001-01-02,1.5,-2e1\r\n\r\n2001-01-03, +3 ,\"4\"\r\n");
  EXPECT_EQ(table.names, (std::vector<std::string>{"a, b", "c"}));
  EXPECT_EQ(table.ignored, (std::vector<std::string>{"date"}));
  EXPECT_EQ(table.values.shape(), (Shape{2, 2}));
  EXPECT_EQ(values_of(table), (std::vector<double>{1.5, -20.0, 3.0, 4.0}));
}

TEST(LoadSeries, NoHeaderAndOtherDelimiters) {
  EXPECT_EQ(values_of(table_of("1;2\n3;4")), (std::vector<double>{1, 2, 3, 4}));
  const SeriesTable table = table_of("1\t2\n3\t4\n", {"2"});
  EXPECT_EQ(table.names, (std::vector<std::string>{"2"}));
  EXPECT_EQ(values_of(table), (std::vector<double>{2, 4}));
}

TEST(LoadSeries, QuotesInAndAroundCells) {
  using Names = std::vector<std::string>;
  const std::pair<const char*, Names> cases[] = {
      {"\"\",b", {"1", "b"}},  // an empty cell in quotes has the column's number
      {"b,\"\"", {"b", "2"}},
      {"\"a \"\"b\"\"\",c", {"a \"b\"", "c"}},  // two quotes inside quotes are one
      {"\"a;b\";c", {"a;b", "c"}},
      {" a , b ", {"a", "b"}}};
  for (const auto& [header, names] : cases) {
    const char between = std::string(header).find(';') == std::string::npos ? ',' : ';';
    const SeriesTable table = table_of(std::string(header) + "\n1" + between + "2\n");
    EXPECT_EQ(table.names, names) << header;
    EXPECT_EQ(values_of(table), (std::vector<double>{1, 2})) << header;
  }
}

TEST(LoadSeries, PicksColumnsByName) {
  const SeriesTable table = table_of("x,y,z\n1,2,3\n4,5,6\n", {"z", "x"});
  EXPECT_EQ(table.names, (std::vector<std::string>{"z", "x"}));
  EXPECT_EQ(values_of(table), (std::vector<double>{3, 1, 6, 4}));
}

// A number is a column's place, from 1.
TEST(LoadSeries, PicksColumnsByPlace) {
  const std::string bytes = "x,y,z\n1,5,3\n4,6,7\n";
  EXPECT_EQ(values_of(table_of(bytes, {"1"})), (std::vector<double>{1, 4}));
  EXPECT_EQ(values_of(table_of(bytes, {"3", "2"})), (std::vector<double>{3, 5, 7, 6}));
  EXPECT_EQ(table_of(bytes, {"3"}).names, (std::vector<std::string>{"z"}));
  for (const std::string place : {"0", "-1", "4", "1.5", "2.9", "1e9"}) {
    EXPECT_EQ(load_error(bytes, {place}),
              "[load_series] 'F' has no column '" + place + "', expected one of x, y, z");
  }
}

TEST(LoadSeries, CountsEmptyLinesAsEditorsDo) {
  EXPECT_EQ(load_error("\n1,2\n\r\n  \n3,x\n"),
            "[load_series] 'F' row 5, column '2': 'x', expected a number");
  EXPECT_EQ(load_error("1,2\n\n3\n"),
            "[load_series] 'F' row 3 has 1 cells, expected 2 as in the first");
}

TEST(LoadSeries, NamesRowAndColumnOfABadCell) {
  EXPECT_EQ(load_error("x,y\n1,2\n3,\n"),
            "[load_series] 'F' row 3, column 'y': a missing cell, expected a number");
  EXPECT_EQ(load_error("x,y\nabc,2\n\n3,4\n"),
            "[load_series] 'F' row 2, column 'x': 'abc', expected a number");
  EXPECT_EQ(load_error("1,2\n3,nan\n"),
            "[load_series] 'F' row 2, column '2': 'nan', expected a number");
  EXPECT_EQ(load_error("1,2\n3,1e999\n"),
            "[load_series] 'F' row 2, column '2': '1e999', expected a number");
  EXPECT_EQ(load_error("1,2\n3,4,5\n"),
            "[load_series] 'F' row 2 has 3 cells, expected 2 as in the first");
}

TEST(LoadSeries, TextAndDatesAreNoNumbers) {
  for (const std::string cell : {"+-5", "++5", "--5", "-+5", "+", "0x10", "1_000", "1 000", "5a",
                                 "2001-01-02", "01.02.2001", "1/2", "12:30", "inf", "NaN", "1e"}) {
    EXPECT_EQ(load_error("1\n" + cell + "\n"),
              "[load_series] 'F' row 2, column '1': '" + cell + "', expected a number");
    const SeriesTable table = table_of("x,y\n" + cell + ",1\n" + cell + ",2\n");
    EXPECT_EQ(table.ignored, std::vector<std::string>{"x"}) << cell;
    EXPECT_EQ(values_of(table), (std::vector<double>{1, 2})) << cell;
  }
  EXPECT_EQ(values_of(table_of("+5\n-5\n1.\n.5\n1E2\n")),
            (std::vector<double>{5, -5, 1, 0.5, 100}));
}

TEST(LoadSeries, QuotesAPartOfALongCell) {
  const std::string error = load_error("1\n" + std::string(5000, 'x') + "\n");
  EXPECT_LT(error.size(), 250U);
  EXPECT_NE(error.find("xxx..."), std::string::npos);
}

TEST(LoadSeries, RefusesFilesWithoutNumbers) {
  EXPECT_EQ(load_error(""), "[load_series] 'F' is empty, expected rows of numbers");
  EXPECT_EQ(load_error("x,y\n"),
            "[load_series] 'F' has a header and no row, expected rows of numbers");
  EXPECT_EQ(load_error("x,y\na,b\n"),
            "[load_series] 'F' has no column of numbers, expected at least 1");
  EXPECT_EQ(load_error("x,y\n1,2\n", {"q"}),
            "[load_series] 'F' has no column 'q', expected one of x, y");
}

SeriesTable ramp(std::int64_t rows) {
  SeriesTable table;
  table.names = {"square", "line"};
  table.values = Array(DType::kFloat64, {rows, 2});
  for (std::int64_t i = 0; i < rows; ++i) {
    table.values.as<double>()[static_cast<std::size_t>(2 * i)] = static_cast<double>(i * i);
    table.values.as<double>()[static_cast<std::size_t>(2 * i + 1)] = static_cast<double>(-i);
  }
  return table;
}

SeriesOptions small_options() {
  SeriesOptions options;
  options.window = 3;
  options.horizon = 2;
  options.batch = 4;
  options.valid_fraction = 0.25;
  options.seed = 5;
  return options;
}

std::int64_t season_of(const SeriesTable& table, std::int64_t horizon) {
  SeriesOptions options = small_options();
  options.window = 20;
  options.horizon = horizon;
  return SeriesWindows(table, options).best_season();
}

TEST(SeriesWindows, NormalisesByTheTrainingRowsAlone) {
  SeriesTable table = ramp(20);  // 15 rows train
  const SeriesScaling scaling = SeriesWindows(table, small_options()).scaling();
  EXPECT_DOUBLE_EQ(scaling.values.mean[1], -7.0);
  EXPECT_DOUBLE_EQ(scaling.values.deviation[1], std::sqrt((15.0 * 15.0 - 1.0) / 12.0));
  EXPECT_DOUBLE_EQ(scaling.changes.mean[1], -2.0);
  EXPECT_EQ(scaling.changes.deviation[1], 1.0);  // a constant
  for (std::size_t i = 30; i < 40; ++i) table.values.as<double>()[i] = 1e6;
  const SeriesScaling other = SeriesWindows(table, small_options()).scaling();
  EXPECT_EQ(other.values.mean, scaling.values.mean);
  EXPECT_EQ(other.changes.deviation, scaling.changes.deviation);
}

TEST(SeriesWindows, WithoutOptions) {
  const SeriesWindows windows(ramp(100), {});
  EXPECT_EQ(windows.valid_inputs(0, 1).shape(), (Shape{32, 1, 2}));
  EXPECT_EQ(windows.batch(), 32);
  EXPECT_EQ(windows.valid_count(), 20);
}

TEST(SeriesWindows, EveryTrainingWindowOnceAnEpoch) {
  for (const bool to_sequence : {false, true}) {
    SeriesOptions options = small_options();
    options.to_sequence = to_sequence;
    const SeriesWindows windows(ramp(20), options);  // 15 - 3 - 2 + 1 = 11 windows
    ASSERT_EQ(windows.windows(), 3);
    std::multiset<int> first_rows;
    for (std::int64_t i = 0; i < 3; ++i) {
      const Window window = windows.window({2, i});
      const std::int64_t batch = i < 2 ? 4 : 3;
      EXPECT_EQ(window.x.shape(), (Shape{3, batch, 2}));
      EXPECT_EQ(window.y.shape(), to_sequence ? (Shape{3, batch, 2}) : (Shape{batch, 2}));
      const SeriesScaling& scaling = windows.scaling();
      for (std::int64_t b = 0; b < batch; ++b) {
        const double line = window.x.as<double>()[static_cast<std::size_t>(2 * b + 1)];
        const double row = -(line * scaling.values.deviation[1] + scaling.values.mean[1]);
        first_rows.insert(static_cast<int>(std::lround(row)));
        // The last forecast: (row + 4)^2 - (row + 2)^2.
        const std::int64_t steps_before = to_sequence ? 2 * batch : 0;
        const double y = window.y.as<double>()[static_cast<std::size_t>((steps_before + b) * 2)];
        EXPECT_NEAR(y * scaling.changes.deviation[0] + scaling.changes.mean[0], 4.0 * row + 12.0,
                    1e-9);
      }
    }
    EXPECT_EQ(first_rows, (std::multiset<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  }
}

TEST(SeriesWindows, TheOrderDependsOnSeedAndEpochAlone) {
  const auto first = [](std::uint64_t seed, std::int64_t epoch) {
    SeriesOptions options = small_options();
    options.seed = seed;
    const Window window = SeriesWindows(ramp(40), options).window({epoch, 0});
    const auto values = window.x.as<double>();
    return std::vector<double>(values.begin(), values.end());
  };
  EXPECT_EQ(first(1, 3), first(1, 3));
  EXPECT_NE(first(1, 3), first(1, 4));
  EXPECT_NE(first(1, 3), first(2, 3));
}

TEST(SeriesWindows, HeldOutRowsAndNaiveForecasts) {
  const SeriesWindows windows(ramp(20), small_options());
  ASSERT_EQ(windows.valid_count(), 5);
  EXPECT_EQ(windows.valid_truth(0, 1), -15.0);
  EXPECT_EQ(windows.valid_last(0, 1), -13.0);
  EXPECT_EQ(windows.valid_seasonal(4, 1, 3), -16.0);
  const Array x = windows.valid_inputs(4, 1);
  const SeriesScaling& scaling = windows.scaling();
  EXPECT_NEAR(x.as<double>()[5] * scaling.values.deviation[1] + scaling.values.mean[1], -17.0,
              1e-12);
}

TEST(SeriesWindows, FindsTheSeason) {
  SeriesTable table = ramp(200);
  for (std::size_t i = 0; i < 200; ++i) {
    table.values.as<double>()[2 * i] = std::sin(static_cast<double>(i) * 2.0 * M_PI / 7.0);
    table.values.as<double>()[2 * i + 1] = static_cast<double>(i % 7 == 3);
  }
  EXPECT_EQ(season_of(table, 1), 7);
}

TEST(SeriesWindows, ASeasonIsNoShorterThanTheHorizon) {
  SeriesTable table = ramp(200);
  for (std::size_t i = 0; i < 400; ++i) {
    table.values.as<double>()[i] = static_cast<double>(i / 2 % 3 == 1);
  }
  EXPECT_EQ(season_of(table, 2), 3);
  // Three rows ago is not known when five rows ahead are asked for.
  EXPECT_EQ(season_of(table, 5), 6);
}

TEST(SeriesWindows, TheLongestSeasonIsTheWindowOrAThirdOfTheTrainingRows) {
  const auto found = [](std::int64_t rows, std::size_t season) {
    SeriesTable table = ramp(rows);
    for (std::size_t i = 0; i < 2 * static_cast<std::size_t>(rows); ++i) {
      table.values.as<double>()[i] = static_cast<double>(i / 2 % season == 1);
    }
    return season_of(table, 2);
  };
  EXPECT_EQ(found(200, 20), 20) << "the window";
  EXPECT_EQ(found(40, 10), 10) << "of 30 rows";
  EXPECT_LE(found(40, 12), 10);
}

// The last value is a forecast of its own.
TEST(SeriesWindows, ASeasonIsTwoRowsAtLeast) {
  SeriesTable table = ramp(200);
  for (std::size_t i = 0; i < 400; ++i) {
    table.values.as<double>()[i] = std::sin(static_cast<double>(i / 2) / 40.0);
  }
  EXPECT_EQ(season_of(table, 1), 2);
}

// The season of a column of small numbers counts as much as that of one of large numbers.
TEST(SeriesWindows, ASeasonIsThatOfNormalisedColumns) {
  SeriesTable table = ramp(200);
  for (std::size_t i = 0; i < 200; ++i) {
    table.values.as<double>()[2 * i] = 1000.0 * (static_cast<double>(i) / 20.0 + (i % 5 == 0));
    table.values.as<double>()[2 * i + 1] = static_cast<double>(i % 7 == 3);
  }
  EXPECT_EQ(season_of(table, 1), 7);
}

// Else the longest one would have the least errors.
TEST(SeriesWindows, SeasonsAreComparedOverTheSameRows) {
  SeriesTable table = ramp(80);
  for (std::size_t i = 0; i < 80; ++i) {
    const double value = i == 5 || i == 7 ? 100.0 : static_cast<double>(i % 3 == 1);
    table.values.as<double>()[2 * i] = table.values.as<double>()[2 * i + 1] = value;
  }
  EXPECT_EQ(season_of(table, 1), 3);
}

TEST(SeriesWindows, OfAGivenScalingHaveNoSeason) {
  SeriesOptions options = small_options();
  options.window = 20;
  const SeriesWindows made(ramp(100), options);
  EXPECT_GT(made.best_season(), 0);
  EXPECT_EQ(SeriesWindows(ramp(100), options, made.scaling()).best_season(), 0);
}

std::string windows_error(const SeriesTable& table, const SeriesOptions& options,
                          const std::optional<SeriesScaling>& scaling = {}) {
  return error_of<ArgumentError>([&] { SeriesWindows(table, options, scaling); });
}

TEST(SeriesWindows, RefusesValuesWhoseSquaresOverflow) {
  for (const double value : {1e200, -1e308}) {
    SeriesTable table = ramp(40);
    table.values.as<double>()[11] = value;
    const std::string error = windows_error(table, small_options());
    EXPECT_TRUE(error.starts_with("[SeriesWindows] column 'line' with a mean of ")) << error;
    EXPECT_TRUE(error.ends_with("expected values whose squares do not overflow")) << error;
  }
}

TEST(SeriesWindows, RefusesAScalingThatDoesNotFit) {
  const SeriesScaling good = SeriesWindows(ramp(20), small_options()).scaling();
  EXPECT_EQ(windows_error(ramp(20), small_options(), good), "");
  for (const bool of_values : {true, false}) {
    for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
      SeriesScaling scaling = good;
      (of_values ? scaling.values : scaling.changes).deviation[1] = bad;
      EXPECT_NE(windows_error(ramp(20), small_options(), scaling), "") << bad;
    }
    SeriesScaling scaling = good;
    (of_values ? scaling.values : scaling.changes).mean[0] = std::nan("");
    EXPECT_NE(windows_error(ramp(20), small_options(), scaling), "");
    scaling = good;
    (of_values ? scaling.values : scaling.changes).deviation.pop_back();
    EXPECT_EQ(windows_error(ramp(20), small_options(), scaling),
              "[SeriesWindows] a scaling of 2 means and 1 deviations, expected 2 of each");
    scaling = good;
    (of_values ? scaling.values : scaling.changes).mean.push_back(0.0);
    EXPECT_EQ(windows_error(ramp(20), small_options(), scaling),
              of_values ? "[SeriesWindows] 2 columns, expected 3 as the model has"
                        : "[SeriesWindows] a scaling of 3 means and 2 deviations, expected 2 of "
                          "each");
  }
}

TEST(SeriesWindows, RefusesTooFewRows) {
  try {
    const SeriesWindows windows(ramp(5), small_options());
    ADD_FAILURE();
  } catch (const ArgumentError& error) {
    EXPECT_EQ(std::string(error.what()),
              "[SeriesWindows] 5 rows, of which 4 train, expected at least 5 of those for windows "
              "of 3 and a horizon of 2");
  }
}

// At least one row is held out, and one window is enough to train and to forecast.
TEST(SeriesWindows, TheFewestRowsThatDo) {
  SeriesOptions options = small_options();
  options.valid_fraction = 0.01;
  const SeriesWindows most(ramp(20), options), least(ramp(6), options);
  EXPECT_EQ(most.valid_count(), 1);
  EXPECT_EQ(most.valid_truth(0, 1), -19.0);
  EXPECT_EQ(least.valid_count(), 1);
  EXPECT_EQ(least.windows(), 1);
  EXPECT_EQ(least.window({0, 0}).x.shape(), (Shape{3, 1, 2}));
  const SeriesWindows given(ramp(5), options, most.scaling());
  EXPECT_EQ(given.valid_count(), 1);
  EXPECT_EQ(given.valid_truth(0, 1), -4.0);
  EXPECT_EQ(given.valid_last(0, 1), -2.0);
  EXPECT_EQ(windows_error(ramp(4), options, most.scaling()),
            "[SeriesWindows] 4 rows, expected at least 5 for windows of 3 and a horizon of 2");
}

TEST(SeriesWindows, RefusesOptionsOutOfRange) {
  for (std::int64_t SeriesOptions::*size :
       {&SeriesOptions::window, &SeriesOptions::horizon, &SeriesOptions::batch}) {
    SeriesOptions options = small_options();
    options.*size = 0;
    EXPECT_TRUE(windows_error(ramp(20), options).ends_with(", expected at least 1 of each"));
  }
  for (const double fraction : {0.0, 1.0, -0.5, std::nan("")}) {
    SeriesOptions options = small_options();
    options.valid_fraction = fraction;
    EXPECT_TRUE(
        windows_error(ramp(20), options).ends_with(", expected more than 0 and less than 1"))
        << fraction;
  }
}

// A network whose weights are zero forecasts the bias: in the file's units the mean of the changes,
// and the bias times their deviation.
TEST(ScoreSeries, OfAConstantForecast) {
  const SeriesWindows windows(ramp(20), small_options());
  Graph graph;
  const Graph::AsDefault current(graph);
  ModelConfig config;
  config.network.mode = RnnMode::kRnnTanh;
  config.network.num_units = 3;
  config.columns = config.outputs = 2;
  SequenceModel model(config);
  for (const Variable& variable : model.variables()) {
    variable.assign(Array(variable.dtype(), variable.shape()).view());
  }
  const float bias[] = {0.5F, -0.25F};
  model.dense().weights()[1].assign(Array::of<float>({2}, bias).view());
  const SeriesScore score = score_series(model, windows);
  const Normalisation& changes = windows.scaling().changes;
  ASSERT_NE(changes.mean[0], 0.0);
  double total = 0.0, last_total = 0.0;
  for (std::size_t c = 0; c < 2; ++c) {
    const auto column = static_cast<std::int64_t>(c);
    double sum = 0.0, last_sum = 0.0;
    for (std::int64_t i = 0; i < 5; ++i) {
      const double change = windows.valid_truth(i, column) - windows.valid_last(i, column);
      const double forecast = static_cast<double>(bias[c]) * changes.deviation[c] + changes.mean[c];
      sum += (forecast - change) * (forecast - change);
      last_sum += change * change;
    }
    EXPECT_NEAR(score.model[c], std::sqrt(sum / 5.0), 1e-9 * std::sqrt(sum));
    EXPECT_NEAR(score.last_value[c], std::sqrt(last_sum / 5.0), 1e-12 * std::sqrt(last_sum));
    const double deviation = windows.scaling().values.deviation[c];
    total += sum / 5.0 / (deviation * deviation);
    last_total += last_sum / 5.0 / (deviation * deviation);
  }
  EXPECT_NEAR(score.model_total, std::sqrt(total / 2.0), 1e-9);
  EXPECT_NEAR(score.last_value_total, std::sqrt(last_total / 2.0), 1e-12);
  EXPECT_EQ(score.season, windows.best_season());
}

// More than the rows of one call: each is counted once, and with its own truth.
TEST(ScoreSeries, OfManyRows) {
  SeriesTable table = ramp(700);
  RandomStream random(3);
  for (double& x : table.values.as<double>()) x = random.uniform(-2.0, 3.0);
  SeriesOptions options = small_options();
  options.window = 6;
  options.valid_fraction = 0.6;
  const SeriesWindows windows(table, options);
  ASSERT_EQ(windows.valid_count(), 420);
  Graph graph;
  const Graph::AsDefault current(graph);
  ModelConfig config;
  config.network.num_units = 4;
  config.network.training.seed = 3;
  config.columns = config.outputs = 2;
  SequenceModel model(config);
  const SeriesScore score = score_series(model, windows);
  const Normalisation& changes = windows.scaling().changes;
  ASSERT_GT(score.season, 0);
  std::array<double, 2> seasonal{};
  for (std::int64_t i = 0; i < 420; ++i) {
    for (std::size_t c = 0; c < 2; ++c) {
      const auto column = static_cast<std::int64_t>(c);
      const double error =
          windows.valid_seasonal(i, column, score.season) - windows.valid_truth(i, column);
      seasonal[c] += error * error / 420.0;
    }
  }
  const std::vector<double>& unit = windows.scaling().values.deviation;
  EXPECT_NEAR(score.seasonal_total,
              std::sqrt((seasonal[0] / unit[0] / unit[0] + seasonal[1] / unit[1] / unit[1]) / 2.0),
              1e-9);
  for (std::size_t c = 0; c < 2; ++c) {
    EXPECT_NEAR(score.seasonal[c], std::sqrt(seasonal[c]), 1e-9);
  }
  std::array<double, 2> sums{};
  for (std::int64_t i = 0; i < 420; ++i) {
    const Array outputs = model(windows.valid_inputs(i, 1)).outputs.to_host();
    for (std::size_t c = 0; c < 2; ++c) {
      const auto column = static_cast<std::int64_t>(c);
      const double change = element(outputs.view(), 5 * 2 + column);
      const double error = windows.valid_last(i, column) + change * changes.deviation[c] +
                           changes.mean[c] - windows.valid_truth(i, column);
      sums[c] += error * error;
    }
  }
  for (std::size_t c = 0; c < 2; ++c) {
    EXPECT_NEAR(score.model[c], std::sqrt(sums[c] / 420.0), 1e-6);
  }
}

}  // namespace
}  // namespace openrnn::train
