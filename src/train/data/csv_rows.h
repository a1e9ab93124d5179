// A CSV file as rows of numbers: what one pass over it finds, and rows parsed by that.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "openrnn/train_data.h"
#include "train/data/csv_lines.h"

namespace openrnn::train {

/// The number that a cell spells; nothing for what is none, or not finite.
std::optional<double> csv_number(std::string_view cell);

/// Where rows are, and which of their cells are used.
struct CsvIndex {
  /// Rows from one place to the next one: places take 1/8 byte a row, and a window parses at most
  /// so many rows that it does not use.
  static constexpr std::int64_t kBlockRows = 64;

  std::uint64_t bytes = 0;  // of the file
  char delimiter = ',';
  std::int64_t rows = 0;
  std::vector<std::uint64_t> blocks;  // where every kBlockRows-th row begins
  std::vector<std::size_t> cells;     // of a line, in the order of the columns
  std::size_t width = 0;              // all cells of a line
};

/// The index of a file and the names of its columns, in one pass. Throws: as load_series, but for
/// cells that are no numbers.
struct CsvTable {
  CsvTable(const formats::ByteSource& file, const std::vector<std::string>& columns);
  /// Calls `use` with each row in turn. Throws: as load_series for a cell that is no number.
  void for_each_row(const formats::ByteSource& file,
                    const std::function<void(std::span<const double>)>& use) const;

  CsvIndex index;
  std::vector<std::string> names, ignored;
  bool has_header = false;
};

/// Rows of a file that was checked before, parsed as they are asked for.
class CsvRows final : public SeriesRows {
 public:
  CsvRows(std::shared_ptr<const formats::ByteSource> file, CsvIndex index);
  std::int64_t rows() const override { return index_.rows; }
  std::int64_t columns() const override { return static_cast<std::int64_t>(index_.cells.size()); }
  void read(std::int64_t first, std::int64_t count, double* values) const override;
  const CsvIndex& index() const { return index_; }
  const formats::ByteSource& file() const { return *file_; }

 private:
  /// A block that was parsed.
  struct Slot {
    std::int64_t block = -1;
    std::vector<double> values;
  };
  const std::vector<double>& block(std::int64_t number) const;
  void parse(std::int64_t number, std::vector<double>& values) const;
  [[noreturn]] void refuse_change(std::uint64_t offset) const;

  std::shared_ptr<const formats::ByteSource> file_;
  CsvIndex index_;
  mutable std::vector<Slot> slots_;  // a block has one place, by its number
  mutable CsvCells cells_;
};

}  // namespace openrnn::train
