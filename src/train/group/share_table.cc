#include "train/group/share_table.h"

#include <algorithm>
#include <utility>

#include "train/data/csv_rows.h"
#include "train/data/fingerprint.h"
#include "train/data/memory_rows.h"

namespace openrnn::train {
namespace {

constexpr std::size_t kMost = std::size_t{1} << 30;  // of one message

/// The bytes of rank 0 take the place of those of the others.
void share(Group& group, void* data, std::size_t size) {
  group.with_messages([&](Communicator& all) {
    auto* const bytes = static_cast<std::byte*>(data);
    for (std::size_t at = 0; at < size; at += kMost) {
      all.broadcast(bytes + at, std::min(kMost, size - at), 0);
    }
  });
}

/// Of some of a file's bytes, which differ where somebody else's file of that name does.
std::string sample_of(const formats::ByteSource& file) {
  constexpr std::uint64_t kPlaces = 256, kBytes = 256;
  Fingerprint all;
  all.add(std::to_string(file.size()));
  const std::uint64_t bytes = std::min(file.size(), kBytes), last = file.size() - bytes;
  for (std::uint64_t i = 0; i < kPlaces; ++i) {
    // The last ones of the file among them.
    all.add(file.read_string(last / (kPlaces - 1) * i + last % (kPlaces - 1) * i / (kPlaces - 1),
                             bytes));
  }
  return all.text();
}

/// A file that is not in memory: its index.
void share_index(Group& group, const std::string& path, std::int64_t rows, SeriesFile& file) {
  const auto* const own = dynamic_cast<const CsvRows*>(file.rows.get());
  CsvIndex index = own ? own->index() : CsvIndex{};
  index.rows = rows;
  index.cells.resize(file.names.size());
  index.blocks.resize(
      static_cast<std::size_t>((rows + CsvIndex::kBlockRows - 1) / CsvIndex::kBlockRows));
  share(group, &index.bytes, sizeof(index.bytes));
  share(group, &index.delimiter, sizeof(index.delimiter));
  share(group, &index.width, sizeof(index.width));
  share(group, index.cells.data(), index.cells.size() * sizeof(std::size_t));
  share(group, index.blocks.data(), index.blocks.size() * sizeof(std::uint64_t));
  std::shared_ptr<const formats::FileSource> source;
  std::string sample;
  group.together([&] {
    if (!own) source = std::make_shared<const formats::FileSource>(path);
    sample = sample_of(own ? own->file() : *source);
  });
  group.require_same("Run", "a file to train on of fingerprint", sample);
  if (!own) file.rows = std::make_shared<const CsvRows>(std::move(source), std::move(index));
}

/// The numbers themselves.
void share_values(Group& group, std::int64_t rows, SeriesFile& file) {
  if (const auto* const own = dynamic_cast<const MemoryRows*>(file.rows.get())) {
    // Who sends is not written to.
    share(group, const_cast<void*>(own->values().data()), own->values().size_bytes());
    return;
  }
  Array values(DType::kFloat64, {rows, static_cast<std::int64_t>(file.names.size())});
  share(group, values.data(), values.size_bytes());
  file.rows = std::make_shared<const MemoryRows>(std::move(values));
}

}  // namespace

void share_table(Group& group, const std::string& path, SeriesFile& file) {
  // A line each; a name has none inside.
  std::string text;
  if (group.first()) {
    const bool in_memory = dynamic_cast<const MemoryRows*>(file.rows.get()) != nullptr;
    text = (in_memory ? "values\n" : "index\n") + std::to_string(file.rows->rows()) + '\n' +
           file.fingerprint + '\n';
    for (const std::string& name : file.names) text += name + '\n';
  }
  text = group.text_of_first(text);
  auto next = [&text, at = std::size_t{0}]() mutable {
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos) return std::string();
    const std::size_t begin = std::exchange(at, end + 1);
    return text.substr(begin, end - begin);
  };
  const auto names = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) - 3;
  const std::string kind = next();
  const std::int64_t rows = std::stoll(next());
  file.fingerprint = next();
  file.names.resize(names);
  for (std::string& name : file.names) name = next();
  kind == "index" ? share_index(group, path, rows, file) : share_values(group, rows, file);
}

void share_scaling(Group& group, std::size_t columns, SeriesScaling& scaling) {
  for (Normalisation* each : {&scaling.values, &scaling.changes}) {
    for (std::vector<double>* part : {&each->mean, &each->deviation}) {
      part->resize(columns);
      share(group, part->data(), columns * sizeof(double));
    }
  }
}

}  // namespace openrnn::train
