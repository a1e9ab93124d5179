#include "train/data/csv_rows.h"

#include <algorithm>
#include <cmath>

#include "base/excerpt.h"
#include "train/data/number.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

// Of blocks that were parsed: a batch of windows finds its rows there while it is gathered.
constexpr std::size_t kCacheBytes = std::size_t{4} << 20;
constexpr std::size_t kLeastSlots = 4, kMostSlots = 1024;

template <class... Parts>
[[noreturn]] void refuse_file(const std::string& path, const Parts&... what) {
  throw ArgumentError(message("load_series", "'", path, "' ", what...));
}

/// A tab, else a semicolon, else a comma; those inside quotes are text.
char delimiter_of(std::string_view line) {
  char found = ',';
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '\t') return c;
    if (c == ';') found = c;
  }
  return found;
}

/// Which cells the columns are; empty: those with numbers.
std::vector<std::size_t> chosen(const std::string& path, const std::vector<std::string>& names,
                                const std::vector<std::string>& columns) {
  std::vector<std::size_t> places;
  for (const std::string& wanted : columns) {
    auto found = std::find(names.begin(), names.end(), wanted);
    const auto place = csv_number(wanted);
    if (found == names.end() && place && *place >= 1 &&
        *place <= static_cast<double>(names.size()) && *place == std::floor(*place)) {
      found = names.begin() + static_cast<std::ptrdiff_t>(*place) - 1;
    }
    if (found == names.end()) {
      std::string all;
      for (const std::string& name : names) all.append(all.empty() ? "" : ", ").append(name);
      refuse_file(path, "has no column '", excerpt(wanted), "', expected one of ", excerpt(all));
    }
    places.push_back(static_cast<std::size_t>(found - names.begin()));
  }
  return places;
}

}  // namespace

std::optional<double> csv_number(std::string_view cell) {
  const std::optional<double> value = parse_number<double>(cell);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

CsvTable::CsvTable(const formats::ByteSource& file, const std::vector<std::string>& columns) {
  CsvLines lines(file);
  CsvCells splitter;
  std::vector<char> numeric;
  std::vector<std::string> all;
  index.bytes = file.size();
  for (bool first = true; lines.next(); first = false) {
    if (first) index.delimiter = delimiter_of(lines.line());
    const auto& cells = splitter.split(lines.line(), index.delimiter);
    if (first) {
      // A header where none of its cells is a number.
      has_header = std::none_of(cells.begin(), cells.end(),
                                [](std::string_view cell) { return csv_number(cell).has_value(); });
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const bool named = has_header && !cells[i].empty();
        all.push_back(named ? std::string(cells[i]) : std::to_string(i + 1));
      }
      numeric.resize(cells.size());
      if (has_header) continue;
    }
    if (cells.size() != all.size()) {
      refuse_file(file.path(), "row ", lines.number(), " has ", cells.size(), " cells, expected ",
                  all.size(), " as in the first");
    }
    if (index.rows++ % CsvIndex::kBlockRows == 0) index.blocks.push_back(lines.offset());
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!numeric[i] && csv_number(cells[i])) numeric[i] = 1;
    }
  }
  if (all.empty()) refuse_file(file.path(), "is empty, expected rows of numbers");
  if (index.rows == 0) {
    refuse_file(file.path(), "has a header and no row, expected rows of numbers");
  }
  index.width = all.size();
  index.cells = chosen(file.path(), all, columns);
  for (std::size_t i = 0; i < all.size() && columns.empty(); ++i) {
    if (numeric[i]) {
      index.cells.push_back(i);
    } else {
      ignored.push_back(all[i]);
    }
  }
  if (index.cells.empty()) {
    refuse_file(file.path(), "has no column of numbers, expected at least 1");
  }
  for (const std::size_t place : index.cells) names.push_back(all[place]);
}

void CsvTable::for_each_row(const formats::ByteSource& file,
                            const std::function<void(std::span<const double>)>& use) const {
  CsvLines lines(file);
  CsvCells splitter;
  std::vector<double> values(index.cells.size());
  if (has_header) lines.next();
  while (lines.next()) {
    const auto& cells = splitter.split(lines.line(), index.delimiter);
    for (std::size_t c = 0; c < values.size(); ++c) {
      const std::string_view cell = cells.at(index.cells[c]);
      const auto value = csv_number(cell);
      if (!value) {
        refuse_file(file.path(), "row ", lines.number(), ", column '", excerpt(names[c]),
                    "': ", cell.empty() ? "a missing cell" : "'" + excerpt(cell) + "'",
                    ", expected a number");
      }
      values[c] = *value;
    }
    use(values);
  }
}

CsvRows::CsvRows(std::shared_ptr<const formats::ByteSource> file, CsvIndex index)
    : file_(std::move(file)), index_(std::move(index)) {
  const std::size_t bytes =
      static_cast<std::size_t>(CsvIndex::kBlockRows) * index_.cells.size() * sizeof(double);
  slots_.resize(std::clamp(kCacheBytes / bytes, kLeastSlots, kMostSlots));
}

void CsvRows::read(std::int64_t first, std::int64_t count, double* values) const {
  while (count > 0) {
    const std::int64_t begin = first % CsvIndex::kBlockRows;
    const std::int64_t rows = std::min(count, CsvIndex::kBlockRows - begin);
    const std::vector<double>& from = block(first / CsvIndex::kBlockRows);
    values = std::copy_n(from.data() + begin * columns(), rows * columns(), values);
    first += rows;
    count -= rows;
  }
}

const std::vector<double>& CsvRows::block(std::int64_t number) const {
  Slot& slot = slots_[static_cast<std::size_t>(number) % slots_.size()];
  if (slot.block == number) return slot.values;
  slot.block = -1;
  parse(number, slot.values);
  slot.block = number;
  return slot.values;
}

void CsvRows::refuse_change(std::uint64_t offset) const {
  throw FormatError(file_->path(), offset,
                    "the rows from here on are not those that were checked, expected a file that "
                    "does not change while it is used");
}

void CsvRows::parse(std::int64_t number, std::vector<double>& values) const {
  const auto place = static_cast<std::size_t>(number);
  const std::uint64_t begin = index_.blocks[place];
  const std::uint64_t end =
      place + 1 < index_.blocks.size() ? index_.blocks[place + 1] : index_.bytes;
  CsvLines lines(*file_, begin, end, static_cast<std::size_t>(end - begin));
  const std::int64_t rows =
      std::min(CsvIndex::kBlockRows, index_.rows - number * CsvIndex::kBlockRows);
  values.clear();
  while (lines.next()) {
    const auto& cells = cells_.split(lines.line(), index_.delimiter);
    if (cells.size() != index_.width) refuse_change(begin);
    for (const std::size_t cell : index_.cells) {
      const auto value = csv_number(cells[cell]);
      if (!value) refuse_change(begin);
      values.push_back(*value);
    }
  }
  if (static_cast<std::int64_t>(values.size()) != rows * columns()) refuse_change(begin);
}

}  // namespace openrnn::train
