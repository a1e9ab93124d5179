// Numeric columns of CSV files.
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/excerpt.h"
#include "openrnn/formats.h"
#include "openrnn/train_data.h"
#include "train/data/number.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

struct Row {
  std::int64_t line = 0;  // of the file, from 1
  std::vector<std::string> cells;
};

[[noreturn]] void refuse_file(const std::string& path, const std::string& what) {
  throw ArgumentError(message("load_series", "'", path, "' ", what));
}

std::string trimmed(const std::string& cell) {
  const auto first = cell.find_first_not_of(" \r");
  if (first == std::string::npos) return {};
  return cell.substr(first, cell.find_last_not_of(" \r") - first + 1);
}

std::optional<double> number(const std::string& cell) {
  const std::optional<double> value = parse_number<double>(cell);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

/// Splits one line into cells; inside quotes the delimiter is an ordinary character.
std::vector<std::string> cells_of(std::string_view line, char delimiter) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quoted && line[i] == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[i++];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == delimiter && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  for (std::string& cell : cells) cell = trimmed(cell);
  return cells;
}

char delimiter_of(std::string_view line) {
  for (const char candidate : {'\t', ';'}) {
    if (line.find(candidate) != std::string_view::npos) return candidate;
  }
  return ',';
}

std::vector<Row> rows_of(const std::string& path, std::string_view bytes) {
  std::vector<Row> rows;
  char delimiter = 0;
  std::int64_t line_number = 0;
  if (bytes.starts_with("\xef\xbb\xbf")) bytes.remove_prefix(3);
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    ++line_number;
    if (line.find_first_not_of(" \r") == std::string_view::npos) continue;
    if (delimiter == 0) delimiter = delimiter_of(line);
    rows.push_back({line_number, cells_of(line, delimiter)});
    const std::size_t width = rows.back().cells.size(), expected = rows.front().cells.size();
    if (width != expected) {
      refuse_file(path, "row " + std::to_string(line_number) + " has " + std::to_string(width) +
                            " cells, expected " + std::to_string(expected) + " as in the first");
    }
  }
  return rows;
}

/// Names from the first line if none of its cells is a number, else '1', '2', ...
std::vector<std::string> take_header(std::vector<Row>& rows) {
  const std::vector<std::string>& first = rows.front().cells;
  const bool header = std::none_of(
      first.begin(), first.end(), [](const std::string& cell) { return number(cell).has_value(); });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < first.size(); ++i) {
    names.push_back(header && !first[i].empty() ? first[i] : std::to_string(i + 1));
  }
  if (header) rows.erase(rows.begin());
  return names;
}

bool has_number(const std::vector<Row>& rows, std::size_t column) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const Row& row) { return number(row.cells[column]).has_value(); });
}

/// Indices of the columns to take.
std::vector<std::size_t> chosen(const std::string& path, const std::vector<Row>& rows,
                                const std::vector<std::string>& columns, SeriesTable& table) {
  std::vector<std::size_t> places;
  const std::vector<std::string>& names = table.names;
  if (columns.empty()) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (has_number(rows, i)) {
        places.push_back(i);
      } else {
        table.ignored.push_back(names[i]);
      }
    }
    return places;
  }
  for (const std::string& wanted : columns) {
    auto found = std::find(names.begin(), names.end(), wanted);
    const auto place = number(wanted);
    if (found == names.end() && place && *place >= 1 &&
        *place <= static_cast<double>(names.size()) && *place == std::floor(*place)) {
      found = names.begin() + static_cast<std::ptrdiff_t>(*place) - 1;
    }
    if (found == names.end()) {
      std::string all;
      for (const std::string& name : names) all.append(all.empty() ? "" : ", ").append(name);
      refuse_file(path, "has no column '" + excerpt(wanted) + "', expected one of " + excerpt(all));
    }
    places.push_back(static_cast<std::size_t>(found - names.begin()));
  }
  return places;
}

}  // namespace

SeriesTable load_series(const std::string& path, const std::vector<std::string>& columns) {
  std::vector<Row> rows = rows_of(path, read_file(path));
  if (rows.empty()) refuse_file(path, "is empty, expected rows of numbers");
  SeriesTable table;
  table.names = take_header(rows);
  if (rows.empty()) refuse_file(path, "has a header and no row, expected rows of numbers");
  const std::vector<std::size_t> places = chosen(path, rows, columns, table);
  if (places.empty()) refuse_file(path, "has no column of numbers, expected at least 1");
  table.values = Array(DType::kFloat64, {static_cast<std::int64_t>(rows.size()),
                                         static_cast<std::int64_t>(places.size())});
  auto values = table.values.as<double>();
  std::size_t at = 0;
  for (const Row& row : rows) {
    for (const std::size_t place : places) {
      const std::string& cell = row.cells[place];
      const auto value = number(cell);
      if (!value) {
        refuse_file(path,
                    "row " + std::to_string(row.line) + ", column '" + excerpt(table.names[place]) +
                        "': " + (cell.empty() ? "a missing cell" : "'" + excerpt(cell) + "'") +
                        ", expected a number");
      }
      values[at++] = *value;
    }
  }
  std::vector<std::string> names;
  for (const std::size_t place : places) names.push_back(table.names[place]);
  table.names = std::move(names);
  return table;
}

}  // namespace openrnn::train
