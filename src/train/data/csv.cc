// Numeric columns of CSV files, in memory or not.
#include <filesystem>

#include "openrnn/formats.h"
#include "train/data/csv_rows.h"
#include "train/data/fingerprint.h"
#include "train/data/memory_rows.h"

namespace openrnn::train {
namespace {

constexpr std::uint64_t kReadWhole = std::uint64_t{64} << 20;

/// The bytes of a file, read where they fit or have no size, as those of a pipe.
class Bytes {
 public:
  Bytes(const std::string& path, std::uint64_t map_above) {
    std::error_code no_size;
    const std::uint64_t size = std::filesystem::file_size(path, no_size);
    if (!no_size && size > map_above) {
      source_ = std::make_shared<const formats::FileSource>(path);
      return;
    }
    text_ = read_file(path);
    source_ = std::make_shared<const formats::MemorySource>(path, text_);
    is_read_ = true;
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  bool is_read() const { return is_read_; }
  const std::shared_ptr<const formats::ByteSource>& source() const { return source_; }

 private:
  std::string text_;
  std::shared_ptr<const formats::ByteSource> source_;
  bool is_read_ = false;
};

SeriesTable table_of(const formats::ByteSource& source, const std::vector<std::string>& columns) {
  const CsvTable csv(source, columns);
  SeriesTable table{csv.names, csv.ignored, {}};
  table.values =
      Array(DType::kFloat64, {csv.index.rows, static_cast<std::int64_t>(csv.index.cells.size())});
  auto to = table.values.as<double>().begin();
  csv.for_each_row(
      source, [&](std::span<const double> row) { to = std::copy(row.begin(), row.end(), to); });
  return table;
}

std::string_view bytes_of(std::span<const double> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

}  // namespace

SeriesRows::~SeriesRows() = default;

SeriesTable load_series(const std::string& path, const std::vector<std::string>& columns) {
  return table_of(*Bytes(path, kReadWhole).source(), columns);
}

SeriesFile open_series(const std::string& path, const std::vector<std::string>& columns,
                       std::uint64_t map_above) {
  const Bytes bytes(path, map_above);
  Fingerprint all;
  if (bytes.is_read()) {
    SeriesTable table = table_of(*bytes.source(), columns);
    all.add(bytes_of(table.values.as<double>()));
    return {std::move(table.names), std::move(table.ignored),
            std::make_shared<const MemoryRows>(std::move(table.values)), all.text()};
  }
  CsvTable csv(*bytes.source(), columns);
  csv.for_each_row(*bytes.source(), [&](std::span<const double> row) { all.add(bytes_of(row)); });
  auto rows = std::make_shared<const CsvRows>(bytes.source(), std::move(csv.index));
  return {std::move(csv.names), std::move(csv.ignored), std::move(rows), all.text()};
}

}  // namespace openrnn::train
